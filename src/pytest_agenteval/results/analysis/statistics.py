"""Pass metrics, intervals and paired tests. Pure functions over counts; scipy only where power is asked.

Sources: Wilson (1927) score interval; Chen et al. (2021) unbiased pass@k; Yao et al. (2024, tau-bench)
pass^k; Donner & Koval (1980) one-way ANOVA intraclass correlation and its design effect; McNemar (1947)
in its exact form; Fisher's sign-flip permutation; Connor (1987) for the starting point of the sample size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

Z95 = 1.959963984540054
EXACT_CASES = 20
DRAWS = 10_000
MAX_CASES = 10_000
Counts = Sequence[tuple[int, int]]
"""Per case: (passed, judged)."""


def wilson(passed: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a share ``passed / n`` (``n`` may be an effective number); 0..1."""
    if n <= 0:
        return 0.0, 1.0
    share = passed / n
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if share == 0 else (centre - spread) / scale
    high = 1.0 if share == 1 else (centre + spread) / scale
    return max(low, 0.0), min(high, 1.0)


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that at least one of k attempts passes, from ``c`` passes of ``n``:
    1 - C(n-c,k)/C(n,k).

    With fewer than k judged attempts: 1 when one has passed, else not known (``None``).
    """
    if n < k:
        return 1.0 if c > 0 else None
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that all of k attempts pass, from ``c`` passes of ``n``: C(c,k)/C(n,k).

    With fewer than k judged attempts: 0 when one has failed, else not known (``None``).
    """
    if n < k:
        return 0.0 if c < n else None
    return math.comb(c, k) / math.comb(n, k)


def icc(groups: Sequence[Sequence[float]]) -> float:
    """Return intraclass correlation of values within groups (attempts within cases), one-way ANOVA; -1..1.

    Without any variance, or with one group, or with one value in each, it cannot be estimated and is
    1: attempts then count no more than their case, the cautious reading.
    """
    filled = [group for group in groups if group]
    total = sum(map(len, filled))
    if len(filled) < 2 or total <= len(filled):
        return 1.0
    mean = sum(map(sum, filled)) / total
    means = [sum(group) / len(group) for group in filled]
    between = sum(len(g) * (m - mean) ** 2 for g, m in zip(filled, means, strict=True)) / (len(filled) - 1)
    inside = sum((value - m) ** 2 for g, m in zip(filled, means, strict=True) for value in g)
    within = inside / (total - len(filled))
    size = (total - sum(len(group) ** 2 for group in filled) / total) / (len(filled) - 1)
    spread = between + (size - 1) * within
    return (between - within) / spread if spread > 0 else 1.0


def interval(counts: Counts) -> tuple[float, float] | None:
    """Return 95 % interval of the success rate over cases of one or more attempts each; 0..1.

    One attempt per case: Wilson. More: Wilson with n_eff = n / (1 + (k - 1) ICC), k the mean number
    of attempts, a negative ICC taken as 0. ``None`` without a judged attempt.
    """
    total = sum(n for _, n in counts)
    if total == 0:
        return None
    cases = sum(1 for _, n in counts if n > 0)
    size = total / cases
    correlation = icc([[1.0] * c + [0.0] * (n - c) for c, n in counts])
    effective = total / (1 + (size - 1) * max(correlation, 0.0))
    share = sum(c for c, _ in counts) / total
    return wilson(share * effective, effective)


def mcnemar(worse: int, better: int) -> float:
    """Return exact two-sided p-value of ``worse`` against ``better`` discordant cases."""
    n = worse + better
    tail = sum(math.comb(n, i) for i in range(min(worse, better) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


def sign_flip(differences: Sequence[float], seed: int = 0) -> float:
    """Return two-sided p-value of paired differences (one per case) under random signs.

    Exact for 20 or fewer differing cases; else 10,000 seeded draws, the observed one counted in.
    """
    changed = [Fraction(d).limit_denominator(1_000_000) for d in differences if d]
    observed = abs(sum(changed, Fraction(0)))
    if len(changed) <= EXACT_CASES:
        sums: dict[Fraction, int] = {Fraction(0): 1}
        for step in changed:
            grown: dict[Fraction, int] = {}
            for total, ways in sums.items():
                for end in (total + step, total - step):
                    grown[end] = grown.get(end, 0) + ways
            sums = grown
        extreme = sum(ways for total, ways in sums.items() if abs(total) >= observed)
        return float(Fraction(extreme, 2 ** len(changed)))
    scale = math.lcm(*(step.denominator for step in changed))
    whole = [int(step * scale) for step in changed]
    goal = int(observed * scale)
    source = random.Random(seed)
    hits = 0
    for _ in range(DRAWS):
        bits = source.getrandbits(len(whole))
        total_sum = sum(step if bits >> i & 1 else -step for i, step in enumerate(whole))
        hits += abs(total_sum) >= goal
    return (hits + 1) / (DRAWS + 1)


def mcnemar_power(n: int, worse: float, better: float, alpha: float = 0.05) -> float:
    """Return power of the exact McNemar test on ``n`` cases with these shares of discordant cases."""
    import numpy
    from scipy.stats import binom

    share = worse + better
    spread = 8 * math.sqrt(n * share * (1 - share)) + 1
    discordant = numpy.arange(
        max(1, math.floor(n * share - spread)), min(n, math.ceil(n * share + spread)) + 1
    )
    # the largest count on the rarer side that rejects; -1 where none does
    critical = binom.ppf(alpha / 2, discordant, 0.5)
    critical -= binom.cdf(critical, discordant, 0.5) > alpha / 2
    theta = worse / share
    reject = binom.cdf(critical, discordant, theta) + binom.sf(discordant - critical - 1, discordant, theta)
    chances = binom.pmf(discordant, n, share)
    return float(numpy.sum(numpy.where(critical >= 0, chances * reject, 0.0)))


def connor(worse: float, better: float, z_alpha: float = Z95, z_beta: float = 0.8416212335729143) -> float:
    """Return Connor's sample size (cases) for shares of discordant cases: 5 % two-sided, power 0.8."""
    share, gap = worse + better, abs(worse - better)
    return float(((z_alpha * math.sqrt(share) + z_beta * math.sqrt(share - gap * gap)) / gap) ** 2)


def more_cases(n: int, worse: int, better: int) -> int | None:
    """Return how many cases beyond ``n`` would settle it: the smallest number with power 0.8, less ``n``.

    0 when ``n`` is enough; ``None`` when the discordant cases are balanced, or beyond 10,000 cases.
    """
    if worse == better or n <= 0:
        return None
    shares = worse / n, better / n
    guess = connor(*shares)
    if guess > MAX_CASES:
        return None
    needed = max(1, math.floor(guess * 0.8))
    while mcnemar_power(needed, *shares) < 0.8:
        needed += max(1, needed // 200)
    return max(0, needed - n)


def more_cases_by_rates(differences: Sequence[float]) -> int | None:
    """Return the same for k > 1, from per-case differences of rates, by the normal approximation."""
    n = len(differences)
    mean = sum(differences) / n if n else 0.0
    if n < 2 or mean == 0:
        return None
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    needed = math.ceil(variance * ((Z95 + 0.8416212335729143) / mean) ** 2)
    return None if needed > MAX_CASES else max(0, needed - n)
