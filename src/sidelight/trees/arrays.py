"""The array library that inference runs on: NumPy, or torch on a processor or a GPU.

Inference and estimation are written against the few operations below, so the same code gives
the same numbers on either. Everything is float64: a model of probabilities as small as 10⁻³⁰⁰
has no use for less.

>>> library = arrays("numpy")
>>> library.numpy(library.exp(library.array([0.0])))
array([1.])
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight._extras import need
from sidelight.errors import SettingError


class Arrays(Protocol):
    """The operations that inference needs. Arrays are of the library's own type (hence Any)."""

    @property
    def name(self) -> str: ...
    def __hash__(self) -> int: ...
    def array(self, values: ArrayLike) -> Any: ...
    def numpy(self, values: Any) -> NDArray[Any]: ...
    def empty(self, shape: Sequence[int]) -> Any: ...
    def full(self, shape: Sequence[int], value: float) -> Any: ...
    def exp(self, values: Any, out: Any = None) -> Any: ...
    def log(self, values: Any) -> Any:
        """The logarithm, with log 0 = −∞ and no warning."""

    def add(self, left: Any, right: Any, out: Any = None) -> Any: ...
    def multiply(self, left: Any, right: Any, out: Any = None) -> Any: ...
    def ratio(self, above: Any, below: Any) -> Any:
        """above/below where ``below`` is positive, and 0 elsewhere."""

    def finite(self, values: Any) -> Any:
        """The values, with 0 in place of ±∞."""

    def transpose(self, values: Any, axes: tuple[int, ...]) -> Any:
        """The axes in another order."""

    def sum(self, values: Any, axis: int) -> Any: ...
    def max(self, values: Any, axes: tuple[int, ...]) -> Any:
        """The maximum along these axes, which are kept with length 1."""

    def greatest(self, values: Any) -> float: ...
    def total(self, values: Any) -> float: ...
    def dot(self, left: Any, right: Any) -> float: ...
    def sqrt(self, values: Any) -> Any: ...
    def stack_flat(self, parts: Sequence[Any]) -> Any:
        """One flat vector of all parts."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Silences overflow warnings where the caller checks for overflow itself."""


class NumpyArrays:
    """NumPy, the default."""

    name = "numpy"

    def array(self, values: ArrayLike) -> Any:
        return np.ascontiguousarray(values, dtype=np.float64)

    def numpy(self, values: Any) -> NDArray[Any]:
        return np.asarray(values)

    def empty(self, shape: Sequence[int]) -> Any:
        return np.empty(shape)

    def full(self, shape: Sequence[int], value: float) -> Any:
        return np.full(shape, value)

    def exp(self, values: Any, out: Any = None) -> Any:
        return np.exp(values, out=out)

    def log(self, values: Any) -> Any:
        return np.log(values, out=np.full(np.shape(values), -np.inf), where=np.asarray(values) > 0)

    def add(self, left: Any, right: Any, out: Any = None) -> Any:
        return np.add(left, right, out=out)

    def multiply(self, left: Any, right: Any, out: Any = None) -> Any:
        return np.multiply(left, right, out=out)

    def ratio(self, above: Any, below: Any) -> Any:
        return np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)

    def finite(self, values: Any) -> Any:
        return np.where(np.isfinite(values), values, 0.0)

    def transpose(self, values: Any, axes: tuple[int, ...]) -> Any:
        return values.transpose(axes)

    def sum(self, values: Any, axis: int) -> Any:
        return np.add.reduce(values, axis=axis)

    def max(self, values: Any, axes: tuple[int, ...]) -> Any:
        return np.maximum.reduce(values, axis=axes, keepdims=True)

    def greatest(self, values: Any) -> float:
        return float(np.maximum.reduce(values, axis=None))

    def total(self, values: Any) -> float:
        return float(np.add.reduce(values, axis=None))

    def dot(self, left: Any, right: Any) -> float:
        return float(np.dot(left.reshape(-1), right.reshape(-1)))

    def sqrt(self, values: Any) -> Any:
        return np.sqrt(values)

    def stack_flat(self, parts: Sequence[Any]) -> Any:
        return np.concatenate([part.reshape(-1) for part in parts]) if parts else np.zeros(0)

    def quiet(self) -> AbstractContextManager[Any]:
        return np.errstate(over="ignore", invalid="ignore")


class TorchArrays:
    """Torch, on the device named: "cpu" or "cuda"."""

    def __init__(self, device: str = "cpu") -> None:
        self._torch: Any = need("torch", "to run a graphical model on torch")
        self._device = device
        self.name = f"torch:{device}"
        if device.startswith("cuda") and not self._torch.cuda.is_available():
            raise SettingError("arrays='torch:cuda' needs a GPU, and torch sees none here; use 'torch:cpu'.")

    def array(self, values: ArrayLike) -> Any:
        if isinstance(values, self._torch.Tensor):
            return values.to(dtype=self._torch.float64, device=self._device).contiguous()
        plain = np.array(values, dtype=np.float64)
        return self._torch.as_tensor(plain, device=self._device)

    def numpy(self, values: Any) -> NDArray[Any]:
        return np.asarray(values.detach().cpu().numpy())

    def empty(self, shape: Sequence[int]) -> Any:
        return self._torch.empty(tuple(shape), dtype=self._torch.float64, device=self._device)

    def full(self, shape: Sequence[int], value: float) -> Any:
        return self._torch.full(tuple(shape), value, dtype=self._torch.float64, device=self._device)

    def exp(self, values: Any, out: Any = None) -> Any:
        return self._torch.exp(values, out=out)

    def log(self, values: Any) -> Any:
        return self._torch.log(values)

    def add(self, left: Any, right: Any, out: Any = None) -> Any:
        return self._torch.add(left, right, out=out)

    def multiply(self, left: Any, right: Any, out: Any = None) -> Any:
        return self._torch.mul(left, right, out=out)

    def ratio(self, above: Any, below: Any) -> Any:
        positive = below > 0
        return self._torch.where(positive, above / self._torch.where(positive, below, 1.0), 0.0)

    def finite(self, values: Any) -> Any:
        return self._torch.where(self._torch.isfinite(values), values, 0.0)

    def transpose(self, values: Any, axes: tuple[int, ...]) -> Any:
        return values.permute(axes)

    def sum(self, values: Any, axis: int) -> Any:
        return values.sum(dim=axis)

    def max(self, values: Any, axes: tuple[int, ...]) -> Any:
        return values.amax(dim=axes, keepdim=True) if axes else values

    def greatest(self, values: Any) -> float:
        return float(values.max())

    def total(self, values: Any) -> float:
        return float(values.sum())

    def dot(self, left: Any, right: Any) -> float:
        return float(self._torch.dot(left.reshape(-1), right.reshape(-1)))

    def sqrt(self, values: Any) -> Any:
        return self._torch.sqrt(values)

    def stack_flat(self, parts: Sequence[Any]) -> Any:
        if not parts:
            return self.full((0,), 0.0)
        return self._torch.cat([part.reshape(-1) for part in parts])

    def quiet(self) -> AbstractContextManager[Any]:
        return nullcontext()


@lru_cache(maxsize=8)
def arrays(name: str = "numpy") -> Arrays:
    """The library of this name: "numpy", "torch" or "torch:cpu", "torch:cuda"."""
    if name == "numpy":
        return NumpyArrays()
    library, _, device = name.partition(":")
    if library == "torch":
        return TorchArrays(device or "cpu")
    raise SettingError(f"arrays must be one of 'numpy', 'torch:cpu', 'torch:cuda'; got {name!r}.")
