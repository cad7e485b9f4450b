"""Charts: what is spent is seen, noise is not drawn as a fact, and times can be told apart."""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from importlib.resources import files

import pytest

from sidelight.releases.card import PastRun
from sidelight.releases.quality import MeanError, Quality
from sidelight.reports.facts import Spending, by_attribute
from sidelight.reports.figures import budget_bar
from sidelight.reports.story import story

_STYLE = files("sidelight.reports") / "templates" / "report.css"
AT = datetime(2026, 11, 18, 9, 22, tzinfo=UTC)


def widths(chart):
    """How wide all parts of a step are together, and the thinnest part."""
    found = [(kind, float(wide)) for kind, wide in re.findall(r'class="(\w+)".*? width="([\d.]+)"', chart)]
    steps = {kind for kind, _ in found}
    return {kind: sum(wide for one, wide in found if one == kind) for kind in steps}, min(w for _, w in found)


def spent(step, share):
    return Spending(1, step, "", "", Fraction(1), share)


def test_many_thin_events_are_one_part_of_the_budget_bar_that_can_be_seen():
    rounds = [spent(*one) for _ in range(72) for one in (("select", 0.001), ("measure", 0.012))]

    wide, thinnest = widths(budget_bar("k", [*rounds, spent("quality", 0.02)], 0.044))

    assert wide["select"] == pytest.approx(72, abs=1)
    assert thinnest >= 10


def test_few_events_keep_a_part_each_and_a_tiny_one_is_seen():
    chart = budget_bar("k", [spent("select", 0.2), spent("measure", 0.8)], 0.0)
    tiny, _ = widths(budget_bar("k", [spent("total", 0.0001), spent("measure", 0.9999)], 0.0))

    assert widths(chart)[0] == {"select": 200, "measure": 800}
    assert tiny["total"] > 10


def quality(**attributes):
    return Quality(
        degrees={"2-way": MeanError(error=0.1, standard_error=0.02, marginals=3, of=3)},
        attributes={
            name: MeanError(error=error, standard_error=noise, marginals=2, of=2)
            for name, (error, noise) in attributes.items()
        },
    )


def test_an_error_below_its_noise_has_no_bar_and_no_rank():
    noisy = by_attribute(quality(a=(0.1, 0.2), b=(0.46, 0.22)))
    clear = by_attribute(quality(a=(0.1, 0.02), b=(0.5, 0.02), c=(0.01, 0.02)))

    assert [(name, share) for name, _, share in noisy] == [("a", None), ("b", None)]
    assert [(name, share) for name, _, share in clear] == [("b", 1.0), ("a", pytest.approx(0.2)), ("c", None)]


def run(when, what, used):
    return PastRun(when=when, what=what, used=used)


@pytest.mark.parametrize(
    ("later", "shown"),
    [
        (timedelta(days=3), ("2026-11-18<", "2026-11-21<")),
        (timedelta(minutes=9), ("2026-11-18 09:22<", "2026-11-18 09:31<")),
        (timedelta(seconds=5), ("2026-11-18 09:22:00<", "2026-11-18 09:22:05<")),
    ],
)
def test_two_times_on_the_chart_never_read_the_same(later, shown):
    chart = story("k", [run(AT, "aperture", 0.1), run(AT + later, "a very long name", 0.4)])

    assert all(time in chart for time in shown)


def test_the_budget_over_time_can_be_read_on_a_telephone():
    chart = story("k", [run(AT, "aperture, 9", 0.1), run(AT + timedelta(1), "ladder", 0.4)])

    wide = int(re.findall(r'viewBox="0 0 (\d+)', chart)[0])
    size = int(re.findall(r"\.story svg text { font-size: (\d+)px", _STYLE.read_text())[0])
    assert size * 300 / wide > 9  # pixels of text on a page of 390, where the chart is 300 wide
    first = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)">aperture', chart)[0]
    assert first[1] == "start"
