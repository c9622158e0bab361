"""Reads Arrow streams of the gateway with the real readers, as notebooks would.

Usage: read.py URL…. For each address and each reader it prints a line
"# READER NUMBER" and then one JSON object a row: the columns of the table, the
timestamp as milliseconds, a float as its repr, so that nothing is rounded on the
way. A reader that fails prints "! CLASS: WORDS" in place of further rows.
"""

import json
import sys
import urllib.parse
import urllib.request

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc

import downpour

STREAM = "application/vnd.apache.arrow.stream"


def fetch(url, coding="identity"):
    request = urllib.request.Request(url, headers={"Accept": STREAM, "Accept-Encoding": coding})
    answer = urllib.request.urlopen(request)
    if answer.headers.get_content_type() != STREAM:
        raise ValueError(f"content type {answer.headers.get_content_type()}")
    return answer


def read_pyarrow(url, coding="identity"):
    """Batch by batch, with the metadata of each."""
    with fetch(url, coding) as answer:
        if coding != "identity" and answer.headers["Content-Encoding"] not in (coding, None):
            raise ValueError(f"content encoding {answer.headers['Content-Encoding']}, want {coding}")
        packed = answer.headers["Content-Encoding"]
        reader = pa.ipc.open_stream(pa.CompressedInputStream(answer, packed) if packed else answer)
        schema = reader.schema
        if schema.field("timestamp").type != pa.timestamp("ms", tz="UTC") or schema.field("value").type != pa.float64():
            raise ValueError(f"schema {schema}")
        while True:
            try:
                batch, metadata = reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                return
            batch.validate(full=True)
            tags = json.loads(metadata[b"aggregateTags"])
            for row in rows_of(pa.Table.from_batches([batch])):
                yield row | {"aggregateTags": tags}


def rows_of(table):
    at = table.schema.get_field_index("timestamp")
    return table.set_column(at, "timestamp", table["timestamp"].cast(pa.int64())).to_pylist()


def read_downpour(url):
    """Our own package, asked the same."""
    address = urllib.parse.urlsplit(url)
    options = {k: v for k, v in urllib.parse.parse_qsl(address.query) if k != "m"}
    queries = urllib.parse.parse_qs(address.query)["m"]
    server = downpour.Server(f"{address.scheme}://{address.netloc}")
    return rows_of(server.query(*queries, start=options.pop("start"), frame="arrow", **options))


def read_pandas(url):
    with fetch(url) as answer:
        df = pa.ipc.open_stream(answer).read_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    df["timestamp"] = df["timestamp"].astype("int64")
    for row in df.to_dict("records"):
        yield {k: None if isinstance(v, float) and k not in ("value",) or v is pd.NA else v for k, v in row.items()}


def read_polars(url):
    with fetch(url) as answer:
        df = pl.read_ipc_stream(answer.read())
    return df.with_columns(pl.col("timestamp").dt.epoch("ms")).to_dicts()


def read_duckdb(url):
    with fetch(url) as answer:
        stream = pa.ipc.open_stream(answer)
        found = duckdb.sql('select * replace (epoch_ms("timestamp") as "timestamp") from stream')
        columns = found.columns
        return [dict(zip(columns, row)) for row in found.fetchall()]


READERS = {
    "pyarrow": read_pyarrow,
    "pyarrow-gzip": lambda url: read_pyarrow(url, "gzip"),
    "pyarrow-zstd": lambda url: read_pyarrow(url, "zstd"),
    "downpour": read_downpour,
    "pandas": read_pandas,
    "polars": read_polars,
    "duckdb": read_duckdb,
}


def main(urls):
    for i, url in enumerate(urls):
        for name, read in READERS.items():
            print("#", name, i)
            try:
                for row in read(url):
                    print(json.dumps({k: repr(v) if isinstance(v, float) else v for k, v in row.items()}))
            except Exception as e:
                print(f"! {type(e).__name__}: {str(e)[:200]!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
