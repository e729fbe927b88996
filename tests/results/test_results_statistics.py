"""Each figure against a published one; the sources stand beside them."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agenteval.results.analysis import statistics
from pytest_agenteval.results.analysis.statistics import (
    connor,
    icc,
    interval,
    mcnemar,
    mcnemar_power,
    more_cases,
    more_cases_by_rates,
    pass_at_k,
    pass_hat_k,
    sign_flip,
    wilson,
)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17:857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(passed, n, low, high):
    assert wilson(passed, n) == pytest.approx((low, high), abs=5e-5)
    assert wilson(n - passed, n) == pytest.approx((1 - high, 1 - low), abs=5e-5)


def test_wilson_without_data_knows_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_pass_at_k_and_pass_hat_k():
    # the example; Chen et al. (2021) eq. 1 and Yao et al. (2024) section 4
    assert pass_at_k(5, 4, 3) == 1.0
    assert pass_hat_k(5, 4, 3) == pytest.approx(0.4)
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_hat_k(10, 3, 1) == pytest.approx(0.3)
    assert pass_at_k(200, 10, 10) == pytest.approx(1 - math.prod(1 - 10 / (190 + i) for i in range(1, 11)))


@given(st.integers(1, 7), st.data())
def test_the_estimates_are_the_means_over_all_choices_of_k(n, data):
    k = data.draw(st.integers(1, n))
    c = data.draw(st.integers(0, n))
    marks = [1] * c + [0] * (n - c)
    picks = list(combinations(range(n), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(marks[i] for i in p) for p in picks) / len(picks))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(all(marks[i] for i in p) for p in picks) / len(picks))


def test_with_fewer_than_k_attempts_only_what_is_certain_is_said():
    assert (pass_at_k(2, 1, 3), pass_at_k(2, 0, 3), pass_at_k(0, 0, 1)) == (1.0, None, None)
    assert (pass_hat_k(2, 1, 3), pass_hat_k(2, 2, 3), pass_hat_k(0, 0, 1)) == (0.0, None, None)


def test_icc_of_shrout_and_fleiss():
    # Shrout & Fleiss (1979), table 2 and 4: six targets, four judges, ICC(1,1) = .17
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert icc(ratings) == pytest.approx(0.17, abs=0.005)


def test_icc_where_it_cannot_be_estimated_is_the_cautious_one():
    assert icc([]) == icc([[1.0, 0.0]]) == icc([[1.0], [0.0]]) == icc([[1.0, 1.0], [1.0, 1.0]]) == 1.0
    assert icc([[1.0, 1.0], [0.0, 0.0]]) == 1.0
    assert icc([[1.0, 0.0], [1.0, 0.0]]) == -1.0


def test_intervals_count_attempts_of_one_case_as_less_than_cases():
    assert interval([]) is None
    assert interval([(0, 0)]) is None
    single = [(1, 1)] * 8 + [(0, 1)] * 2
    assert interval(single) == pytest.approx(wilson(8, 10))
    # attempts that always agree: three of each are worth one
    agreed = [(3 * c, 3) for c, _ in single]
    assert interval(agreed) == pytest.approx(wilson(8, 10))
    # attempts that disagree as much as they can: worth all thirty
    mixed = [(2, 3)] * 10
    assert interval(mixed) == pytest.approx(wilson(20, 30))
    low, high = interval([(3, 3)] * 5 + [(1, 3)] * 3 + [(0, 3)] * 2)
    assert wilson(6, 10)[0] < low < wilson(18, 30)[0]
    assert wilson(18, 30)[1] < high < wilson(6, 10)[1]


@pytest.mark.parametrize(
    ("worse", "better", "p"),
    [
        # Fagerland, Lydersen & Laake (2013), BMC Med Res Methodol 13:91, Bentur data: exact conditional .070
        (7, 1, 0.0703),
        (1, 7, 0.0703),
        (0, 0, 1.0),
        (3, 3, 1.0),
        (6, 0, 0.03125),
    ],
)
def test_mcnemar_exact(worse, better, p):
    assert mcnemar(worse, better) == pytest.approx(p, abs=5e-5)


DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_sign_flip_of_fisher():
    # Fisher (1935), The Design of Experiments, section 21: 863 of 32,768 on one side, 1,726 on both
    assert sign_flip(DARWIN) == 1726 / 32768


def test_sign_flip_beyond_twenty_cases_is_drawn_with_a_seed():
    # the same differences, and enough more of a size that changes nothing to leave the exact path
    many = [*DARWIN, *[0.001, -0.001] * 4]
    assert sign_flip(many) == sign_flip(many)
    assert sign_flip(many) == pytest.approx(1726 / 32768, abs=0.008)
    assert sign_flip([1 / 3] * 30) == pytest.approx(1 / 10_001)
    assert sign_flip([]) == sign_flip([0, 0.0]) == 1.0


@given(st.lists(st.sampled_from([-1, -0.5, 0, 1 / 3, 1]), max_size=8))
def test_sign_flip_is_the_share_of_all_sign_choices(differences):
    changed = [d for d in differences if d]
    sums = [
        abs(sum(d * s for d, s in zip(changed, signs, strict=True)))
        for signs in product((1, -1), repeat=len(changed))
    ]
    expected = sum(total >= abs(sum(changed)) - 1e-9 for total in sums) / len(sums)
    assert sign_flip(differences) == pytest.approx(expected)


def test_sign_flip_at_one_attempt_is_mcnemar():
    assert sign_flip([-1] * 7 + [1] + [0] * 13) == pytest.approx(mcnemar(7, 1))


def test_power_of_the_exact_test():
    # G*Power 3.1 manual, chapter "Exact: Difference from constant / McNemar" (O'Brien 2002): odds ratio
    # 0.25, discordant 0.4, N = 50, one-sided 0.05: power 0.839343. The other tail adds 1.5e-5.
    assert mcnemar_power(50, 0.32, 0.08, alpha=0.10) == pytest.approx(0.839343, abs=5e-5)
    assert mcnemar_power(3, 0.5, 0.1) == 0.0


def test_connor_is_near_the_exact_number():
    for shares in ((0.32, 0.08), (0.2, 0.1), (0.05, 0.01)):
        needed = connor(*shares)
        assert (
            mcnemar_power(math.ceil(needed * 1.25), *shares) > 0.8 > mcnemar_power(int(needed * 0.8), *shares)
        )


def test_more_cases_is_the_smallest_number_with_power():
    assert more_cases(50, 16, 4) == 8
    assert mcnemar_power(58, 0.32, 0.08) >= 0.8
    assert all(mcnemar_power(n, 0.32, 0.08) < 0.8 for n in range(45, 58))
    assert more_cases(200, 64, 16) == 0
    assert more_cases(10, 2, 2) is None
    assert more_cases(0, 0, 0) is None
    assert more_cases(20_000, 101, 100) is None


def test_more_cases_by_rates():
    assert more_cases_by_rates([]) is None
    assert more_cases_by_rates([0.5, -0.5]) is None
    assert more_cases_by_rates([-1 / 3] * 10) == 0
    noisy = [-1.0, 1.0, -1.0, 0.5, -0.5, -0.5]
    found = more_cases_by_rates(noisy)
    mean, n = sum(noisy) / 6, 6 + (found or 0)
    deviation = (sum((d - mean) ** 2 for d in noisy) / 5) ** 0.5
    # the textbook check: the effect is z_alpha + z_beta standard errors away at that n, not at n - 1
    assert abs(mean) / (deviation / n**0.5) >= 1.96 + 0.8416 - 1e-3 > abs(mean) / (deviation / (n - 1) ** 0.5)
    assert more_cases_by_rates([1.0, -1.0] * 50 + [0.001]) is None


def test_plain_intervals_need_no_scipy():
    import subprocess
    import sys

    code = (
        "import sys; from pytest_agenteval.results.analysis import statistics as s\n"
        "s.interval([(1, 3), (2, 3)]); s.mcnemar(3, 1); s.sign_flip([1.0, -0.5])\n"
        "print('scipy' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    assert statistics.DRAWS == 10_000
