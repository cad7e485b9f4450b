"""Measured quality in words and on disk."""

import json

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import ReleaseError
from sidelight.releases.quality import MeanError, Quality
from sidelight.testing import SeededNoise

SCHEMA = sl.Schema.from_domain({"a": 2, "b": 3})


def off(error, standard_error, *, marginals=10, of=10):
    return MeanError(error=error, standard_error=standard_error, marginals=marginals, of=of)


def quality(**attributes):
    return Quality(degrees={"2-way": off(0.10, 0.01), "1-way": off(0.03, 0.02)}, attributes=attributes)


@pytest.fixture
def saved(tmp_path):
    table = sl.Table.of_codes(SCHEMA.domain, np.random.default_rng(1).integers(0, (2, 3), (500, 2)))
    made = sl.release(
        table, schema=SCHEMA, epsilon=1, delta=1e-9, workload="2-way", mechanism="mwem", rounds=2,
        noise=SeededNoise(3), progress=False,
    )  # fmt: skip
    return made.save(tmp_path / "out")


def edit(folder, change):
    """Change a card as somebody would in an editor."""
    path = folder / "release.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    change(about["card"])
    path.write_text(json.dumps(about), encoding="utf-8")


def test_the_worst_attribute_is_named_where_it_stands_out():
    said = quality(a=off(0.09, 0.01), b=off(0.25, 0.01)).sentence

    assert said == "2-way tables are off by 10% ± 2% of records on average; worst attribute: b, 25% ± 2%"


def test_no_attribute_is_blamed_for_what_noise_made():
    said = quality(a=off(0.09, 0.05), b=off(0.14, 0.05)).sentence

    assert said.endswith(
        "; the error of the tables of each attribute is known only to ± 10%, so none can be named"
    )


def test_a_mean_that_noise_took_out_of_its_range_is_said_to_be_at_its_end():
    assert str(off(-0.012, 0.02)) == "0% ± 4%"
    assert str(off(3.23, 1.12)) == "200% ± 224%"


def test_half_of_the_error_is_known_to_half_of_its_noise():
    assert off(0.094, 0.105).misplaced == "5% ± 10%"


def test_an_error_that_noise_hides_is_not_told_as_a_number():
    """Of 200 people at ε = 1, tables that were off by 36% were said to be off by "0% ± 236%"."""
    hidden = off(-0.28, 1.18)

    assert hidden.words == "unknown (± 236%)"
    assert hidden.misplaced == "unknown"
    said = Quality(degrees={"2-way": hidden, "1-way": off(0.18, 4.7)}, attributes={"a": off(0.1, 17.0)})
    assert said.sentence == (
        "How far 2-way tables are off on average is unknown: noise of ± 236% of records hides it"
    )


@pytest.mark.parametrize(("error", "standard_error"), [(0.0, 0.49), (0.9, 0.44), (1.9, 0.9)])
def test_an_error_of_which_something_is_known_is_told(error, standard_error):
    known = off(error, standard_error)

    assert known.words == str(known)
    assert "unknown" not in Quality(degrees={"2-way": known}, attributes={}).sentence


def test_digits_follow_the_noise():
    assert str(off(0.10634, 0.0031)) == "10.6% ± 0.6%"
    assert str(off(0.10634, 0.00031)) == "10.63% ± 0.06%"


def test_an_even_part_is_said_to_be_one():
    some = Quality(degrees={"3-way": off(0.1, 0.01, marginals=1000, of=9880)}, attributes={})

    assert "an even part of them was measured: 1,000 of 9,880" in some.sentence


def test_a_folder_of_an_older_sidelight_has_no_quality_and_loads(saved):
    edit(saved, lambda card: card.pop("quality"))

    old = sl.Release.load(saved)

    assert old.quality is None
    assert "how good" not in old._repr_html_()


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["degrees"].update({"7-way": plain["degrees"]["2-way"]}),
        lambda plain: plain["degrees"].clear(),
        lambda plain: plain["degrees"]["2-way"].update(error="good"),
        lambda plain: plain["degrees"]["2-way"].update(error=True),
        lambda plain: plain["degrees"]["2-way"].update(standard_error=0.0),
        lambda plain: plain["degrees"]["2-way"].update(standard_error=1e308),
        lambda plain: plain["degrees"]["2-way"].update(error=-1e308),
        lambda plain: plain["degrees"]["2-way"].update(marginals=5, of=4),
        lambda plain: plain["degrees"]["2-way"].pop("of"),
        lambda plain: plain.pop("attributes"),
    ],
)
def test_quality_that_no_run_writes_is_refused(saved, change):
    edit(saved, lambda card: change(card["quality"]))

    with pytest.raises(ReleaseError):
        sl.Release.load(saved)


def test_a_notebook_shows_it_first(saved):
    release = sl.Release.load(saved)

    shown = release._repr_html_()

    assert shown.index("2-way tables are off by") < shown.index("privacy spent")
