"""The graphical-model engine on a GPU: a model of 1 GB, and how much of the memory's speed it reaches.

Run as ``python benchmarks/speed/graphical_gpu.py [bytes per second of the card's memory]`` where torch sees
a GPU; writes ``benchmarks/results/graphical_gpu.json``. The model is a chain: eight cliques of four
attributes with 64 values each, with three three-way marginals measured in every clique. A step is one
sum of the tree and all measured marginals; the vectors of the fit itself are small beside it.
"""

import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from sidelight.data.domain import Domain
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement
from sidelight.queries.query import Marginal
from sidelight.trees.arrays import Arrays, arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.sum_product import Calibrator

ROOT = Path(__file__).resolve().parents[2]
H200_BYTES_PER_SECOND = 4.8e12
PASSES = 9
"""How often a sum of the tree reads or writes each clique where it is written down: the product of three
tables (1 + 2), the message up (1), the answer to it in (2), three marginals (3)."""


def chain(values: int, attributes: int) -> tuple[Domain, list[tuple[str, ...]]]:
    domain = Domain.of({f"x{i:02}": values for i in range(attributes)})
    sets = []
    for i in range(attributes - 3):
        four = domain.attrs[i : i + 4]
        sets += [(four[0], *pair) for pair in ((four[1], four[2]), (four[1], four[3]), (four[2], four[3]))]
    return domain, sets


def settle(library: Arrays) -> None:
    if library.name.startswith("torch:cuda"):
        import torch

        torch.cuda.synchronize()


def steps(name: str, values: int, attributes: int, count: int) -> dict[str, Any]:
    """Sums of the tree with potentials that change, as a fit makes them."""
    domain, sets = chain(values, attributes)
    library = arrays(name)
    tree = JunctionTree.of(domain, sets)
    calibrator = Calibrator(tree, sets, library=library)
    rng = np.random.default_rng(0)
    tables = [library.array(rng.normal(size=(values,) * 3)) for _ in sets]
    for _ in range(3):
        calibrator.run(tables)
    settle(library)
    start = time.perf_counter()
    for step in range(count):
        calibrator.run([table * (1.0 - 1e-3 * step / count) for table in tables])
        shares = calibrator.marginals()
    library.total(shares[0])
    settle(library)
    spent = (time.perf_counter() - start) / count
    return {
        "arrays": name,
        "megabytes": round(tree.bytes / 1e6),
        "ms a step": round(1000 * spent, 3),
        "seconds for 1,000 steps": round(1000 * spent, 2),
        "gigabytes a second": round(PASSES * tree.bytes / spent / 1e9),
    }


def agreement() -> float:
    """The largest difference in a marginal between NumPy and the GPU, as a share of the total."""
    domain, sets = chain(6, 7)
    rng = np.random.default_rng(1)
    measured = [Measurement(Marginal(s), 50 + 20 * rng.normal(size=216), 20.0) for s in sets]
    models = [
        MirrorDescent(arrays=name).estimate(domain, measured, total=1e4) for name in ("numpy", "torch:cuda")
    ]
    return max(float(np.abs(models[0].count(s) - models[1].count(s)).max()) for s in sets) / 1e4


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        print("torch sees no GPU here: nothing was measured")
        return
    bandwidth = float(sys.argv[1]) if len(sys.argv) > 1 else H200_BYTES_PER_SECOND
    large = steps("torch:cuda", 64, 11, 30)
    large["share of memory bandwidth"] = round(large["gigabytes a second"] * 1e9 / bandwidth, 2)
    found = {
        "machine": {
            "gpu": torch.cuda.get_device_name(0),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "cpus": os.cpu_count(),
        },
        "1 GB": large,
        "10 MB, GPU": steps("torch:cuda", 20, 11, 30),
        "10 MB, NumPy": steps("numpy", 20, 11, 10),
        "largest difference to NumPy": f"{agreement():.1e}",
        "peak GPU megabytes": math.ceil(torch.cuda.max_memory_allocated() / 1e6),
    }
    folder = ROOT / "benchmarks" / "results"
    (folder / "graphical_gpu.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
