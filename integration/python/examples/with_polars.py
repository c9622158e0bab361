"""Which hosts were busiest, hour by hour: polars over an answer of Downpour.

    python with_polars.py http://127.0.0.1:4242 'avg:1m-avg:cpu.user{host=*}' 2013/01/01 2013/01/02
"""

from __future__ import annotations

import sys

import polars as pl

import downpour


def busiest(server: downpour.Server, query: str, start: str, end: str) -> pl.DataFrame:
    """Returns the hour, the host with the highest mean in it, and that mean."""
    points = server.query(query, start=start, end=end, frame="polars")
    means = points.group_by(pl.col("timestamp").dt.truncate("1h").alias("hour"), "host").agg(pl.col("value").mean().alias("mean"))
    return means.sort("hour", "mean", descending=[False, True]).group_by("hour", maintain_order=True).first()


if __name__ == "__main__":
    url, query, start, end = sys.argv[1:]
    print(busiest(downpour.Server(url), query, start, end).write_csv(), end="")
