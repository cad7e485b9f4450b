"""What notebooks show: small, escaped, without scripts or colours of its own, and nothing private."""

import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

import sidelight as sl
from sidelight._check import listed
from sidelight._html import table
from sidelight.data.schema import CategoricalColumn, IntegerColumn, Schema
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.testing import SeededNoise

HOSTILE = "<script>alert('x')</script>\" onmouseover=\"y&lt;"


class Tags(HTMLParser):
    """Every tag with its attributes, and every tag that was left open."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def hostile_schema():
    return Schema(
        (CategoricalColumn(HOSTILE, (HOSTILE, "b")), IntegerColumn("age", low=0, high=99, bins=5)), Unit()
    )


def hostile_ledger():
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), HOSTILE))
    ledger.begin(Rho(Fraction(1, 100)), label=HOSTILE)
    run = ledger.begin(Epsilon(Fraction(1, 100)), label="small")
    ledger.append(Laplace.at(Epsilon(Fraction(1, 100)), what=HOSTILE, l1=2), run=run)
    ledger.close(run)
    return ledger


def hostile_release():
    schema = hostile_schema()
    codes = np.zeros((50, 2), dtype=np.uint8)
    return sl.release(
        sl.Table.of_codes(schema.domain, codes, schema=schema), schema=schema, epsilon=1.0, delta=1e-9,
        mechanism="mwem", workload="1-way", rounds=2, noise=SeededNoise(1), progress=False,
    )  # fmt: skip


SHOWN = {
    "release": hostile_release,
    "schema": hostile_schema,
    "budget": lambda: Budget(epsilon=1.0, delta=1e-9),
    "ledger": hostile_ledger,
}


@pytest.mark.parametrize("what", SHOWN)
def test_hostile_words_stay_words(what):
    tags = Tags(SHOWN[what]()._repr_html_())

    assert not tags.open
    assert {tag for tag, _ in tags.found} <= {
        "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "b"
    }  # fmt: skip
    assert {name for _, attrs in tags.found for name in attrs} <= {"style", "scope", "role", "aria-label"}


def test_a_label_planted_without_escaping_is_caught():
    planted = table("t", [("a", "b")]).replace("<td>b</td>", f"<td>{HOSTILE}</td>")

    assert "script" in {tag for tag, _ in Tags(planted).found}


@pytest.mark.parametrize("what", SHOWN)
def test_colours_are_the_notebooks_own(what):
    shown = SHOWN[what]()._repr_html_()

    calm = re.sub(
        r'<p style="background:#a40000;color:#fff.*?</p>', "", shown
    )  # the alarm is red in any theme
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|white|black", calm)
    assert len(shown) < 5000


def test_a_budget_tells_its_promise_in_words():
    assert "ε = 1 and δ = 1e-09" in Budget(epsilon=1.0, delta=1e-9)._repr_html_()
    assert "pure differential privacy with ε = 0.5" in Budget(epsilon=0.5, delta=0.0)._repr_html_()


def test_a_ledger_tells_what_is_used_and_by_whom():
    shown = hostile_ledger()._repr_html_()

    assert "% of the budget is used" in shown
    assert "open" in shown
    assert "closed" in shown


def test_a_schema_tells_columns_and_labels():
    shown = hostile_schema()._repr_html_()

    assert "0–19" in shown
    assert "replacing one record" in shown


def test_a_domain_beyond_all_floats_can_be_shown():
    wide = Schema.from_domain({f"a{index}": 10 for index in range(400)})

    shown = wide._repr_html_()

    assert "about 10^400.0" in shown
    assert "and 200 more" in shown


def test_a_seeded_release_says_that_it_is_not_private():
    assert "NOT PRIVATE" in hostile_release()._repr_html_()


def test_long_lists_and_long_words_are_cut():
    assert listed(map(str, range(100)), most=2) == "0, 1 and 98 more"
    assert len(table("t", [("a", "x" * 10_000)])) < 600


def test_a_printed_release_is_one_line():
    printed = repr(SHOWN["release"]())

    assert printed.startswith("Release(")
    assert len(printed) < 200
