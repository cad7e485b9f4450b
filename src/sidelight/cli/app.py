"""The ``sidelight`` command, and its exit codes.

0    done
1    a bug
2    bad input or usage; nothing was charged
3    the budget does not suffice; nothing was read
4    released, but not accepted: a criterion of --accept failed, or noise hides whether it is met
130  interrupted (Ctrl-C), or memory or disk gave out in a run that had paid; the same command resumes
"""

import io
import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sidelight._check import brief
from sidelight.cli import (
    answer,
    demo,
    discover,
    evaluate,
    ledger,
    mean,
    plan,
    prior,
    quantile,
    rehearse,
    release,
    report,
    sample,
    schema,
    screen,
)
from sidelight.cli._shared import talk
from sidelight.errors import PrivacyWarning, PublicDataWarning, SidelightError
from sidelight.sources import source_name, without_addresses


class _InterruptedError(Exception):
    """Ctrl-C, as an exception that typer does not handle itself; its cause carries the run's notes."""


class _UnreadError(Exception):
    """A closed output pipe, as an exception that click does not handle itself."""


class _Commands(TyperGroup):
    """All commands. Ctrl-C is caught here: newer typer makes a bare exit code of it, older typer an Abort."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise _InterruptedError from stop
        except BrokenPipeError as unread:
            raise _UnreadError from unread


app = typer.Typer(
    name="sidelight",
    cls=_Commands,
    help="Differentially private releases and synthetic tables, assisted by public data.",
    epilog="Start with: sidelight demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(short_help="Release a survey with and without public data.")(demo.demo)
app.add_typer(schema.app, name="schema", short_help="Draft a schema, or check a table against one.")
app.command()(plan.plan)
app.command(short_help="Show error against ε, on public data alone.")(rehearse.rehearse)
app.command(short_help="Find labels and bin edges privately, for a schema.")(discover.discover)
app.command(short_help="Spend budget once; write a release for all to see.")(release.release)
app.command()(answer.answer)
app.command()(sample.sample)
app.command()(report.report)
app.command()(evaluate.evaluate)
app.command(short_help="Find out which public table is worth using.")(screen.screen)
app.command()(mean.mean)
app.command()(quantile.quantile)
app.add_typer(prior.app, name="prior")
app.add_typer(ledger.app, name="ledger", short_help="Open, show and verify a table's ledger.")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as version_of

        typer.echo(version_of("sidelight"))
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Differentially private releases and synthetic tables, assisted by public data."""


_command = typer.main.get_command(app)


def main() -> None:
    """Run a command. Every failure is reported in a sentence, never as a traceback."""
    _prepare_output()
    warnings.simplefilter("always", PrivacyWarning)
    warnings.simplefilter("always", PublicDataWarning)
    warnings.showwarning = lambda message, *_: talk(f"warning: {message}")
    try:
        code = _command(standalone_mode=False)
        sys.stdout.flush()
    except (_UnreadError, BrokenPipeError):
        _stop_writing()
        code = 0
    except SidelightError as error:
        talk(_without_arguments(f"error: {error}"))
        code = error.exit_code
    except (_InterruptedError, typer.Abort, KeyboardInterrupt) as stop:
        talk(_interrupted(stop))
        code = 130
    except typer.Exit as done:
        code = done.exit_code
    except Exception as error:  # noqa: BLE001  # no traceback ever reaches a user
        code = _unexpected(error)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_output() -> None:
    """Make every name printable, whatever the terminal's encoding; discard the output where it is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _stop_writing() -> None:
    """Discard the rest of the output without an error: its reader has gone, as in ``| head``."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _interrupted(stop: BaseException) -> str:
    """How to go on: the run's own note where it can be resumed, else where to see what was charged."""
    notes = getattr(stop.__cause__, "__notes__", None)
    if notes:
        return " ".join(["interrupted.", *notes])
    return (
        "interrupted; nothing was kept to resume from. The same command starts anew, and "
        "`sidelight ledger show` tells whether anything was charged."
    )


def _without_arguments(text: str) -> str:
    """The message with every address that was typed on the command line replaced by its safe name."""
    for argument in sys.argv[1:]:
        for given in (argument, argument.partition("=")[2] if argument.startswith("-") else ""):
            if given and source_name(given) != given:
                text = text.replace(given, source_name(given))
    return without_addresses(text)


def _refused_by_the_machine(error: MemoryError | OSError) -> int:
    """Report that memory or disk gave out; exit code 130 if the run had paid, and so can be resumed."""
    if isinstance(error, MemoryError):
        said = "there is not enough memory. Ask for less: coarser bins, fewer records, a smaller model."
    else:
        said = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    notes = getattr(error, "__notes__", [])
    talk(_without_arguments(" ".join([f"error: {said}", *notes])))
    return 130 if notes else 2


def _given(error: Exception) -> str:
    """What stood on the command line, where the parser's own sentence does not say it."""
    found: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not found or not isinstance(found[0].get("input"), str):
        return ""
    given = found[0]["input"]
    whole, comma, part = given.partition(",")
    hint = f" Decimals have a point: {whole}.{part}." if comma and f"{whole}{part}".isdigit() else ""
    return f"; got {brief(given)}.{hint}"


def _unexpected(error: Exception) -> int:
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        talk(
            _without_arguments(f"error: {error.format_message()}{_given(error)}")
        )  # usage errors of the parser
        return 2
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.strerror):
        return _refused_by_the_machine(error)
    if os.environ.get("SIDELIGHT_DEBUG"):
        talk("".join(traceback.format_exception(error)))
    # PRIVACY: an unexpected error's own text may quote data, so only its kind and place are shown.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    talk(
        f"error: sidelight stopped on a {type(error).__name__} at {place}; this is a bug, please report it. "
        "Its text is withheld, since it may hold data; set SIDELIGHT_DEBUG=1 to see it on your own machine."
    )
    return 1
