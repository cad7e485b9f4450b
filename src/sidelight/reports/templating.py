"""Pages from templates: every value is escaped, a misspelt name is an error, numbers are for people."""

import shlex
from typing import Any

from sidelight._check import count_of, listed
from sidelight.reports import words


def environment(*packages: str) -> Any:
    """A Jinja2 environment for the templates of these packages; the first that has a template gives it."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": words.number,
        "percent": words.percent,
        "chance": words.chance,
        "tiny": words.tiny,
        "quoted": shlex.quote,
    }
    made.globals |= {"count_of": count_of, "listed": listed, "zip": zip}
    return made
