"""The ``sidelight`` command, and its exit codes.

0    done
1    a bug
2    bad input or usage; nothing was charged
3    the budget does not suffice, or the ledger's policy does not allow it; nothing was read
4    released, but not accepted: a criterion of --accept failed, or noise hides whether it is met; of an
     audit: a claim was refuted
130  interrupted (Ctrl-C), or memory, disk or the ledger's database gave out in a run that had paid; the
     same command resumes
"""

import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sidelight._check import brief
from sidelight._faults import INTERRUPTED, fault_of
from sidelight._interrupt import heard, told
from sidelight.cli import (
    answer,
    audit,
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
    studio,
)
from sidelight.cli._shared import talk
from sidelight.errors import (
    MissingExtraError,
    PrivacyWarning,
    PublicDataNote,
    PublicDataWarning,
    SidelightError,
    UnrecordedWarning,
)
from sidelight.sources import source_name, without_addresses


class _InterruptedError(Exception):
    """Ctrl-C, as an exception that typer does not handle itself; its cause carries the run's notes."""


class _UnreadError(Exception):
    """A closed output pipe, as an exception that click does not handle itself."""


class _Commands(TyperGroup):
    """All commands. Ctrl-C is caught here: newer typer makes a bare exit code of it, older typer an Abort."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        try:
            with told("Nothing was read, and nothing was spent."):
                return super().make_context(*given, **more)
        except KeyboardInterrupt as stop:
            raise _InterruptedError from stop

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
app.command(short_help="Do all of it on a local web page.")(studio.studio)
app.command(short_help="Attack a mechanism: how much of its claim can be seen?")(audit.audit)
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
    warnings.simplefilter("always", UnrecordedWarning)
    warnings.showwarning = lambda message, kind, *_: talk(
        f"{'note' if issubclass(kind, PublicDataNote) else 'warning'}: {message}"
    )
    with heard() as interrupts:
        sys.exit(_run(interrupts))


def _run(interrupts: Sequence[int]) -> int:
    """The exit code of the command; what went wrong is told."""
    code: object
    try:
        code = _command(standalone_mode=False)
        sys.stdout.flush()
    except (_UnreadError, BrokenPipeError):
        _stop_writing()
        code = 0
    except SidelightError as error:
        notes = getattr(error, "__notes__", [])
        if interrupts and isinstance(error, MissingExtraError):
            code = _hidden_interrupt()  # the library is there: loading it was stopped
        else:
            talk(_without_arguments(" ".join([f"error: {error}", *notes])))
            code = 130 if notes else error.exit_code
    except (_InterruptedError, typer.Abort, KeyboardInterrupt) as stop:
        caught = stop.__cause__ if isinstance(stop.__cause__, KeyboardInterrupt) else KeyboardInterrupt()
        fault = fault_of(caught)
        talk(fault.words)
        code = fault.code
    except typer.Exit as done:
        code = done.exit_code
    except Exception as error:  # noqa: BLE001  # no traceback ever reaches a user
        code = _hidden_interrupt() if interrupts else _unexpected(error)
    return code if isinstance(code, int) else 0


def _hidden_interrupt() -> int:
    """Ctrl-C that reached us as the error of a library."""
    talk(
        "interrupted. The same command goes on where something was kept, and starts anew where nothing was; "
        "`sidelight ledger show` tells whether anything was charged."
    )
    return INTERRUPTED


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


def _without_arguments(text: str) -> str:
    """The message with every address that was typed on the command line replaced by its safe name."""
    for argument in sys.argv[1:]:
        for given in (argument, argument.partition("=")[2] if argument.startswith("-") else ""):
            if given and source_name(given) != given:
                text = text.replace(given, source_name(given))
    return without_addresses(text)


def _usage(error: Any) -> str:
    """The parser's complaint about the command line, with a correction."""
    said = str(error.format_message())
    about = getattr(error, "param", None)
    found: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not found or not isinstance(found[0].get("input"), str):
        is_missing = type(error).__name__ == "MissingParameter"
        if getattr(error, "option_name", None) == "--delta":
            return "there is no option --delta here: δ is the ledger's, as `ledger open` promised it."
        told = getattr(about, "help", None) if is_missing else None
        return f"{said.removesuffix('.')}: {told}" if told else said
    given, limits = found[0]["input"], found[0].get("ctx", {})
    wanted = {
        "float_parsing": "a number, such as 0.5",
        "int_parsing": "a whole number",
        "int_parsing_size": "a smaller whole number",
        "greater_than_equal": f"at least {limits.get('ge')}",
        "less_than_equal": f"at most {limits.get('le')}",
    }.get(str(found[0].get("type")))
    if wanted is not None and about is not None:
        is_option = about.opts[0].startswith("-")
        said = f"{about.opts[0] if is_option else about.metavar or about.name} must be {wanted}"
    several = getattr(about, "multiple", False) or getattr(about, "nargs", 1) != 1
    is_whole, most = found[0].get("type") == "int_parsing", limits.get("le")
    commas = _hint_at_commas(given, several=several, is_whole=is_whole)
    percents = "" if is_whole else _hint_at_percents(given, is_share=most is not None and float(most) <= 1)
    return f"{said}; got {brief(given)}.{commas}{percents}"


def _hint_at_percents(given: str, *, is_share: bool) -> str:
    """A guess at a percentage where a share is meant: "95%", or 95 where nothing above 1 is allowed.

    >>> _hint_at_percents("5%", is_share=False), _hint_at_percents("95", is_share=True)
    (' As a share, 5% is 0.05.', ' As a share, 95% is 0.95.')
    """
    number = given.strip().removesuffix("%").strip()
    has_sign = given.strip().endswith("%")
    # Superscripts and circled numbers are digits, too, but no part of a number.
    if not number.replace(".", "", 1).isdecimal() or not (has_sign or is_share) or float(number) > 100:
        return ""
    return f" As a share, {number}% is {float(number) / 100:.6g}."


def _hint_at_commas(given: str, *, several: bool, is_whole: bool = False) -> str:
    """A guess at the meaning of a comma between digits.

    >>> _hint_at_commas("0,5", several=False), _hint_at_commas("0.3,1", several=True)
    (' Decimals have a point: 0.5.', ' Separate several by spaces: 0.3 1.')
    """
    parts = given.split(",")
    if len(parts) < 2 or not all(part.strip().replace(".", "", 1).isdigit() for part in parts):
        return ""
    is_decimal = len(parts) == 2 and "".join(parts).isdigit() and not is_whole
    point = f" Decimals have a point: {'.'.join(parts)}." if is_decimal else ""
    return point + (f" Separate several by spaces: {' '.join(map(str.strip, parts))}." if several else "")


def _unexpected(error: Exception) -> int:
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):  # usage errors of the parser
        talk(_without_arguments(f"error: {_usage(error)}"))
        return 2
    if os.environ.get("SIDELIGHT_DEBUG") and not isinstance(error, MemoryError | OSError):
        talk("".join(traceback.format_exception(error)))
    fault = fault_of(error)
    talk(_without_arguments(f"error: {fault.words}"))
    return fault.code
