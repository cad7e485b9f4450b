"""Cuts the network to Spark under a release: the connection to its Java process, and those of its results.

    python tests/resume/spark_cut.py FOLDER

Python asks Java by one connection, which goes through a proxy here (`tests/cut_proxy.py`), and gets each
result by another, which is read through a file that ends too soon. Afterwards the network is up again, and
the same call is repeated in the same session. Prints how each run ended, as JSON, like `spark_lost.py`.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
import spark_lost

from cut_proxy import Network

COMMAND = "e\n"
"""The end of everything that Python asks of Java."""
LETTING_GO = b"m\nd\n"
"""The beginning of what Python tells Java once it needs an object no more."""
PLACES = 8
"""At so many of a run's commands the network is cut, evenly spread: once for a moment, and once for good."""


class CountingNetwork(Network):
    """Also counts what Java is asked.

    Objects that Python lets go of are left out, and never cut at: when that happens is up to its garbage
    collector, so no two runs would have as many commands, and the last place could be beyond the end.
    """

    asked = 0

    def _is_due(self, said: bytes) -> bool:
        if said.startswith(LETTING_GO):
            return False
        self.asked += COMMAND.encode() in said
        return super()._is_due(said)


@contextlib.contextmanager
def session_behind_a_network() -> Iterator[tuple[Any, CountingNetwork]]:
    """A session whose Java process is reached through a network that can be cut."""
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway()
    network = CountingNetwork(("127.0.0.1", gateway.gateway_parameters.port), ("127.0.0.1", 0))
    os.environ["PYSPARK_GATEWAY_PORT"] = str(network.address[1])
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.gateway_parameters.auth_token
    try:
        yield spark_lost.session(), network
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        gateway.proc.kill()
        network.close()


class Cut:
    """A file of a connection that brings so many bytes, and then ends."""

    def __init__(self, file: Any, most: int) -> None:
        self._file, self._left = file, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return bytes(found)


@contextlib.contextmanager
def results_cut(place: int, most: int) -> Iterator[list[int]]:
    """Only so many bytes arrive of the so manieth result; tells whether there was one."""
    from pyspark import util

    connect, asked, cut = util.local_connect_and_auth, count(), []

    def connected(*told: Any) -> Any:
        file, socket = connect(*told)
        if next(asked) != place:
            return file, socket
        cut.append(place)
        return Cut(file, most), socket

    util.local_connect_and_auth = connected
    try:
        yield cut
    finally:
        util.local_connect_and_auth = connect


def commands_cut(folder: Path, spark: Any, network: CountingNetwork, calm: Any) -> list[dict[str, Any]]:
    begun: list[int] = []
    spark_lost.run(folder / "counted", spark, begin=lambda: begun.append(network.asked))
    commands, found = network.asked - begun[0], []
    for place in range(0, commands, -(-commands // PLACES)):
        for stays in (False, True):
            cut = partial(network.cut_at, COMMAND, heard=not stays, after=place, stay_down=stays)
            at, cuts = folder / f"command{place}{stays}", network.cuts
            ended, _ = spark_lost.run(at, spark, again=network.up, begin=cut)
            network.up()
            # PySpark asks once more by itself.
            one = spark_lost.told(["command", place, stays], ended, calm, stops=stays)
            found.append(one | {"same": one["same"] and network.cuts > cuts, "cut": network.cuts - cuts})
    return found


def every_result_cut(folder: Path, spark: Any, calm: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for place in count():
        for most in (0, 100):
            with results_cut(place, most) as cut:
                ended, _ = spark_lost.run(folder / f"result{place}of{most}", spark, again=lambda: None)
            if not cut:
                return found
            found.append(spark_lost.told(["result", place, most], ended, calm, stops=True))
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    faults.steady_noise()
    if planted := os.environ.get("SIDELIGHT_PLANTED"):
        faults.FOUND_BY[planted]()
    with session_behind_a_network() as (spark, network):
        calm, _ = spark_lost.run(folder / "calm", spark)
        found = every_result_cut(folder, spark, calm)
        found += [] if planted else commands_cut(folder, spark, network, calm)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
