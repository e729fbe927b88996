"""Charts as inline SVG, made here: no script draws them, and each says in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT, EDGE, LEFT = 560, 96, 8, 52
FOOT = 14
"""Height below a line for its dates."""


def bar(rate: float | None, ends: Sequence[float] | None = None) -> Markup:
    """Return a pass rate (0..100) as a bar, its 95 % interval as a line over it."""
    if rate is None:
        return Markup("")
    whisker = Markup("")
    if ends:
        whisker = Markup(
            '<line class="bar-interval" x1="{:.1f}" x2="{:.1f}" y1="5" y2="5"/>'
            '<line class="bar-interval" x1="{:.1f}" x2="{:.1f}" y1="2" y2="8"/>'
            '<line class="bar-interval" x1="{:.1f}" x2="{:.1f}" y1="2" y2="8"/>'
        ).format(ends[0], ends[1], ends[0], ends[0], ends[1], ends[1])
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-rest" width="100" height="10" rx="2"/>'
        '<rect class="bar-done" width="{:.1f}" height="10" rx="2"/>{}</svg>'
    ).format(rate, whisker)


def trend(
    values: Sequence[float | None],
    labels: Sequence[str],
    title: str,
    *,
    top: float | None = None,
    kind: str = "rate",
    scale: tuple[str, str] = ("100 %", "0"),
    dates: tuple[str, str] | None = None,
) -> Markup:
    """Return a line over runs, oldest first; gaps where a value is unknown. ``labels`` are shown on hover.

    ``top`` fixes the upper end of the scale (100 for rates); else it is the largest value. ``scale``:
    what stands at its upper and lower end; ``dates``: those of the first and the last run.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup("")
    high = top if top is not None else max(known) or 1.0
    step = (WIDTH - LEFT - EDGE) / max(len(values) - 1, 1)
    points = [
        None if value is None else (LEFT + step * i, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * value / high)
        for i, value in enumerate(values)
    ]
    lines = Markup("").join(
        Markup('<polyline points="{}"/>').format(" ".join(f"{x:.1f},{y:.1f}" for x, y in piece))
        for piece in _pieces(points)
    )
    dots = Markup("").join(
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>').format(*point, label)
        for point, label in zip(points, labels, strict=True)
        if point is not None
    )
    rule = Markup('<line class="trend-rule" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>')
    rules = rule.format(LEFT, WIDTH - EDGE, EDGE) + rule.format(LEFT, WIDTH - EDGE, HEIGHT - EDGE)
    for word, height in zip(scale, (EDGE + 3, HEIGHT - EDGE + 3), strict=True):
        rules += Markup('<text x="{}" y="{}" aria-hidden="true">{}</text>').format(LEFT - 6, height, word)
    height = HEIGHT
    if dates is not None:
        height += FOOT
        rules += _dates(dates)
    return Markup(
        '<svg class="trend trend-{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>'
    ).format(kind, WIDTH, height, title, rules, lines, dots)


def _dates(dates: tuple[str, str]) -> Markup:
    """Return the first and the last date below a line."""
    place = Markup('<text x="{}" y="{}" class="{}" aria-hidden="true">{}</text>')
    left = place.format(LEFT, HEIGHT + FOOT - 4, "first-date", dates[0])
    return left + place.format(WIDTH - EDGE, HEIGHT + FOOT - 4, "last-date", dates[1])


def _pieces(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    pieces: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            pieces.append([])
        else:
            pieces[-1].append(point)
    return [piece for piece in pieces if len(piece) > 1]
