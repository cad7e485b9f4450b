"""A plugin for pytest that lists what was skipped and why; in CI, a skip that need not have been fails.

A test may skip for one of the reasons below, where the machine really lacks what it needs. Every other
reason is a part that the development extras bring: in CI (``CI=true``) its absence is a failure.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Lack:
    """Something that a machine may lack."""

    says: str
    """How the reason of such a skip begins."""
    is_there: Callable[[], bool]
    """Whether the machine has it after all."""


def _has_data() -> bool:
    named = os.environ.get("SIDELIGHT_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder.is_dir()


def _has_browser() -> bool:
    return any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))


def _has_java() -> bool:
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


def _has_gpu() -> bool:
    return Path("/dev/nvidia0").exists()


def _has_mbi() -> bool:
    return "SIDELIGHT_MBI_PYTHON" in os.environ or find_spec("mbi") is not None


LACKS = (
    Lack("real data sets are absent", _has_data),
    Lack("no Chromium here", _has_browser),
    Lack("Spark needs Java", _has_java),
    # The CPU build is installed by `make test-slow`, where there is one to be had.
    Lack("torch is not installed", lambda: find_spec("torch") is not None),
    Lack("no GPU here", _has_gpu),
    # A peer that brings JAX, so no development extra.
    Lack("mbi is not installed", _has_mbi),
    Lack("needs fork and SIGKILL", lambda: hasattr(os, "fork")),
    Lack("nothing is forbidden to root", lambda: os.geteuid() != 0),
    # Of engines, whatever machine they run on.
    Lack("Spark has no nanoseconds", lambda: False),
    Lack("Spark has no times of day", lambda: False),
    Lack("PostgreSQL has no nanoseconds", lambda: False),
    Lack("this PostgreSQL was built without ICU", lambda: False),
)


def is_expected(reason: str) -> bool:
    """Whether the machine lacks what the reason says it lacks."""
    return any(reason.startswith(lack.says) and not lack.is_there() for lack in LACKS)


def listed(reasons: Iterable[str]) -> list[tuple[str, int, bool]]:
    """Each reason once: how many tests skipped for it, and whether they had to; those that had not, first."""
    counted = Counter(reasons)
    each = [(reason, number, is_expected(reason)) for reason, number in counted.items()]
    return sorted(each, key=lambda one: (one[2], one[0]))


def _reasons(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    return [report.longrepr[2].removeprefix("Skipped: ") for report in skipped if report.longrepr]


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def pytest_terminal_summary(terminalreporter, config) -> None:
    """After the results: what was skipped, and why."""
    found = listed(_reasons(config))
    if found:
        terminalreporter.section("skipped, and why")
    for reason, number, expected in found:
        mark = "" if expected else "  ** could have run **" if _is_ci() else "  (fails in CI)"
        terminalreporter.line(f"{number:5d}  {reason}{mark}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session, exitstatus) -> None:
    """In CI, fail where something skipped that could have run."""
    unexplained = [reason for reason in _reasons(session.config) if not is_expected(reason)]
    if _is_ci() and unexplained and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
