"""What type checkers must make of the package: mypy fails at a line of which that is not so."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import downpour


def frames(server: downpour.Server) -> tuple[pd.DataFrame, pl.DataFrame, pa.Table, duckdb.DuckDBPyRelation]:
    """The kind of a frame is that of the argument frame."""
    return (
        server.query("sum:m"),
        server.query("sum:m", start=1356998400, frame="polars", integers=True),
        server.query("sum:m", "avg:n", start="1h-ago", frame="arrow", shape="wide"),
        server.query("sum:m", frame="duckdb"),
    )


def functions() -> tuple[pd.DataFrame, pl.DataFrame, pa.Table, Iterator[pa.RecordBatch], downpour.Live, downpour.Server]:
    """The module's functions have the types of a server's methods."""
    return (
        downpour.query("sum:m", start="1h-ago"),
        downpour.query("sum:m", start="1h-ago", frame="polars"),
        downpour.query("sum:m", start="1h-ago", frame="arrow"),
        downpour.batches("sum:m", start="1h-ago"),
        downpour.follow("sum:m", start="1h-ago", frame="polars"),
        downpour.connect("https://gateway:4242", token="…", timeout=5),
    )


def names(server: downpour.Server) -> list[str]:
    """Names are lists of texts."""
    return server.metrics() + downpour.metrics("cpu") + downpour.tags("cpu") + downpour.values("cpu", "host")


def refused(server: downpour.Server) -> None:
    """Each of these lines is a fault; mypy is told to complain where one is not."""
    server.query("sum:m", start="1h-ago", frame="numpy")  # type: ignore[call-overload]
    downpour.query("sum:m", start=1.5)  # type: ignore[call-overload]
    server.follow("sum:m", start="1h-ago", shape="tall")  # type: ignore[arg-type]


def told(e: downpour.DownpourError) -> tuple[str, int | None, list[tuple[str, ...]]]:
    """An error has the gateway's words, its status, and what is missing."""
    return e.details, e.status, e.missing
