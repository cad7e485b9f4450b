"""``sidelight report``, as a person types it."""

import json

import pytest
import typer
from typer.testing import CliRunner

from sidelight.cli import report
from sidelight.errors import ReleaseError

app = typer.Typer()
app.command()(report.report)


@pytest.fixture
def folder(released, tmp_path):
    return released.save(tmp_path / "out")


def test_the_report_is_written_where_it_was_asked_for(folder, tmp_path):
    done = CliRunner().invoke(app, [str(folder), "--to", str(tmp_path / "page.html"), "--json"])

    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told == {"to": str(tmp_path / "page.html"), "bytes": (tmp_path / "page.html").stat().st_size}


def test_a_private_report_is_named_so_and_says_so(released, people, folder, tmp_path):
    schema, table = people
    lines = [",".join(schema.domain.attrs)]
    labels = [column.code_labels() for column in schema.columns]
    for codes in table.codes():
        values = [str(names[code]) for names, code in zip(labels, codes, strict=True)]
        quoted = ['"' + value.replace('"', '""') + '"' for value in values]
        lines.append(",".join("" if value == '"missing"' else value for value in quoted))
    (tmp_path / "private.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    done = CliRunner().invoke(
        app, [str(folder), "--to", str(tmp_path / "page.html"), "--against", str(tmp_path / "private.csv")]
    )

    assert done.exit_code == 0, done.output
    assert "PRIVATE" in done.stderr
    assert (tmp_path / "page.PRIVATE.html").is_file()
    assert not (tmp_path / "page.html").exists()


def test_a_folder_that_is_no_release_is_refused_in_a_sentence(tmp_path):
    done = CliRunner().invoke(app, [str(tmp_path)])

    assert isinstance(done.exception, ReleaseError)
    assert "not a release" in str(done.exception)


def test_help_shows_an_example():
    assert "Example: sidelight report" in CliRunner().invoke(app, ["--help"]).stdout
