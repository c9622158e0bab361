"""Reads a file of gateway export -format parquet with the real readers, as notebooks would.

Usage: parquet.py FILE. It prints what read.py prints, of address 0. The readers whose names end with
"filtered" leave row groups and pages out by their statistics, and read the whole file in parts.
"""

import json
import sys

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from read import rows_of


def read_pyarrow(path):
    table = pq.read_table(path)
    table.validate(full=True)
    want = {"timestamp": pa.timestamp("ms", tz="UTC"), "value": pa.float64(), "value_int": pa.int64()}
    for field in table.schema:
        if field.type != want.get(field.name, pa.string()):
            raise ValueError(f"{field}, want {want.get(field.name, pa.string())}")
    if pq.ParquetFile(path).num_row_groups < 2:
        raise ValueError("one row group, want more")
    return rows_of(table)


def read_pyarrow_filtered(path):
    for metric in pq.read_table(path, columns=["metric"])["metric"].unique():
        for part in (pc.field("value_int").is_null(), pc.field("value_int") < 0, pc.field("value_int") >= 0):
            yield from rows_of(pq.read_table(path, filters=(pc.field("metric") == metric) & part))


def read_pandas(path):
    df = pd.read_parquet(path, dtype_backend="pyarrow")
    df["timestamp"] = df["timestamp"].astype("int64")
    for row in df.to_dict("records"):
        yield {k: None if v is pd.NA else v for k, v in row.items()}


def read_duckdb(path, where="true"):
    found = duckdb.sql(f"select * replace (epoch_ms(timestamp) as timestamp) from read_parquet('{path}') where {where}")
    columns = found.columns
    return [dict(zip(columns, row)) for row in found.fetchall()]


def read_duckdb_filtered(path):
    middle = duckdb.sql(f"select median(timestamp)::varchar from read_parquet('{path}')").fetchall()[0][0]
    for part in ("value_int is null and host is null", "value_int is null and host is not null", "value_int < 0",
                 "value_int >= 0 and metric < 'odd.large'", "value_int >= 0 and metric >= 'odd.large'"):
        for half in (f"timestamp < '{middle}'", f"timestamp >= '{middle}'"):
            yield from read_duckdb(path, f"{part} and {half}")


READERS = {
    "pyarrow": read_pyarrow,
    "pyarrow-filtered": read_pyarrow_filtered,
    "pandas": read_pandas,
    "duckdb": read_duckdb,
    "duckdb-filtered": read_duckdb_filtered,
}


def main(path):
    for name, read in READERS.items():
        print("#", name, 0)
        try:
            for row in read(path):
                print(json.dumps({k: repr(v) if isinstance(v, float) else v for k, v in row.items()}))
        except Exception as e:
            print(f"! {type(e).__name__}: {str(e)[:200]!r}")


if __name__ == "__main__":
    main(sys.argv[1])
