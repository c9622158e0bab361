"""Tables as pandas or polars frames or DuckDB relations, long or wide."""

from __future__ import annotations

import collections
import importlib
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["pandas", "polars", "duckdb", "arrow"]

# Columns that are no tags.
FIXED = ("metric", "timestamp", "value", "value_int", "query")


def check(kind: str, shape: str) -> None:
    """Raises the error for a frame that cannot be made, which nobody should wait for an answer to see."""
    if kind not in ("pandas", "polars", "duckdb", "arrow"):
        raise ValueError(f"frame is {kind!r}, want 'pandas', 'polars', 'duckdb' or 'arrow'")
    if shape not in ("long", "wide"):
        raise ValueError(f"shape is {shape!r}, want 'long' or 'wide'")
    if kind not in ("polars", "duckdb"):
        return
    try:
        importlib.import_module(kind)
    except ModuleNotFoundError as e:
        if e.name != kind:  # it is there, and lacks something itself
            raise
        raise ModuleNotFoundError(f"frame={kind!r} needs {kind}, which is not installed: pip install 'downpour-client[{kind}]', or take frame='pandas'", name=kind) from None


def frame(table: pa.Table, kind: str, shape: str) -> Any:
    """Makes a frame of a long table."""
    check(kind, shape)
    if shape == "wide":
        table = wide(table)
    if kind == "pandas":
        return _pandas(table, shape)
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


def _pandas(table: pa.Table, shape: str) -> Any:
    import pandas

    # Integers with nulls would become floats, and lose digits.
    df = table.to_pandas(types_mapper=lambda t: pandas.Int64Dtype() if t == pa.int64() else None)
    return df.set_index("timestamp") if shape == "wide" else df


def wide(table: pa.Table) -> pa.Table:
    """Makes a row for each time and a column for each series of a long table.

    Columns are named as metric{tag=value,…}, before which stands the number of
    the sub-query and a colon where two would be named the same. A series of
    integers alone is one of integers if the table has value_int.
    """
    times = _numpy(table["timestamp"].cast(pa.int64()))
    index = np.unique(times)
    columns: dict[str, pa.Array[Any]] = {}
    runs = _runs(table)
    names = _names(table, [start for start, _ in runs])
    for name, (start, stop) in zip(names, runs):
        columns[name] = _spread(_values(table, start, stop), np.searchsorted(index, times[start:stop]), len(index))
    stamps = pa.array(index, pa.timestamp("ms", tz="UTC"))
    return pa.table({"timestamp": stamps} | columns)


def _numpy(column: pa.ChunkedArray[Any]) -> np.ndarray[Any, Any]:
    return column.combine_chunks().to_numpy(zero_copy_only=False) if len(column) else np.empty(0, np.int64)


def _runs(table: pa.Table) -> list[tuple[int, int]]:
    """The rows of each group, which follow each other: from and to."""
    if table.num_rows == 0:
        return []
    change = np.zeros(table.num_rows, bool)
    change[0] = True
    for name in table.column_names:
        column = table[name]
        if name == "query":
            codes = _numpy(column)
        elif pa.types.is_dictionary(column.type):
            encoded: Any = column.unify_dictionaries().combine_chunks()
            codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        else:
            continue
        change[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(change).tolist()
    return list(zip(starts, starts[1:] + [table.num_rows]))


def _names(table: pa.Table, rows: list[int]) -> list[str]:
    described = table.drop_columns([c for c in ("timestamp", "value", "value_int") if c in table.column_names]).take(pa.array(rows, pa.int64())).to_pylist()
    names = []
    for d in described:
        tags = ",".join(f"{k.removeprefix('tag_') if k.removeprefix('tag_') in FIXED else k}={v}" for k, v in d.items() if k not in FIXED and v is not None)
        names.append(f"{d['metric']}{{{tags}}}" if tags else d["metric"])
    seen = collections.Counter(names)
    twice = {n for n in names if seen[n] > 1} | {"timestamp"}
    return [f"{d.get('query', 0)}:{n}" if n in twice else n for d, n in zip(described, names)]


def _values(table: pa.Table, start: int, stop: int) -> pa.ChunkedArray[Any]:
    if "value_int" in table.column_names:
        integers = table["value_int"].slice(start, stop - start)
        if integers.null_count == 0:
            return integers
    return table["value"].slice(start, stop - start)


def _spread(values: pa.ChunkedArray[Any], rows: np.ndarray[Any, Any], n: int) -> pa.Array[Any]:
    """Puts values into their rows of n; the others are null."""
    source = np.full(n, -1)
    source[rows] = np.arange(len(rows))
    taken = pa.array(source, mask=source < 0)
    return values.combine_chunks().take(taken)
