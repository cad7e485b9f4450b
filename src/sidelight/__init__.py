"""Differentially private query release and synthetic tables, assisted by public data.

The public names, in the order of the flow. Each is imported when it is first used, so that
``import sidelight`` stays quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidelight import testing as testing
    from sidelight.data.domain import Domain as Domain
    from sidelight.data.reading.file_format import FileFormat as FileFormat
    from sidelight.data.schema import Schema as Schema
    from sidelight.data.table import Table as Table
    from sidelight.errors import BudgetExhausted as BudgetExhausted
    from sidelight.errors import PrivacyWarning as PrivacyWarning
    from sidelight.errors import PublicDataWarning as PublicDataWarning
    from sidelight.errors import SidelightError as SidelightError
    from sidelight.errors import UnrecordedWarning as UnrecordedWarning
    from sidelight.evaluation.evaluate import evaluate as evaluate
    from sidelight.evaluation.rehearsal import rehearse as rehearse
    from sidelight.evaluation.screening import best_mixture_error as best_mixture_error
    from sidelight.evaluation.screening import screen as screen
    from sidelight.privacy.budget import Budget as Budget
    from sidelight.privacy.budget import Rho as Rho
    from sidelight.privacy.sql_ledger import SqlLedger as SqlLedger
    from sidelight.privacy.unit import Unit as Unit
    from sidelight.queries.workload import Workload as Workload
    from sidelight.releases.plan import Plan as Plan
    from sidelight.releases.plan import plan as plan
    from sidelight.releases.prior import prior as prior
    from sidelight.releases.release import Release as Release
    from sidelight.releases.run import release as release
    from sidelight.releases.synthesizer import Synthesizer as Synthesizer
    from sidelight.reports.report import report as report
    from sidelight.statistics.discovery import discover as discover
    from sidelight.statistics.discovery import discover_records as discover_records
    from sidelight.statistics.group import Group as Group
    from sidelight.statistics.grouped_mean import grouped_mean as grouped_mean
    from sidelight.statistics.mixed_mean import mixed_mean as mixed_mean
    from sidelight.statistics.mixed_quantile import mixed_quantile as mixed_quantile

    Ledger = SqlLedger

# Each public name and its module; with the name that it has there, where that is another.
_WHERE = {
    "FileFormat": "sidelight.data.reading.file_format",
    "Schema": "sidelight.data.schema",
    "Domain": "sidelight.data.domain",
    "Table": "sidelight.data.table",
    "Workload": "sidelight.queries.workload",
    "Unit": "sidelight.privacy.unit",
    "Budget": "sidelight.privacy.budget",
    "Rho": "sidelight.privacy.budget",
    "Ledger": "sidelight.privacy.sql_ledger:SqlLedger",
    "SqlLedger": "sidelight.privacy.sql_ledger",
    "Plan": "sidelight.releases.plan",
    "plan": "sidelight.releases.plan",
    "release": "sidelight.releases.run",
    "Release": "sidelight.releases.release",
    "Synthesizer": "sidelight.releases.synthesizer",
    "report": "sidelight.reports.report",
    "prior": "sidelight.releases.prior",
    "evaluate": "sidelight.evaluation.evaluate",
    "rehearse": "sidelight.evaluation.rehearsal",
    "screen": "sidelight.evaluation.screening",
    "best_mixture_error": "sidelight.evaluation.screening",
    "discover": "sidelight.statistics.discovery",
    "discover_records": "sidelight.statistics.discovery",
    "Group": "sidelight.statistics.group",
    "mixed_mean": "sidelight.statistics.mixed_mean",
    "mixed_quantile": "sidelight.statistics.mixed_quantile",
    "grouped_mean": "sidelight.statistics.grouped_mean",
    "SidelightError": "sidelight.errors",
    "BudgetExhausted": "sidelight.errors",
    "PrivacyWarning": "sidelight.errors",
    "PublicDataWarning": "sidelight.errors",
    "UnrecordedWarning": "sidelight.errors",
}

__all__ = [*_WHERE, "testing"]  # the keys are names


def __getattr__(name: str) -> Any:
    if name == "testing":
        return importlib.import_module("sidelight.testing")
    if name not in _WHERE:
        raise AttributeError(f"module 'sidelight' has no attribute {name!r}")
    module, _, own = _WHERE[name].partition(":")
    return getattr(importlib.import_module(module), own or name)


def __dir__() -> list[str]:
    return sorted(__all__)
