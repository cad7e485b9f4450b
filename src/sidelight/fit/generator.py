"""A generator network: from fixed noise to product distributions, trained on noisy marginals with torch.

    h ← z,  B rows of standard normal numbers, drawn once
    for each hidden layer:   h ← (ReLU(BatchNorm(W h + b)), h)
    row b of the table:      softmax of W h + b, block by block

A marginal of the network is the mean over its rows of products of their blocks, as in
``models/product_mixture.py``, so a loss on marginals has a gradient in the weights. The statistics of
BatchNorm are those of the fixed rows: nothing is drawn after the start. Only operations are used that torch
computes in the same order each time, so the same targets give the same network on the same device.

PRIVACY: targets are noisy answers, or public tables. Nothing here has ever seen anything else.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight._extras import need
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SchemaError, SettingError
from sidelight.models.product_mixture import Blocks, ProductMixture

Tensor = Any
"""A tensor of torch, which may be absent."""
_Held = tuple[Attrs, Tensor]
"""A target's attributes, and its cells where the network is: shares times B, as sums over B rows are."""
Weights = Mapping[str, NDArray[np.float32]]
Device = Literal["cpu", "cuda"]
Loss = Literal["largest", "all"]

NOISE = "noise"
"""The name of the fixed rows among a network's arrays; they are not learned."""
_LEAST_RATE = 1e-8
"""The learning rate at the end of a training."""
_MOMENTUM, _SMOOTHING, _LEAST_SIZE = 0.9, 0.999, 1e-8
"""Adam's β₁, β₂ and ε."""
_LOOK_AGAIN = 10
"""After so many steps, the targets that are off most are looked up anew."""
_CELLS_AT_ONCE = 1 << 20
"""Cells that leave the device together."""
_SAME = 1e-5
"""BatchNorm adds this to variances, so that rows which are all the same divide by no zero."""


@dataclass(frozen=True, eq=False)
class Target:
    """A marginal that the network is to have."""

    attrs: Attrs
    shares: NDArray[np.float64] = field(repr=False)
    """Its cells as shares of all records, flat; noisy, so not all need be positive."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is trained."""

    steps: int
    rate: float
    """Adam's learning rate at the start; it falls along a cosine."""
    loss: Loss
    """``largest``: mean |error| of the cells that are off most. ``all``: squared error of all cells, as far
    as it is more than noise would make it."""
    at_once: int
    """Most marginals in one step: those that are off most, or random ones."""
    most_cells: int = 100
    """Most cells in one step of ``largest``."""


def library(device: Device) -> Any:
    """torch; refused with a word on what to do where it is absent, or sees no GPU that was asked for."""
    torch = need("torch", "to train a generator network")
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("device='cuda' needs a GPU, and torch sees none here; use device='cpu'.")
    return torch


def room_on(device: Device) -> int | None:
    """Bytes that a GPU has free; None for the processor, whose memory is the machine's."""
    return int(library(device).cuda.mem_get_info()[0]) if device == "cuda" else None


class Generator:
    """A network, on a processor or a GPU."""

    def __init__(self, blocks: Blocks, weights: Weights, device: Device) -> None:
        self._torch = library(device)
        self._device = device
        self.blocks = blocks
        self._weights = {name: self._put(array) for name, array in weights.items()}
        self._hidden = sum(name.startswith("scale_") for name in weights)
        self._never = self._torch.as_tensor(~blocks.possible, device=device)
        self._is_warm = device == "cpu"

    @classmethod
    def drawn(
        cls, domain: Domain, *, batch: int, latent: int, hidden: Sequence[int], seed: int, device: Device
    ) -> "Generator":
        """A network that was not trained: small random weights, from a public seed."""
        blocks, rng = Blocks.of(domain), np.random.default_rng(seed)
        weights = {NOISE: rng.standard_normal((batch, latent))}
        width = latent
        for layer, size in enumerate((*hidden, blocks.width)):
            bound = 1 / math.sqrt(width)
            weights[f"matrix_{layer}"] = rng.uniform(-bound, bound, (width, size))
            weights[f"shift_{layer}"] = rng.uniform(-bound, bound, size)
            if layer < len(hidden):
                weights[f"scale_{layer}"] = np.ones(size)
                weights[f"offset_{layer}"] = np.zeros(size)
                width += size
        return cls(blocks, {name: array.astype(np.float32) for name, array in weights.items()}, device)

    @classmethod
    def of(cls, model: ProductMixture, domain: Domain, *, device: Device) -> "Generator":
        """The network of an earlier release, to go on from."""
        blocks = Blocks.of(domain)
        if model.domain != domain or model.blocks.groups != blocks.groups:
            raise SchemaError(
                "the network was trained under another schema: its attributes, their values or the "
                "impossible combinations differ. Train one under this schema, from a public table."
            )
        if not _fits(model.network, blocks.width):
            raise SettingError(
                "the model holds no network to start from; give a release that was made with gem or gem-pub, "
                "or a public table."
            )
        return cls(blocks, model.network, device)

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """All weights as plain arrays, and the noise that the rows are made from."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._weights.items()}

    def with_weights(self, weights: Weights) -> "Generator":
        """The same network with other weights."""
        return Generator(self.blocks, weights, self._device)

    def answers(self, total: float) -> "Answers":
        """The network's present answers, as a source that can be counted."""
        with self._torch.no_grad():
            return Answers(self.blocks, self._tables(), total, self._torch.cat)

    def mixture(self, total: float) -> ProductMixture:
        """The network's present distribution, as a model without torch."""
        with self._torch.no_grad():
            rows = self._torch.cat(self._tables(), dim=1).cpu().numpy().astype(np.float64)
        for columns in self.blocks.columns:
            rows[:, columns] /= rows[:, columns].sum(axis=1, keepdims=True)
        return ProductMixture(self.blocks, rows, total, self.weights)

    def largest_error(self, targets: Sequence[Target]) -> float:
        """How far the worst cell of all targets is off."""
        with self._torch.no_grad():
            return float(self._worst(self._held(targets)).max()) / len(self._weights[NOISE])

    def train(
        self, targets: Sequence[Target], how: Training, *, floor: float = 0.0, rng: np.random.Generator
    ) -> list[float]:
        """Lower the loss on these targets, in place; gives the loss of each step.

        With ``largest``, cells that are off by less than ``floor`` are left alone; with ``all``, marginals
        that noise of that standard deviation may have put as far off. Training stops where there are no
        others. The targets alone decide that.
        """
        with self._recording():
            return self._trained(self._held(targets), how, floor, rng)

    def _trained(
        self, held: Sequence[_Held], how: Training, floor: float, rng: np.random.Generator
    ) -> list[float]:
        torch, losses = self._torch, list[Tensor]()
        shapes = {name: tensor.shape for name, tensor in self._weights.items() if name != NOISE}
        # All weights in one vector, of which each is a part: few calls, and one to Adam.
        vector = torch.cat([self._weights[name].reshape(-1) for name in shapes]).requires_grad_()
        adam = _Adam(torch, vector)

        def slope(chosen: Sequence[_Held]) -> tuple[Tensor, Tensor]:
            self._take(vector, shapes)
            loss = self._loss(chosen, how, floor)
            return loss.detach(), torch.autograd.grad(loss, vector)[0]

        def worst() -> Tensor:
            self._take(vector.detach(), shapes)
            return self._worst(held)

        if not self._is_warm:  # libraries that start on their first call cannot start while recording
            slope(held[:1])
            self._is_warm = True
        look = self._repeated(worst)
        descend: Callable[[], Any] = partial(slope, held)
        if how.loss == "largest":
            descend = self._repeated(descend)
        for step in range(how.steps):
            is_pause = step % _LOOK_AGAIN == 0
            if len(held) > how.at_once and how.loss == "all":
                places = rng.choice(len(held), how.at_once, replace=False)
                descend = partial(slope, [held[place] for place in places])
            elif len(held) > how.at_once and is_pause:
                places = look().topk(how.at_once).indices.tolist()
                descend = self._repeated(partial(slope, [held[place] for place in places]))
            loss, gradient = descend()
            if is_pause and not float(loss):
                break
            share = (1 + math.cos(math.pi * step / how.steps)) / 2
            adam.step(gradient, _LEAST_RATE + (how.rate - _LEAST_RATE) * share)
            losses.append(loss.clone())
        self._take(vector.detach().clone(), shapes)
        return [] if not losses else [float(loss) for loss in torch.stack(losses).tolist()]

    def _take(self, vector: Tensor, shapes: Mapping[str, Any]) -> None:
        """Let the weights be the parts of a vector."""
        parts = vector.split([shape.numel() for shape in shapes.values()])
        self._weights |= {n: p.view(shape) for (n, shape), p in zip(shapes.items(), parts, strict=True)}

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """On a GPU, a queue of its own: what is put on the common one cannot be recorded."""
        if self._device == "cpu":
            yield
            return
        cuda = self._torch.cuda
        common, own = cuda.current_stream(), cuda.Stream()
        own.wait_stream(common)
        with cuda.stream(own):
            yield
        common.wait_stream(own)

    def _repeated(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Work that is done many times on the same places in memory.

        On a GPU it is recorded and played again, within ``_recording``: to call its hundreds of small steps
        takes longer than they do. What it returns is overwritten each time.
        """
        if self._device == "cpu":
            return work
        cuda, tape = self._torch.cuda, list[tuple[Any, Any]]()

        def play() -> Any:
            if not tape:
                graph = cuda.CUDAGraph()
                cuda.synchronize()
                graph.capture_begin()
                made = work()
                graph.capture_end()
                tape.append((graph, made))
            graph, made = tape[0]
            graph.replay()
            return made

        return play

    def _tables(self) -> list[Tensor]:
        """The product distributions, one a row, block by block."""
        functional, weights = self._torch.nn.functional, self._weights
        h = weights[NOISE]
        for layer in range(self._hidden):
            inner = self._torch.addmm(weights[f"shift_{layer}"], h, weights[f"matrix_{layer}"])
            inner = functional.batch_norm(
                inner, None, None, weights[f"scale_{layer}"], weights[f"offset_{layer}"],
                training=True, eps=_SAME,
            )  # fmt: skip
            h = self._torch.cat([functional.relu(inner), h], dim=1)
        logits = self._torch.addmm(weights[f"shift_{self._hidden}"], h, weights[f"matrix_{self._hidden}"])
        if self.blocks.domain.impossible:
            logits = logits.masked_fill(self._never, -math.inf)
        widths = [columns.stop - columns.start for columns in self.blocks.columns]
        return [part.softmax(dim=1) for part in logits.split(widths, dim=1)]

    def _loss(self, chosen: Sequence[_Held], how: Training, floor: float) -> Tensor:
        """The loss that a step lowers, in shares times B; 0 where no cell is off far enough."""
        # Few calls, each on much: on a GPU a step takes as long as it takes to call.
        tables = self._tables()
        off = self._torch.cat([self.blocks.sums(tables, attrs) for attrs, _ in chosen])
        off = off - self._torch.cat([told for _, told in chosen])
        floor *= len(tables[0])
        if how.loss == "largest":
            largest = off.abs().topk(min(how.most_cells, len(off))).values
            is_far = largest >= floor
            return (largest * is_far).sum() / is_far.sum().clamp(min=1)
        if not floor:
            return off.dot(off) / len(chosen)
        sizes = [len(told) for _, told in chosen]
        squares = self._torch.stack([part.dot(part) for part in off.split(sizes)])
        # Squares of m noisy cells add up to σ²(m ± √2m), one standard deviation.
        noise = [floor**2 * (size + 2 * math.sqrt(2 * size)) for size in sizes]
        return (squares - self._put(np.array(noise))).clamp(min=0).sum() / len(chosen)

    def _worst(self, held: Sequence[_Held]) -> Tensor:
        """The largest error of each target, times B."""
        tables = self._tables()
        return self._torch.stack(
            [(self.blocks.sums(tables, attrs) - told).abs().max() for attrs, told in held]
        )

    def _held(self, targets: Sequence[Target]) -> list[_Held]:
        rows = len(self._weights[NOISE])
        return [(target.attrs, self._put(rows * target.shares)) for target in targets]

    def _put(self, array: NDArray[Any]) -> Tensor:
        # A copy, so that training changes nobody else's numbers.
        return self._torch.tensor(np.asarray(array, dtype=np.float32), device=self._device)


class _Adam:
    """Adam (Kingma and Ba 2015) on one vector; torch's own takes seconds to import."""

    def __init__(self, torch: Any, vector: Tensor) -> None:
        self._vector, self._steps = vector, 0
        self._mean, self._square = (torch.zeros_like(vector, requires_grad=False) for _ in range(2))
        self._no_grad = torch.no_grad

    def step(self, slope: Tensor, rate: float) -> None:
        """One step down the slope."""
        self._steps += 1
        with self._no_grad():
            self._mean.lerp_(slope, 1 - _MOMENTUM)
            self._square.mul_(_SMOOTHING).addcmul_(slope, slope, value=1 - _SMOOTHING)
            size = self._square.sqrt().div_(math.sqrt(1 - _SMOOTHING**self._steps)).add_(_LEAST_SIZE)
            self._vector.addcdiv_(self._mean, size, value=-rate / (1 - _MOMENTUM**self._steps))


class Answers:
    """A network's answers at one moment, counted on the device where the network is."""

    def __init__(
        self, blocks: Blocks, tables: Sequence[Tensor], total: float, joined: Callable[[list[Tensor]], Tensor]
    ) -> None:
        self._blocks, self._tables, self._total, self._joined = blocks, tables, total, joined

    @property
    def domain(self) -> Domain:
        return self._blocks.domain

    def count(self, attrs: Attrs) -> NDArray[np.float64]:
        ((_, counts),) = self.count_each([attrs])
        return counts

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Many marginals, each with its index in ``wanted``; they leave the device some at a time."""
        sizes = [self.domain.size(attrs) for attrs in wanted]
        first = 0
        while first < len(wanted):
            last = first + 1
            while last < len(wanted) and sum(sizes[first : last + 1]) <= _CELLS_AT_ONCE:
                last += 1
            flat = [self._blocks.marginal(self._tables, tuple(attrs)) for attrs in wanted[first:last]]
            found = self._total * self._joined(flat).cpu().numpy().astype(np.float64)
            for place, counts in enumerate(np.split(found, np.cumsum(sizes[first : last - 1])), start=first):
                yield place, counts.reshape(self.domain.project(wanted[place]).shape)
            first = last


def _fits(weights: Mapping[str, NDArray[Any]], width: int) -> bool:
    """Whether these arrays are a network whose last layer has so many outputs."""
    layers = sum(name.startswith("matrix_") for name in weights)
    names = {f"{kind}_{layer}" for layer in range(layers) for kind in ("matrix", "shift")}
    names |= {f"{kind}_{layer}" for layer in range(layers - 1) for kind in ("scale", "offset")}
    if not layers or set(weights) != names | {NOISE} or weights[NOISE].ndim != 2 or len(weights[NOISE]) < 2:
        return False
    wide = weights[NOISE].shape[1]
    for layer in range(layers):
        matrix = weights[f"matrix_{layer}"]
        if matrix.ndim != 2 or matrix.shape[0] != wide:
            return False
        vectors = [weights[name] for name in names if name.endswith(f"_{layer}") and name[0] != "m"]
        if any(vector.shape != (matrix.shape[1],) for vector in vectors):
            return False
        wide += matrix.shape[1]
    return bool(weights[f"matrix_{layers - 1}"].shape[1] == width)
