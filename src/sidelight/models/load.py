"""From saved values back to a model, by its kind."""

import importlib

from sidelight.data.domain import Domain
from sidelight.errors import ReleaseError
from sidelight.models.model import Model, ModelState

_WHERE = {
    "graphical": "sidelight.models.graphical:GraphicalModel",
    "histogram": "sidelight.models.histogram:Histogram",
    "support": "sidelight.models.support:Support",
    "residuals": "sidelight.models.reconstruction:Reconstruction",
    "components": "sidelight.models.components:Components",
    "product-mixture": "sidelight.models.product_mixture:ProductMixture",
    "refined": "sidelight.models.refined:Refined",
}


def model_from_state(domain: Domain, state: ModelState) -> Model:
    """The model whose ``state`` this is. An unknown kind is refused, never guessed."""
    if state.kind not in _WHERE:
        raise ReleaseError(f"the release holds a model of kind {state.kind!r}; update sidelight to read it.")
    module, _, name = _WHERE[state.kind].partition(":")
    model: Model = getattr(importlib.import_module(module), name).from_state(domain, state)
    return model
