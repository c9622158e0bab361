"""Reads one large answer with each reader and prints a JSON line for each:
reader, rows, sum of the values, seconds.

Usage: rate.py URL
"""

import json
import sys
import time

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

import downpour
from read import fetch
from urllib.parse import parse_qsl, urlsplit


def pyarrow_table(url):
    with fetch(url) as answer:
        table = pa.ipc.open_stream(answer).read_all()
    return table.num_rows, pc.sum(table["value"]).as_py()


def downpour_pandas(url):
    address = urlsplit(url)
    options = dict(parse_qsl(address.query))
    df = downpour.Server(f"{address.scheme}://{address.netloc}").query(options.pop("m"), start=options.pop("start"), **options)
    return len(df), float(df["value"].sum())


def downpour_batches(url):
    address = urlsplit(url)
    options = dict(parse_qsl(address.query))
    rows, total = 0, 0.0
    for batch in downpour.Server(f"{address.scheme}://{address.netloc}").batches(options.pop("m"), start=options.pop("start"), **options):
        rows, total = rows + batch.num_rows, total + pc.sum(batch["value"]).as_py()
    return rows, total


def polars_frame(url):
    with fetch(url) as answer:
        df = pl.read_ipc_stream(answer.read())
    return len(df), df["value"].sum()


def main(url):
    for name, read in {"pyarrow": pyarrow_table, "downpour, pandas": downpour_pandas, "downpour, batches": downpour_batches, "polars": polars_frame}.items():
        began = time.perf_counter()
        rows, total = read(url)
        print(json.dumps({"reader": name, "rows": rows, "sum": total, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(sys.argv[1])
