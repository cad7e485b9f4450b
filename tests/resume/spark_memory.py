"""Lets the memory of Spark's Python workers run out under a release: once, and at every attempt.

    python tests/resume/spark_memory.py FOLDER

A worker that has taken a batch may have no more memory than it has, and asks for more. Spark runs a task four
times: what happens once is made good by the next attempt; what happens every time must stop the release with
a message, and once workers have memory again, the same call goes on. Prints how each run ended, as JSON, like
`spark_lost.py`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
import spark_lost

STEPS = ("_blocking", "_counting")
"""Where records are encoded, and where they are counted (``sidelight.data.engines.spark_counting``)."""


def starving(function: Any, mark: str, *, always: bool) -> Any:
    """The same function of a worker, whose memory runs out once it has taken a batch."""

    def taken(batches: Any) -> Any:
        import resource

        for batch in batches:
            yield batch
            is_first = not os.path.exists(mark)
            open(mark, "a").close()
            if is_first or always:
                with open("/proc/self/statm", encoding="utf-8") as file:
                    most = int(file.read().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (most, most))
                bytearray(1 << 30)

    def starves(batches: Any) -> Any:
        yield from function(taken(batches))

    return starves


def memory_gone(folder: Path) -> list[dict[str, Any]]:
    from sidelight.data.engines import spark_counting

    spark = spark_lost.session(spark_lost.MASTERS["worker"])
    calm, _ = spark_lost.run(folder / "calm", spark)
    found = []
    for step in STEPS:
        for always in (False, True):
            mark, make = str(folder / f"{step}{always}.mark"), getattr(spark_counting, step)

            def made(
                *asked: Any, make: Any = make, mark: str = mark, always: bool = always, **more: Any
            ) -> Any:
                return starving(make(*asked, **more), mark, always=always)

            def repaired(step: str = step, make: Any = make) -> None:
                setattr(spark_counting, step, make)

            setattr(spark_counting, step, made)
            try:
                ended, _ = spark_lost.run(folder / f"{step}{always}", spark, again=repaired)
            finally:
                repaired()
            one = spark_lost.told([step, always], ended, calm, stops=always)
            found.append(one | {"same": one["same"] and os.path.exists(mark)})
    spark_lost.end(spark)
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    faults.steady_noise()
    found = memory_gone(folder)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
