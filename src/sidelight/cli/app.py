"""The ``sidelight`` command, and what its exit codes mean.

0 done, 2 bad input, 3 the budget said no, 130 interrupted (Ctrl-C, or a full disk): the same command goes on.
"""

import io
import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sidelight.cli import (
    answer,
    demo,
    evaluate,
    ledger,
    mean,
    plan,
    prior,
    quantile,
    release,
    report,
    sample,
    schema,
    screen,
)
from sidelight.cli._shared import talk
from sidelight.errors import PrivacyWarning, SidelightError
from sidelight.sources import source_name, without_addresses


class _InterruptedError(Exception):
    """Ctrl-C, under a name that typer lets through; its cause carries what the run noted."""


class _UnreadError(Exception):
    """Nobody reads the result any more, under a name that click lets through."""


class _Commands(TyperGroup):
    """All commands; newer typer would turn Ctrl-C into a bare exit code, older into an Abort."""

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
app.command()(demo.demo)
app.add_typer(schema.app, name="schema")
app.command()(plan.plan)
app.command()(release.release)
app.command()(answer.answer)
app.command()(sample.sample)
app.command()(report.report)
app.command()(evaluate.evaluate)
app.command()(screen.screen)
app.command()(mean.mean)
app.command()(quantile.quantile)
app.add_typer(prior.app, name="prior")
app.add_typer(ledger.app, name="ledger")


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


def main() -> None:
    """Run a command; whatever goes wrong ends in a sentence, never in a traceback."""
    _prepare_output()
    warnings.simplefilter("always", PrivacyWarning)
    warnings.showwarning = lambda message, *_: talk(f"warning: {message}")
    try:
        code = app(standalone_mode=False)
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
    """Print whatever names people and files have, and into nothing where output was closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _stop_writing() -> None:
    """Whoever read the result has seen enough (| head): what is left of it goes nowhere, without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _interrupted(stop: BaseException) -> str:
    """How to go on: what a resumable run noted, or where to look where nothing was kept."""
    notes = getattr(stop.__cause__, "__notes__", None)
    if notes:
        return " ".join(["interrupted.", *notes])
    return (
        "interrupted; nothing was kept to resume from. The same command starts anew, and "
        "`sidelight ledger show` tells whether anything was charged."
    )


def _without_arguments(text: str) -> str:
    """A message in which no argument of the command line stands that is an address."""
    for argument in sys.argv[1:]:
        for given in (argument, argument.partition("=")[2] if argument.startswith("-") else ""):
            if given and source_name(given) != given:
                text = text.replace(given, source_name(given))
    return without_addresses(text)


def _refused_by_the_machine(error: MemoryError | OSError) -> int:
    """What the system said; a run that had paid by then noted how to go on."""
    if isinstance(error, MemoryError):
        said = "there is not enough memory. Ask for less: coarser bins, fewer records, a smaller model."
    else:
        said = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    notes = getattr(error, "__notes__", [])
    talk(_without_arguments(" ".join([f"error: {said}", *notes])))
    return 4 if notes else 2


def _unexpected(error: Exception) -> int:
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        talk(_without_arguments(f"error: {error.format_message()}"))  # usage errors of the parser
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
