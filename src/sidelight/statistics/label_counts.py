"""How many people have each label, each person counted with at most k labels.

Of each person, the k labels are used whose hash under a key comes first, as in ``engines/sql_people.py``:
which they are depends on that person's labels alone.

PRIVACY: what comes out is exact. Only a curator's look may call this.
"""

from typing import Any

from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, silent_errors
from sidelight.data.engines.sql_encoding import Dialect


def count_labels(labels: Any, people: Any, *, records: int, key: str) -> dict[str, int]:
    """The number of people of each label; of records, where ``people`` is None. Both are Arrow text.

    A missing label counts for nothing, and a missing name for a person of its own.
    """
    import pyarrow as pa

    if people is None:
        sql = f"SELECT c1 AS l, COUNT(*) AS n FROM {VIEW} WHERE c1 IS NOT NULL GROUP BY c1"
    else:
        dialect = Dialect()
        text = " || '/' || ".join([dialect.text(key), "c1", "c0"])
        pairs = f"SELECT DISTINCT c0, c1 FROM {VIEW} WHERE c0 IS NOT NULL AND c1 IS NOT NULL"
        rank = f"ROW_NUMBER() OVER (PARTITION BY c0 ORDER BY {dialect.sha256(text)}, c1)"
        ranked = f"SELECT c1, {rank} AS r FROM ({pairs}) AS pairs"
        own = f"SELECT c1 FROM {VIEW} WHERE c0 IS NULL AND c1 IS NOT NULL"
        kept = f"SELECT c1 FROM ({ranked}) AS ranked WHERE r <= {records} UNION ALL {own}"
        sql = f"SELECT c1 AS l, COUNT(*) AS n FROM ({kept}) AS kept GROUP BY c1"
    nobody = pa.nulls(len(labels), pa.large_string()) if people is None else people
    table = pa.table({"c0": nobody, "c1": labels})
    connection = connect()
    with silent_errors():
        rows = connection.register(VIEW, table).table(VIEW)
        source = DuckDBSource(rows, kind="codes", names=("", ""), owner=connection)
        found = source.run(sql).fetchall()
    return {label: int(number) for label, number in found}
