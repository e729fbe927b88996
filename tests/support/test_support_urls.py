"""One function hides what is secret in a URL, for databases, models and agents."""

from __future__ import annotations

import pytest

from pytest_agenteval.databases.sources import source_of
from pytest_agenteval.support.redaction import bare_url, url_without_secrets

PASSWORDS = ["pw", "p@ss", "p/ss", "p?ss", "p#ss", "p:ss", "1234", "/?#:@", "pä ss\n", "***"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("user", ["anna", ""])
def test_no_part_of_a_password_is_shown(password: str, user: str) -> None:
    url = f"postgresql://{user}:{password}@db.example:5432/shop"
    assert url_without_secrets(url) == f"postgresql://{user}:***@db.example:5432/shop"
    assert bare_url(url) == "postgresql://db.example:5432/shop"


@pytest.mark.parametrize(
    ("url", "shown", "bare"),
    [
        (
            "http://127.0.0.1:8000/ask?key=abc&q=1",
            "http://127.0.0.1:8000/ask?key=***&q=1",
            "http://127.0.0.1:8000/ask",
        ),
        ("https://anna@host/x#part", "https://anna@host/x#part", "https://host/x"),
        ("http://host:8080/mail/a@b", "http://host:8080/mail/a@b", "http://host:8080/mail/a@b"),
        ("http://host/mail/a@b", "http://host/mail/a@b", "http://host/mail/a@b"),
        ("duckdb:///shop.duckdb", "duckdb:///shop.duckdb", "duckdb:///shop.duckdb"),
        (
            "snowflake://a:b@acc/db?token=t;pwd=x",
            "snowflake://a:***@acc/db?token=***;pwd=***",
            "snowflake://acc/db",
        ),
        ("shop.duckdb", "shop.duckdb", "shop.duckdb"),
        ("/ask?key=abc", "/ask?key=abc", "/ask"),
    ],
)
def test_all_else_of_a_url_stays(url: str, shown: str, bare: str) -> None:
    assert (url_without_secrets(url), bare_url(url)) == (shown, bare)


def test_a_database_shows_its_url_without_the_password(tmp_path) -> None:
    for password in PASSWORDS:
        source = source_of("shop", f"postgresql://anna:{password}@db.example/shop", tmp_path)
        assert source.shown == "postgresql://anna:***@db.example/shop"
