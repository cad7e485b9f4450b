"""How long ``import sidelight`` and ``sidelight --help`` take, beside ``import numpy, scipy``.

    python benchmarks/speed/imports.py

Each is the fastest of several fresh processes, less the time of an empty interpreter where said.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiment import RESULTS, machine

COMMANDS = {
    "python": ["-c", "pass"],
    "numpy_scipy": ["-c", "import numpy, scipy"],
    "sidelight": ["-c", "import numpy, scipy, sidelight"],
    "sidelight_front_door": ["-c", "import numpy, scipy, sidelight as sl; sl.release; sl.Schema"],
    "help": ["-m", "sidelight", "--help"],
}


def fastest(arguments: list[str], repeats: int = 7) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main() -> None:
    times = {name: round(fastest(arguments), 4) for name, arguments in COMMANDS.items()}
    found = {
        "machine": machine(),
        "seconds": times,
        "import_sidelight_more_than_numpy_scipy": round(times["sidelight"] - times["numpy_scipy"], 4),
        "front_door_more_than_numpy_scipy": round(times["sidelight_front_door"] - times["numpy_scipy"], 4),
    }
    (RESULTS / "imports.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
