"""Secrets: every channel they come by, every form they have, every output they could reach."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from user_run import environment

from pytest_agenteval.support.redaction import MASK, Redactor

KNOWN = "kan4ry/tok@9xQ"
"""What the environment holds as MYAPP_TOKEN; / and @ are what other encodings keep or change."""

FORMS = {
    "as it is": KNOWN,
    "percent": quote(KNOWN, safe=""),
    "percent, slash kept": quote(KNOWN),
    "base64": base64.b64encode(KNOWN.encode()).decode(),
    "base64 of user:secret": base64.b64encode(f"maya:{KNOWN}".encode()).decode(),
    "base64 in the middle": base64.b64encode(f"xx{KNOWN}yy".encode()).decode(),
    "base64, of addresses": base64.urlsafe_b64encode(f"?{KNOWN}".encode()).decode(),
    "JSON": json.dumps({"a": KNOWN}),
    "JSON in JSON": json.dumps({"a": json.dumps({"b": KNOWN})}),
    "hexadecimal": KNOWN.encode().hex(),
    "repr": repr(KNOWN.encode()),
}
SURE = base64.b64encode(f"xx{KNOWN}yy".encode()).decode()[4:-4]

SHAPES = [
    ("{} ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ5In0.c2lnbmF0dXJlMQ"),
    ("{}", "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAshape1\n-----END RSA PRIVATE KEY-----"),
    ("pay with {}", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("ci {}", "ghs_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("{}", "ghu_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("{}", "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456"),
    ("{}", "npm_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345678"),
    ("{}", "pypi-AgEIcHlwaS5vcmcCJDU0Nzc5Y2U4"),
    ("{}", "ya29.a0AfH6SMBx1234567890abcdef"),
    ("{}", "ASIAY34FZKBOKMUTVV7A"),
    ("{}", "gsk_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456"),
    ("{}", "xoxe-1-aBcDeFgHiJkLmNoP1234"),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("DefaultEndpointsProtocol=https;AccountKey={};x=y", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6=="),
    ("https://a.blob.core.windows.net/c?sv=2021&sig={}", "aBc%2Fd1234567890"),
    ("https://hooks.slack.com/services/{}", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
    ("PGPASSWORD={} psql", "pwx1"),
    ("export DB_PASS={}", "dbpassx"),
    ("tool --password {} --fast", "cmdpw1"),
    ("tool --api-key {}", "cmdkey7"),
    ("Cookie: {}", "sid=abcdef1234567; theme=dark"),
    ("CREATE USER u IDENTIFIED BY '{}'", "idpw5"),
    ("curl -u maya:{} https://x", "curlpw5"),
    ('{{\\"password\\": \\"{}\\"}}', "inner-pw"),
    ("Authorization: Bearer {}", "abcdefghijklmnop"),
    ("postgresql://u:{}@db/x", "sla/sh'p@w"),
    ("https://maya:{}@host/x", "webpw1"),
    ("{}", "dapi0123456789abcdef0123456789abcdef"),
]

ORDINARY = [
    "WHERE secret=1000", "Basic information2024", "pwd: /home/user", "dapi20240101abcdefgh", "Secret: Santa",
    "primary key: order_id, secret: no", "1,234 tokens: 17 of them cached", "https://shop.example:8080/ask?key=x",
    "the bearer of bad news", "sk-learn-pipelines are fine", "http://localhost:5005/users/maya@example.com",
    "SELECT key, token FROM t WHERE order_key = 12345",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_known_secret_is_masked_in_every_form(form: str) -> None:
    shown = Redactor([KNOWN]).text(f"before {FORMS[form]} after")
    assert MASK in shown
    assert FORMS[form] not in shown
    assert SURE not in shown


@pytest.mark.parametrize(("text", "secret"), SHAPES)
def test_the_shapes_of_secrets_are_masked(text: str, secret: str) -> None:
    shown = Redactor().text(text.format(secret))
    assert MASK in shown
    assert secret not in shown
    assert secret[-6:] not in shown
    assert Redactor().text(shown) == shown


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_are_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "GH_PAT",
        "SNOWFLAKE_PW",
        "NPM_AUTH",
        "MY_JWT",
        "SLACK_WEBHOOK_URL",
        "HASH_SALT",
        "MY_BEARER",
        "DB_PASSWORD",
    ],
)
def test_the_environments_secrets_are_known_by_today_s_names(name: str) -> None:
    redactor = Redactor()
    redactor.add_environment({name: "zq8-secret-value"})
    assert redactor.text("is zq8-secret-value it") == f"is {MASK} it"


@pytest.mark.parametrize("name", ["DB_PASSWORD", "API_TOKEN", "PIN", "MY_SECRET", "PGPASSWORD"])
def test_short_secrets_of_the_environment_count(name: str) -> None:
    redactor = Redactor()
    redactor.add_environment({name: "zq8x", "X_AUTH": "none", "MAX_TOKENS": "8192", "USE_TOKEN": "true"})
    assert redactor.text("is zq8x it, none 8192 true") == f"is {MASK} it, none 8192 true"


CANARIES = {
    "args.header": "Bearer-abcdefghijklmnop", "args.api": "k1234567890abc",
    "args.cookie": "sid=abcdef1234567", "args.password": "hunter2xyz",
    "result.token": "tok1234567890abcdef", "list.header": "pairhdr77", "named.header": "namedhdr88",
    "url.password": "dbSEC/RETpw", "target.flag": "HUNTER3xyz", "int.password": "90210777",
    "property": "propcanary99", "shape": "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "conversation": "convcanary55",
}  # fmt: skip

CONFTEST = f"""
import os, warnings, pytest
from pytest_agenteval import Answer, ToolCall
C = {CANARIES!r}
KNOWN = {KNOWN!r}

def args():
    headers = {{"Authorization": C["args.header"], "X-Api-Key": C["args.api"], "Cookie": C["args.cookie"]}}
    har = [{{"name": "Authorization", "value": C["named.header"]}}]
    pin = {{"password": int(C["int.password"])}}
    pairs = [["X-Auth-Token", C["list.header"]]]
    return {{"headers": headers, "password": C["args.password"], "pin": pin, "list": pairs, "har": har}}

class Agent:
    def run(self, task):
        print("printed", KNOWN, "password=" + C["args.password"])
        warnings.warn("warned of " + KNOWN)
        if "raise" in task.prompt:
            raise RuntimeError("raised " + KNOWN + " and " + C["shape"])
        if "wrong" in task.prompt:
            return [{{"n": 2, "blob": KNOWN.encode(), "text": KNOWN}}]
        calls = (
            ToolCall("http_get", args(), {{"access_token": C["result.token"]}}),
            ToolCall("bash", {{"cmd": "x --api-key " + C["target.flag"]}}, f"said {{KNOWN}} {{C['shape']}}"),
        )
        return Answer(text="text " + KNOWN + " " + C["shape"], data=[{{"n": 1}}], tool_calls=calls,
            conversation=[{{"client_secret": C["conversation"]}}])

@pytest.fixture
def agent(record_property):
    record_property("db_password", C["property"])
    return Agent()
"""

CASES = """
cases:
  - {name: right, prompt: go, expected: [{n: 1}]}
  - {name: wrong, prompt: wrong, expected: [{n: 1, blob: x, text: y}]}
  - {name: raises, prompt: raise it, expected: [{n: 1}]}
  - {name: server, prompt: go, sql: select 1, database: shop}
"""

INI = f"""[pytest]
agenteval_databases =
    shop = postgresql://user:{CANARIES["url.password"]}@127.0.0.1:1/db
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every output of one run, by its name."""
    root = tmp_path_factory.mktemp("secrets")
    (root / "tests").mkdir()
    (root / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (root / "tests" / "c.yml").write_text(CASES, encoding="utf-8")
    (root / "pytest.ini").write_text(INI, encoding="utf-8")
    found: dict[str, str] = {}

    def run(name: str, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=root, env={**environment(), "MYAPP_TOKEN": KNOWN},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        found[name] = done.stdout + done.stderr

    files = [
        "--junitxml=j.xml",
        "--agent-html",
        "r.html",
        "--agent-record",
        "rec.jsonl",
        "--agent-summary",
        "s.md",
    ]
    run("console", "pytest", "-v", "-rA", "-l", "--tb=long", *files)
    results = next(root.glob("tests/outputs/results_*.json"))
    for form in ("terminal", "markdown", "junit", "json"):
        run(f"report {form}", "pytest_agenteval", "report", str(results), "--format", form)
    run("check", "pytest_agenteval", "check", "--references")
    for name in ("j.xml", "r.html", "rec.jsonl", "s.md"):
        found[name] = (root / name).read_text(encoding="utf-8")
    found["results"] = results.read_text(encoding="utf-8")
    assert "4 cases" in found["console"].replace("1 passed", "4 cases") or "passed" in found["console"]
    return found


def test_no_secret_of_any_channel_reaches_any_output(outputs: dict[str, str]) -> None:
    secrets = {**CANARIES, **{f"known, {name}": text for name, text in FORMS.items() if "JSON" not in name}}
    leaks = [
        f"{channel} in {output}"
        for output, text in outputs.items()
        for channel, secret in secrets.items()
        if secret in text or (channel == "url.password" and "RETpw" in text)
    ]
    assert not leaks, "\n".join(leaks)


def test_every_output_was_written_and_says_what_it_masked(outputs: dict[str, str]) -> None:
    for name in ("console", "results", "r.html", "rec.jsonl", "j.xml"):
        assert MASK in outputs[name], name
    assert "warned of ***" in outputs["console"]
    assert "postgresql://user:***@127.0.0.1:1/db" in outputs["console"]
    assert "postgresql://user:***@127.0.0.1:1/db" in outputs["check"]


def test_secrets_of_a_target_are_masked_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "tests" / "c.yml").write_text("prompt: go\nexpected: [{n: 1}]\n", encoding="utf-8")
    (tmp_path / "ok.py").write_text("print('[{\"n\": 1}]')\n", encoding="utf-8")
    words = "ok.py --api-key HUNTER3xyz --password hunter4abc --token=hunter5tok123456789"
    target = f"command:{sys.executable} {words}"
    files = ["--junitxml=j.xml", "--agent-html", "r.html"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *files, "--agent-target", target],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    texts = [done.stdout + done.stderr, (tmp_path / "j.xml").read_text(), (tmp_path / "r.html").read_text()]
    texts += [path.read_text() for path in tmp_path.glob("tests/outputs/results_*.json")]
    assert len(texts) == 4
    for text in texts:
        for secret in ("HUNTER3xyz", "hunter4abc", "hunter5tok123456789"):
            assert secret not in text
