"""How many people have each label, each person counted with at most k labels.

Of each person, the k labels are used whose SHA-256 under a key comes first: which they are depends on that
person's labels alone.

PRIVACY: what comes out is exact. Only a curator's look may ask for it.
"""

from typing import Any

from sidelight.data.engines.duckdb import VIEW, DuckDBSource, connect, silent_errors
from sidelight.data.engines.sql_encoding import Dialect


def counted_labels_sql(sql: Dialect, pairs: str, *, records: int, key: str | None, more_than: int = 0) -> str:
    """SELECT each label l and its number n: of people, or of records where the key is None.

    ``pairs`` stands after FROM, and has c0, who somebody is, and c1, the label. A missing label counts for
    nothing, and a missing name for a person of its own.
    """
    kept = f"SELECT c1 FROM {pairs} AS pairs WHERE c1 IS NOT NULL"
    if key is not None:
        text = " || '/' || ".join([sql.text(key), "c1", "c0"])
        told = f"SELECT DISTINCT c0, c1 FROM {pairs} AS pairs WHERE c0 IS NOT NULL AND c1 IS NOT NULL"
        rank = f"ROW_NUMBER() OVER (PARTITION BY c0 ORDER BY {sql.sha256(text)}, c1)"
        ranked = f"SELECT c1, {rank} AS r FROM ({told}) AS told"
        kept = f"SELECT c1 FROM ({ranked}) AS ranked WHERE r <= {records} UNION ALL {kept} AND c0 IS NULL"
    return f"SELECT c1 AS l, COUNT(*) AS n FROM ({kept}) AS kept GROUP BY c1 HAVING COUNT(*) > {more_than}"


def count_labels(labels: Any, people: Any, *, records: int, key: str, more_than: int = 0) -> dict[str, int]:
    """How many people, or records, have each label of an Arrow column.

    ``people`` is None where no column says who is who.
    """
    import pyarrow as pa

    nobody = pa.nulls(len(labels), pa.large_string()) if people is None else people
    table = pa.table({"c0": nobody, "c1": labels})
    own = None if people is None else key
    connection = connect()
    with silent_errors():
        rows = connection.register(VIEW, table).table(VIEW)
        source = DuckDBSource(rows, kind="codes", names=("", ""), owner=connection)
        asked = counted_labels_sql(Dialect(), VIEW, records=records, key=own, more_than=more_than)
        found = source.run(asked).fetchall()
    return {label: int(number) for label, number in found}
