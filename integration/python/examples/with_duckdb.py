"""Points joined with a table of one's own: SQL over an answer of Downpour.

    python with_duckdb.py http://127.0.0.1:4242 'avg:1m-avg:cpu.user{host=*}' 2013/01/01 2013/01/02 owners.csv

owners.csv has the columns host and owner. The points are not copied: DuckDB reads the
Arrow table where it lies.
"""

from __future__ import annotations

import sys
from typing import Any

import duckdb

import downpour


def by_owner(server: downpour.Server, query: str, start: str, end: str, owners: str) -> list[Any]:
    """Returns each owner, how many points its hosts have, and their mean."""
    database = duckdb.connect()
    database.register("points", server.query(query, start=start, end=end, frame="arrow"))
    return database.execute(
        "SELECT owner, count(*), avg(value) FROM points JOIN read_csv(?) USING (host) GROUP BY owner ORDER BY owner",
        [owners],
    ).fetchall()


if __name__ == "__main__":
    url, query, start, end, owners = sys.argv[1:]
    for row in by_owner(downpour.Server(url), query, start, end, owners):
        print(*row, sep=",")
