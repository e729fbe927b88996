"""What is masked, and what must stay readable."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agenteval.support.redaction import MASK, Redactor

SECRET = 'ca"nary\\pass wörd/1+2'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        repr(SECRET),
        "https://x/?q=ca%22nary%5Cpass%20w%C3%B6rd%2F1%2B2",
        "q=ca%22nary%5Cpass+w%C3%B6rd%2F1%2B2",
    ],
)
def test_a_known_secret_is_masked_however_it_is_written(written):
    shown = Redactor([SECRET])(f"before {written} after")
    assert MASK in shown
    assert "nary" not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_the_longest_secret_is_masked_first_and_short_ones_only_as_words():
    redactor = Redactor(["tokens", "tokens-of-maya", "abc"])
    assert redactor("tokens-of-maya") == MASK
    assert redactor("my tokens.") == f"my {MASK}."
    assert Redactor(["canaryword"])("canarywords canaryword") == f"canarywords {MASK}"
    assert redactor("tokenstream abc") == "tokenstream abc"


def test_secrets_may_come_later():
    redactor = Redactor()
    assert redactor("session-4711-x") == "session-4711-x"
    redactor.add("session-4711-x", None, "")
    assert redactor("session-4711-x") == MASK
    assert repr(redactor) == "Redactor(8 forms)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("sent Bearer eyJhbGciOiJIUzI1NiJ9.e30 along", "sent Bearer *** along"),
        ("postgresql://maya:s3cr3t!@db:5432/shop", "postgresql://maya:***@db:5432/shop"),
        ("host=db password=hunter22 user=maya", "host=db password=*** user=maya"),
        ('{"api_key": "abcd1234", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("SNOWFLAKE_PASSWORD=hunter22", "SNOWFLAKE_PASSWORD=***"),
        ("access_token=abcdefghij0123456789", "access_token=***"),
        ("key sk-proj-abcdefgh12345678 used", "key sk-*** used"),
        ("AKIAIOSFODNN7EXAMPLE1", "AKIA***"),
    ],
)
def test_what_has_the_shape_of_a_secret_is_masked(text, shown):
    assert Redactor()(text) == shown
    assert Redactor()(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Basic information about 1234 orders",
        "the bearer of bad news",
        "1,234 tokens: 17 of them cached",
        "token: next",
        "https://shop.example:8080/ask?key=x",
        "primary key: order_id, secret: no",
        "duckdb:///data/shop.duckdb",
        "sk-learn-pipelines are fine",
        "select password_hash from users where key = 'abcdefgh'",
        "maya@shop.example",
    ],
)
def test_ordinary_text_stays_readable(text):
    assert Redactor()(text) == text


def test_structures_are_masked_by_value_and_by_key_and_tables_stay():
    redactor = Redactor(["canary-1234"])
    form = {
        "headers": {"Authorization": "anything", "Accept": "json"},
        "canary-1234": ["x canary-1234", ("canary-1234", 1)],
        "rows": [{"key": "K-17", "token": "gift", "product_key": "P1", "n": 1.5, "none": None}],
        "password": "pw",
        "secret": 42,
    }
    assert redactor.data(form) == {
        "headers": {"Authorization": MASK, "Accept": "json"},
        MASK: [f"x {MASK}", (MASK, 1)],
        "rows": [{"key": "K-17", "token": "gift", "product_key": "P1", "n": 1.5, "none": None}],
        "password": MASK,
        "secret": 42,
    }


def test_a_structure_without_end_is_passed_on():
    loop: list = []
    loop.append(loop)
    Redactor().data(loop)


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("SHOP_API_KEY", "abcd", True),
        ("DB_PASSWORD", "shop1", True),
        ("WHATEVER", "x8Hj2-kLm9p", True),
        ("WHATEVER", "canary_in_plain_words", True),
        ("WHATEVER", "canaryword", True),
        ("WHATEVER", "ab/cd.ef:gh+ij==", True),
        ("PIN", "a1b2", True),
        ("DB_NAME", "shop", False),
        ("PORT", "5432", False),
        ("RATE", "-12.5", False),
        ("FLAG", "true", False),
        ("MODEL", "openai:gpt-4.1", False),
        ("BASE_URL", "http://localhost:5005/api", False),
        ("DATA", "data/shop/warehouse.duckdb", False),
        ("FOLDER", "/tmp", False),
        ("WHATEVER", None, False),
    ],
)
def test_a_value_of_the_environment_is_secret_by_its_name_or_its_looks(name, value, masked):
    redactor = Redactor()
    redactor.add_named(name, value)
    assert (redactor(f"is {value} it") == f"is {MASK} it") is masked


def test_of_a_url_the_password_and_secret_parameters_are_secret():
    redactor = Redactor()
    redactor.add_named("DATABASE_URL", "postgresql://maya:p%40ss-1@db/shop?sslkey=k&token=tok-en-5&x=visible")
    shown = redactor("p%40ss-1 p@ss-1 tok-en-5 visible shop maya")
    assert shown == f"{MASK} {MASK} {MASK} visible shop maya"
    redactor.add_named("X_URL", "postgresql://[broken")
    redactor.add_named("WAREHOUSE_DSN", "snowflake://a:b4321@c/d")
    assert redactor("b4321") == MASK


@given(st.text(min_size=4), st.text(), st.text())
def test_no_known_secret_gets_through(secret, before, after):
    if len(secret.strip()) < 8 or secret.strip().isalpha():
        return  # a short one, or a plain word, is masked where it stands alone
    assert secret not in Redactor([secret])(before + secret + after)


def test_a_large_text_is_quick():
    import time

    text = json.dumps([{"n": n, "name": f"customer {n}"} for n in range(60_000)])
    redactor = Redactor([f"secret-value-{n}" for n in range(20)])
    started = time.process_time()
    assert redactor(text) == text
    assert time.process_time() - started < 1.0


def test_the_environments_secrets_are_known_by_their_names():
    redactor = Redactor()
    redactor.add_environment({"X_API_KEY": "canaryword", "API_TOKEN": "short", "HOME": "/home/canary-xyz"})
    assert redactor("canaryword short /home/canary-xyz") == f"{MASK} {MASK} /home/canary-xyz"
