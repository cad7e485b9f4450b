"""Names, labels and cards are strangers' text: no view of them becomes active HTML."""

import copy
import json
import shutil
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from sidelight.data.schema import CategoricalColumn, IntegerColumn, Schema
from sidelight.errors import SidelightError
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.report import render
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.picture import svg_picture
from sidelight.testing import SeededNoise

TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "{{7*7}}{% raw %}",
    "]]></style><svg onload=alert(1)>",
    "[red]x[/red]",
)


class Active(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in {"script", "img", "iframe", "object", "embed"}:
            self.found.append(tag)
        for name, value in attrs:
            if name.lower().startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(name)


def active(page):
    reader = Active()
    reader.feed(page)
    reader.close()
    return reader.found


@pytest.fixture(scope="module")
def schema():
    columns = [CategoricalColumn(f"n{text}", TEXTS) for text in TEXTS[:3]]
    return Schema((*columns, IntegerColumn(f"s{TEXTS[4]}", low=0, high=3)))


@pytest.fixture(scope="module")
def table(schema):
    rng = np.random.default_rng(0)
    labels = {c.name: [TEXTS[i] for i in rng.integers(0, len(TEXTS), 400)] for c in schema.columns[:3]}
    return pa.table({**labels, schema.columns[3].name: rng.integers(0, 4, 400)})


@pytest.fixture(scope="module")
def ledger():
    return MemoryLedger(Promise(Budget(epsilon=9.0, delta=1e-9), Unit("replace"), TEXTS[0] + TEXTS[1]))


@pytest.fixture(scope="module")
def made(schema, table, ledger):
    return release(
        table, schema=schema, epsilon=1.0, ledger=ledger, workload="2-way", mechanism="mwem", rounds=2,
        noise=SeededNoise(1), progress=False,
    )  # fmt: skip


def test_the_parser_of_this_test_sees_active_html():
    assert active(TEXTS[0]) == ["script"]
    assert active(TEXTS[1]) == ["img", "onerror"]


def test_no_view_holds_active_html(made, table, schema, ledger):
    views = {
        "report": render(made),
        "PRIVATE report": render(made, against=table),
        "release": made._repr_html_(),
        "schema": schema._repr_html_(),
        "ledger": ledger._repr_html_(),
    }

    assert {name: active(page) for name, page in views.items()} == {name: [] for name in views}


def test_no_picture_of_a_statistic_holds_active_html():
    groups = [Group([1.0] * 50, epsilon=1, name=TEXTS[0]), Group([1.0] * 50, public=True, name=TEXTS[4])]

    answer = mixed_mean(groups, bounds=(0, 2), noise=SeededNoise(1))

    assert active(svg_picture(answer, title=TEXTS[1])) == []


@pytest.mark.slow
def test_a_card_of_a_strangers_making_is_shown_as_text_or_refused(made, tmp_path):
    folder = made.save(tmp_path / "out")
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    shown = 0
    for path in _leaves(about["card"], ("card",)):
        edited = copy.deepcopy(about)
        place = edited
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = TEXTS[0] + TEXTS[1]
        copied = shutil.copytree(folder, tmp_path / "copy")
        (copied / "release.json").write_text(json.dumps(edited), encoding="utf-8")
        try:
            loaded = Release.load(copied)
            assert active(render(loaded)) == active(loaded._repr_html_()) == [], path
            shown += 1
        except SidelightError:
            pass
        shutil.rmtree(copied)

    assert shown > 5


def _leaves(value, path):
    """Where texts and numbers stand; of long lists, among the first three."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:3]):
            yield from _leaves(inner, (*path, place))
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path
