"""What an unknown secret looks like: names that hold one, and texts of a known shape.

Every repetition is possessive or bounded: texts of models and tools come through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MASK = "***"

SECRET_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)?$|pwd|secret|token|(?:^|[-_])(?:pw|pat|jwt|auth|salt|bearer|pin|otp)$"
    r"|api[-_]?key|access[-_]?key|private[-_]?key|account[-_]?key|(?:^|[-_])key$|credential|webhook"
    r"|^(?:proxy-)?authorization$|^(?:set-)?cookie$|dsn$|connection[-_]?string",
    re.IGNORECASE,
)
"""Names (of variables, headers, options) whose values are secret whatever they look like."""

SHORT_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:pgpassword|pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|pat|pin|otp|salt|bearer"
    r"|(?:api|access|secret|private|auth)[-_]?key)$",
    re.IGNORECASE,
)
"""Names of which even 4 letters are a secret; others say how something is done (``X_AUTH=none``)."""

MASKED_KEYS = re.compile(
    r"(?:authorization|cookies?|password|passwd|passphrase|passcode|pwd|api[-_]?key|secret"
    r"|(?:access|secret|private|account|auth|signing|encryption|subscription)[-_]?key"
    r"|(?:access|auth|refresh|bearer|session|id|api|security|csrf|xsrf)[-_]?token|jwt|bearer"
    r"|credentials?(?:[-_](?:base64|json|path))?|connection[-_]?string|client[-_]secret)",
    re.IGNORECASE,
)
"""Ends of keys of structures whose values are masked whole (``x-api-key``).

Plain ``key`` and ``token`` are names of columns, too.
"""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def masked_key(key: object) -> bool:
    """Return whether what stands under ``key`` is masked whole:
    ``dbPassword``, ``X-Api-Key``, ``access_token``.
    """
    if not isinstance(key, str) or not 3 <= len(key) <= 60:
        return False
    words = re.split(r"[-_.\s]", _CAMEL.sub("_", key))
    return any(MASKED_KEYS.fullmatch("_".join(words[start:])) for start in range(len(words)))


_WORDS = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|api[-_]?key|(?:access|account|private|secret|shared[-_]?access)[-_]?key"
    r"|client[-_]?secret|(?:access|auth|refresh|bearer|session)[-_]?token|connection[-_]?string)"
)
_QUOTE = r"(?:\\{0,6}[\"'])"
_FREE = r"[^\s\"'\\&,;)}\]]"

_PREFIXES = (
    r"sk-|sk_live_|sk_test_|rk_live_|rk_test_|whsec_|gh[pousr]_|github_pat_|glpat-|gldt-|glrt-|xox[abeoprs]-|xapp-"
    r"|AIza|ya29\.|GOCSPX-|hf_|npm_|pypi-|SG\.|dop_v1_|shp(?:at|ss|ca|pa)_|sq0[ac]t[pb]-|gsk_|xai-|pplx-|r8_|tvly-"
    r"|lsv2_|nvapi-|hvs\.|hvb\.|glsa_|glc_|figd_|lin_api_|ATATT3|PMAK-|rubygems_|pul-|dckr_pat_|sbp_|NRAK-|sntrys_"
    r"|AGE-SECRET-KEY-|fo1_|tfp_|EAAC|key-(?=[0-9a-f]{32})|ops_eyJ"
)

SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    # private keys, whole: -----BEGIN RSA PRIVATE KEY----- ...
    (
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[A-Za-z0-9+/=\s\\,:.]|-(?!----END))*+(?:-----END [A-Z0-9 ]{1,60}-----)?"
        ),
        MASK,
    ),
    # Authorization: Bearer xyz, "authorization": "Basic xyz"
    (
        re.compile(
            rf"(?i)(\bauthorization{_QUOTE}?+\s*+[:=]\s*+{_QUOTE}?+(?:[a-z]{{1,20}}+[ \t]++)?+)"
            rf"(?!\*\*\*){_FREE}{{4,}}+"
        ),
        r"\1" + MASK,
    ),
    # Cookie: sid=abc; other=def
    (
        re.compile(r"(?i)((?:^|[\s\"'])(?:set-)?cookie: ?+)(?=[^\n\"']{0,200}=)(?!\*\*\*)[^\n\"']{4,}+"),
        r"\1" + MASK,
    ),
    (
        re.compile(r"\b([Bb]earer|BEARER)(\s{1,3}+)(?=[\w.~+/-]{0,200}\d)(?=[\w.~+/-]{0,200}[A-Za-z])[\w.~+/-]{12,}+=*+"),
        r"\1\2" + MASK,
    ),
    (
        re.compile(
            r"\b([Bb]asic|BASIC)(\s{1,3}+)(?=\S{0,200}[a-z])(?=\S{0,200}[A-Z])(?=\S{0,200}[\d=])[A-Za-z0-9+/_-]{12,}+=*+"
        ),
        r"\1\2" + MASK,
    ),
    # what is left of a header of which a known part was masked
    (re.compile(r"\b([Bb]asic|[Bb]earer)(\s{1,3}+)(?=[\w+/=-]{0,200}\*\*\*)[\w+/=*-]++"), r"\1\2" + MASK),
    # https://user:password@host; of other schemes the password may hold a slash, as SQLAlchemy reads it
    (
        re.compile(r"(?i)((?<![a-z0-9+.-])(?:https?|wss?|ftps?)://[^\s:/@?#\"']{0,200}:)[^\s/\"']{1,200}(?=@)"),
        r"\1" + MASK,
    ),
    (
        re.compile(
            r"(?i)((?<![a-z0-9+.-])(?!https?:|wss?:|ftps?:)[a-z][a-z0-9+.-]{1,40}+://[^\s:/@?#\"']{0,200}:)"
            r"(?!\*\*\*@)[^\s\"]{1,200}(?=@)"
        ),
        r"\1" + MASK,
    ),
    # "password": "xyz", {\"api_key\": \"x\"}
    (
        re.compile(rf"(?i)({_WORDS}{_QUOTE}\s{{0,3}}+[:=]\s{{0,3}}+{_QUOTE})(?!\*\*\*)[^\s\"'\\]{{1,}}+"),
        r"\1" + MASK,
    ),
    # DB_PASS=xyz, PGPASSWORD=xyz, AWS_SECRET_ACCESS_KEY=xyz: variables in capitals
    (
        re.compile(
            rf"((?<![A-Z0-9_])[A-Z0-9_]{{0,60}}(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|(?:API|ACCESS|SECRET|PRIVATE|ACCOUNT|AUTH|SIGNING)_?KEY|_PAT)"
            rf"\s?=\s?{_QUOTE}?+)(?!\*\*\*|\d{{1,4}}\b|[/.~]){_FREE}{{1,}}+"
        ),
        r"\1" + MASK,
    ),
    # password=xyz, api_key = xyz: not a path, not a plain number, not a word of prose
    (
        re.compile(rf"(?i)({_WORDS}\s{{0,3}}+=\s{{0,3}}+{_QUOTE}?+)(?!\*\*\*|[/~.]|\d++\b){_FREE}{{4,}}+"),
        r"\1" + MASK,
    ),
    (
        re.compile(rf"(?i)({_WORDS}: ?+)(?!\*\*\*|[/~.])(?={_FREE}{{0,80}}[\d!@#$%^*+=]){_FREE}{{4,}}+"),
        r"\1" + MASK,
    ),
    (
        re.compile(
            rf"(?i)(token{_QUOTE}?+\s{{0,3}}+[=:]\s{{0,3}}+{_QUOTE}?+)(?=[\w.~+/-]{{0,200}}\d)[\w.~+/-]{{16,}}+=*+"
        ),
        r"\1" + MASK,
    ),
    # --password xyz, --api-key=xyz, curl -u user:xyz, IDENTIFIED BY 'xyz'
    (
        re.compile(
            r"(?i)((?<![\w-])--?(?:[a-z0-9]{1,20}-){0,3}(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|secret)-?key)"
            rf"(?:=|\s{{1,3}}+){_QUOTE}?+)(?!\*\*\*|-)[^\s\"'\\]{{1,}}+"
        ),
        r"\1" + MASK,
    ),
    (
        re.compile(r"((?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']{1,100}:)(?!\*\*\*)[^\s\"']{1,}+"),
        r"\1" + MASK,
    ),
    (
        re.compile(r"(?i)(\b(?:identified\s{1,3}+by|(?:encrypted\s{1,3}+)?password)\s{1,3}+')[^']{1,}+"),
        r"\1" + MASK,
    ),
    # ?sig=xyz, &token=xyz: signed addresses
    (
        re.compile(
            r"(?i)([?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|[a-z_-]{0,20}token"
            r"|(?:api|access|subscription)[-_]?key)=)(?=[\w%.~+/-]{4})[\w%.~+/=-]{4,}+"
        ),
        r"\1" + MASK,
    ),
    # webhooks are keys themselves
    (
        re.compile(
            r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,30}+/"
            r"|\.webhook\.office\.com/webhookb2/)[\w@./-]{6,}+"
        ),
        r"\1" + MASK,
    ),
    # JSON Web Tokens
    (re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"), MASK),
    (re.compile(r"(?<![A-Za-z0-9])(A(?:KIA|SIA|ROA|IDA))[A-Z0-9]{12,}+"), r"\1" + MASK),
    (re.compile(r"(?<![A-Za-z0-9])(dapi)[0-9a-f]{32}(?:-\d)?"), r"\1" + MASK),
    (re.compile(r"(?<![A-Za-z0-9])(SK|AC)[0-9a-f]{32}(?![0-9a-f])"), r"\1" + MASK),
    # keys known by their first letters
    (
        re.compile(rf"(?<![A-Za-z0-9_])({_PREFIXES})(?=[\w.-]{{0,80}}\d)(?=[\w.-]{{0,80}}[A-Za-z])[\w.-]{{12,}}+"),
        r"\1" + MASK,
    ),
)  # fmt: skip

HINTS = (
    "uthorization", "AUTHORIZATION", "ookie", "COOKIE", "earer", "EARER", "asic", "ASIC", "://", "pass",
    "PASS", "Pass", "pwd", "PWD", "Pwd", "ecret", "ECRET", "key", "KEY", "Key", "oken", "OKEN", "_PAT",
    "dentified", "DENTIFIED", "-u", "--user", "sig", "Sig", "onnection", "PRIVATE", "eyJ", "AKIA",
    "ASIA", "AROA", "AIDA", "dapi", "SK", "AC", "hooks", "discord", "webhook",
    *re.findall(r"[A-Za-z0-9_]{2,}[-_.]?", re.sub(r"\(\?[^)]*\)|\[[^]]*\]", " ", _PREFIXES)),
)  # fmt: skip
"""A text without any of these has none of the shapes."""


def database_passwords(url: str) -> Iterator[str]:
    """Yield the password of a URL as SQLAlchemy parses it (to the first ``@``), and to the last ``@``.

    A password may hold ``/`` there; one with an ``@`` in it should have been written ``%40``.
    """
    head, mark, rest = url.partition("://")
    if not mark or not re.fullmatch(r"[\w+.-]+", head):
        return
    user, colon, behind = rest.partition(":")
    if not colon or "/" in user or "@" in user or "?" in user:
        return
    first, at, _ = behind.partition("@")
    if at and first:
        yield first
        last = behind.rpartition("@")[0]
        if last != first and "?" not in last:
            yield last
