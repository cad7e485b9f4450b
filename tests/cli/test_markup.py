"""Other people's text on a terminal: no markup, no commands, no second line."""

import json

import pytest

from commands import sidelight
from sidelight.cli._shared import talk, tell, tell_json, tell_table

NASTY = [
    "[/x]",
    "[red]b",
    "[link=http://x]c",
    ":smile:",
    "\\[bold]",
    "esc\x1b[2Jd",
    "two\nlines",
    "c1\x9bK",
    "\u202eback",
]


def is_quiet(text):
    return not any(letter in text for letter in "\x1b\x9b\u202e")


def shown(text):
    """As it stands on a terminal: all letters that show themselves."""
    return "".join("�" if letter in "\x1b\x9b\u202e\n" else letter for letter in text)


def quoted(text):
    return json.dumps(text, ensure_ascii=True)


@pytest.mark.parametrize("text", NASTY)
def test_every_cell_title_and_heading_of_a_table_shows_its_letters(text, capsys):
    tell_table(f"title {text}", [text, "number"], [[text, 1.0], ["plain", 2.0]])
    out = capsys.readouterr().out
    assert is_quiet(out)
    assert out.count(shown(text)) == 3


@pytest.mark.parametrize("text", NASTY)
def test_talk_and_results_hold_no_command_to_the_terminal(text, capsys):
    talk(text)
    tell(text)
    tell_json({text: text})
    captured = capsys.readouterr()
    assert is_quiet(captured.err)
    assert "\x1b" not in captured.out
    assert "\x9b" not in captured.out
    assert json.loads(captured.out.partition("\n{")[2].join(["{", ""])) == {text: text}


@pytest.mark.parametrize("text", NASTY)
def test_labels_columns_and_names_go_through_every_command(text, tmp_path):
    columns = f'[columns.{quoted(text)}]\nkind = "categorical"\nlabels = [{quoted(text)}, "b"]\n'
    other = '[columns.d]\nkind = "integer"\nlow = 0\nhigh = 1\n'
    (tmp_path / "people.toml").write_text(columns + other, encoding="utf-8")
    head, label = (f'"{text}"' for _ in range(2))
    rows = f"{label},0\nb,1\n" * 200
    (tmp_path / "people.csv").write_text(f"{head},d\n{rows}", encoding="utf-8", newline="")
    opened = ["ledger", "open", "people.ledger", "--epsilon", 9, "--delta", 1e-9, "--name", text]
    asked = ["release", "people.csv", "--schema", "people.toml", "--ledger", "people.ledger", "--epsilon", 1]
    commands = [
        opened,
        [*asked, "--workload", "2-way", "--out", "out", "--mechanism", "mwem", "--set", "rounds=1"],
        [*asked, "--set", f"{text}=1"],
        ["plan", "--schema", "people.toml", "--epsilon", 1, "--delta", 1e-9, "--workload", text],
        ["answer", "out", text],
        ["answer", "out", text, "d", "--json"],
        ["ledger", "show", "people.ledger", "--events"],
        ["ledger", "show", text],
        ["evaluate", "out", "people.csv", "--workload", "1-way"],
        ["schema", "check", "people.csv", "--schema", "people.toml"],
        ["mean", "people.csv", "--value", "d", "--bounds", 0, 1, "--by", text, "--cell", text, "--cell", "b",
         "--epsilon", 1],
        [text],
    ]  # fmt: skip
    for command in commands:
        code, out, err = sidelight(*command, folder=tmp_path)
        assert code in (0, 2), (command, err)
        assert is_quiet(out if "--json" not in command else "")
        assert is_quiet(err), command
    assert (tmp_path / "out" / "release.json").exists()
    answered = sidelight("answer", "out", text, folder=tmp_path)
    assert answered[0] == 0
    assert shown(text) in answered[1]
