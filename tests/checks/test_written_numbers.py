"""Numbers of a text that are not written in plain digits: currencies, scales, entities, powers, words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pytest_agenteval.checks.text_numbers import all_numbers, quantities
from pytest_agenteval.checks.written_numbers import in_digits, value_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Revenue was ₹12,34,567.", ["1234567"]),
        ("Revenue was ₹1,23,45,678.50.", ["12345678.50"]),
        ("Der Umsatz war 1,5 Mrd. €.", ["1500000000"]),
        ("Der Umsatz war 1,23 Mio. Euro, davon 300 Tsd. online.", ["1230000", "300000"]),
        ("It made 12.35 lakh and 3 crore.", ["1235000", "30000000"]),
        ("Le chiffre est de 3,5 milliards.", ["3500000000"]),
        ("₩1,200 and ₺5 and CHF 7", ["1200", "5", "7"]),
        ("Sales&nbsp;rose 5 &#8211; 7 percent.", ["5", "7"]),
        ("The rate is 1.2 \u00d7 10⁻⁷ per unit, or 3\u00b710^{4}, or 10⁶.", ["1.2E-7", "3E+4", "1E+6"]),
        ("Fifty-two customers came.", ["52"]),
        ("There were three hundred and five orders.", ["305"]),
        ("A thousand two hundred and thirty-four rows.", ["1234"]),
        ("Two million users, 2.4 million visits.", ["2000000", "2400000"]),
        ("One of the two stores, the twenty-first, nineteen ninety-nine, seven.", []),
        ("It is one hundred percent.", ["100"]),
    ],
)
def test_numbers_are_read_however_they_are_written(text: str, values: list[str]) -> None:
    assert [quantity.value for quantity in quantities(text)] == [Decimal(value) for value in values]


def test_the_words_are_numbers_for_what_is_known_as_well() -> None:
    assert Decimal(52) in all_numbers("fifty-two")


@pytest.mark.parametrize(
    ("words", "value"),
    [("ninety-nine", 99), ("two hundred hundred", None), ("five thousand two million", None),
     ("five six", None),
     ("twelve five", None), ("one million two thousand", 1_002_000), ("a hundred and one", 101)],
)  # fmt: skip
def test_words_in_an_order_that_says_a_number(words: str, value: int | None) -> None:
    assert value_of(words) == value


def test_what_says_no_number_stays_as_it_is() -> None:
    for text in ("hundreds of orders", "five six", "tenfold", "AT&T has 3", "10 apples"):
        assert in_digits(text) == text
