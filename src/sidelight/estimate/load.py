"""From saved values back to a model, by its kind."""

import importlib

from sidelight.data.domain import Domain
from sidelight.errors import ReleaseError
from sidelight.estimate.model import Model, ModelState

_WHERE = {
    "graphical": "sidelight.estimate.graphical:GraphicalModel",
    "histogram": "sidelight.estimate.histogram:Histogram",
    "support": "sidelight.estimate.support:Support",
    "blend": "sidelight.estimate.blend:Blend",
    "components": "sidelight.estimate.components:Components",
}


def model_from_state(domain: Domain, state: ModelState) -> Model:
    """The model whose ``state`` this is. An unknown kind is refused, never guessed."""
    if state.kind not in _WHERE:
        raise ReleaseError(f"the release holds a model of kind {state.kind!r}; update sidelight to read it.")
    module, _, name = _WHERE[state.kind].partition(":")
    model: Model = getattr(importlib.import_module(module), name).from_state(domain, state)
    return model
