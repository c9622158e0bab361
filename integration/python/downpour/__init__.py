"""Queries a Downpour gateway from a notebook.

    import downpour

    downpour.metrics("cpu")
    df = downpour.query("sum:5m-avg:cpu.user{host=*}", start="6h-ago")

A query without a start is one of the last hour. The functions of this module ask
the gateway of connect(), by default the one at http://127.0.0.1:4242.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from ._errors import CutShort, DownpourError
from ._expression import Query, parse
from ._frames import Kind
from ._live import Live
from ._server import START, Server, Shape, Time

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

__all__ = [
    "CutShort", "DownpourError", "Live", "Server",
    "batches", "connect", "follow", "metrics", "parse", "query", "tags", "values",
]

_asked = Server()


def connect(url: str, *, token: str | None = None, ca: str | None = None, timeout: float = 60.0) -> Server:
    """Makes Server(url, …) the one that this module's functions ask."""
    global _asked
    _asked = Server(url, token=token, ca=ca, timeout=timeout)
    return _asked


@overload
def query(*queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["pandas"] = ..., shape: Shape = ..., **options: Any) -> pandas.DataFrame: ...
@overload
def query(*queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["polars"], shape: Shape = ..., **options: Any) -> polars.DataFrame: ...
@overload
def query(*queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["duckdb"], shape: Shape = ..., **options: Any) -> duckdb.DuckDBPyRelation: ...
@overload
def query(*queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["arrow"], shape: Shape = ..., **options: Any) -> pa.Table: ...


def query(*queries: str, start: Time = START, **options: Any) -> Any:
    """Server.query of the gateway of connect()."""
    return _asked.query(*queries, start=start, **options)


def batches(*queries: str, start: Time = START, end: Time | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
    """Server.batches of the gateway of connect()."""
    return _asked.batches(*queries, start=start, end=end, **options)


def follow(*queries: Query, start: Time = START, frame: Kind = "pandas", shape: Shape = "wide", resume: bool = True) -> Live:
    """Server.follow of the gateway of connect()."""
    return _asked.follow(*queries, start=start, frame=frame, shape=shape, resume=resume)


def metrics(part: str = "") -> list[str]:
    """Server.metrics of the gateway of connect()."""
    return _asked.metrics(part)


def tags(metric: str) -> list[str]:
    """Server.tags of the gateway of connect()."""
    return _asked.tags(metric)


def values(metric: str, tag: str) -> list[str]:
    """Server.values of the gateway of connect()."""
    return _asked.values(metric, tag)
