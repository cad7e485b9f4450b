"""Two ways to sum and multiply a table: by rows and columns (``Fold``), or as in trees (``Projection``).

    python benchmarks/speed/summing.py

Prints, for tables of several shapes, the milliseconds of twelve updates: count a marginal of three
attributes, and multiply every cell by a factor on it. The least of seven tries; one thread.
"""

import time
from collections.abc import Callable

import numpy as np

from sidelight.models.fold import Fold
from sidelight.trees.arrays import arrays
from sidelight.trees.summing import Projection

SHAPES = [(9, 7, 15, 2, 5, 2, 9), (2,) * 17, (2, 5, 10, 16, 4, 16), (42, 16, 7)]
UPDATES, TRIES = 12, 7


def main() -> None:
    rng = np.random.default_rng(0)
    print("cells, attributes | Fold, ms | Projection, ms")
    for shape in SHAPES:
        attrs = tuple(f"a{axis}" for axis in range(len(shape)))
        weights = rng.random(shape)
        some = min(3, len(shape) - 1)
        marginals = [tuple(rng.choice(attrs, size=some, replace=False)) for _ in range(UPDATES)]
        times = [least(way(attrs, weights.copy(), marginals)) for way in (by_fold, by_projection)]
        print(f"{weights.size}, {len(shape)} | " + " | ".join(f"{1e3 * seconds:.2f}" for seconds in times))


def by_fold(
    attrs: tuple[str, ...], weights: np.ndarray, marginals: list[tuple[str, ...]]
) -> Callable[[], None]:
    fold = Fold(attrs, weights)

    def update() -> None:
        for marginal in marginals:
            fold.multiply(marginal, np.ones(fold.count(marginal).shape))

    return update


def by_projection(
    attrs: tuple[str, ...], weights: np.ndarray, marginals: list[tuple[str, ...]]
) -> Callable[[], None]:
    sizes = dict(zip(attrs, weights.shape, strict=True))
    planned = []
    for marginal in marginals:
        inner = [attr for attr in attrs if attr in marginal]
        onto = Projection.onto(attrs, marginal, sizes, arrays("numpy"))
        planned.append(
            (onto, [inner.index(attr) for attr in marginal], [marginal.index(attr) for attr in inner])
        )

    def update() -> None:
        for onto, out, back in planned:
            counts = np.ascontiguousarray(np.transpose(onto.sum(weights), out))
            factor = np.transpose(np.ones(counts.shape), back)
            np.multiply(weights, factor.reshape(onto.wide), out=weights)

    return update


def least(update: Callable[[], None]) -> float:
    update()
    times = []
    for _ in range(TRIES):
        began = time.process_time()
        update()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
