"""Long tables become frames of both shapes without losing a digit."""

import datetime
import math
import unittest

import pandas as pd
import pyarrow as pa

from downpour import _frames


def text(values):
    return pa.array(values, pa.string()).dictionary_encode()


def table(**more):
    """Two series: a has points at 1 and 2 s, b at 2 and 3 s."""
    columns = {
        "metric": text(["m"] * 4),
        "host": text(["a", "a", "b", "b"]),
        "tag_value": text([None, None, "x", "x"]),
        "timestamp": pa.array([1000, 2000, 2000, 3000], pa.timestamp("ms", tz="UTC")),
        "value": pa.array([1.0, float("nan"), None, 4.0]),
    }
    return pa.table(columns | more)


class Wide(unittest.TestCase):
    def columns(self, t):
        return {name: _frames.wide(t)[name].to_pylist() for name in _frames.wide(t).column_names[1:]}

    def test_gaps_nan_and_null(self):
        got = self.columns(table())
        self.assertEqual(list(got), ["m{host=a}", "m{host=b,value=x}"])
        self.assertEqual([str(v) for v in got["m{host=a}"]], ["1.0", "nan", "None"])
        self.assertEqual(got["m{host=b,value=x}"], [None, None, 4.0])

    def test_integers(self):
        large = 2**53 + 1
        got = self.columns(table(value_int=pa.array([large, large + 1, 3, None], pa.int64())))
        self.assertEqual(got["m{host=a}"], [large, large + 1, None])
        self.assertEqual(got["m{host=b,value=x}"], [None, None, 4.0])

    def test_sub_queries(self):
        t = table(query=pa.array([0, 0, 1, 1], pa.int32()), host=text(["a"] * 4), tag_value=text([None] * 4))
        self.assertEqual(list(self.columns(t)), ["0:m{host=a}", "1:m{host=a}"])
        self.assertEqual(list(self.columns(table(query=pa.array([0, 0, 1, 1], pa.int32())))), ["m{host=a}", "m{host=b,value=x}"])

    def test_a_metric_named_timestamp(self):
        t = table(metric=text(["timestamp"] * 4), host=text([None] * 4), tag_value=text([None, None, "x", "x"]))
        self.assertEqual(list(self.columns(t)), ["0:timestamp", "timestamp{value=x}"])

    def test_dictionaries_that_differ_by_batch(self):
        t = table()
        parts = [pa.table({n: t[n].slice(i, 2).combine_chunks() if n in ("timestamp", "value") else text(t[n].slice(i, 2).to_pylist()) for n in t.column_names}) for i in (0, 2)]
        self.assertEqual([str(v) for c in self.columns(pa.concat_tables(parts)).values() for v in c],
                         [str(v) for c in self.columns(t).values() for v in c])

    def test_empty(self):
        wide = _frames.wide(table().slice(0, 0))
        self.assertEqual((wide.num_rows, wide.column_names), (0, ["timestamp"]))


class Frames(unittest.TestCase):
    def test_pandas(self):
        large = 2**63 - 1
        df = _frames.frame(table(value_int=pa.array([large, None, 3, None], pa.int64())), "pandas", "long")
        self.assertEqual(df["value_int"][0], large)
        self.assertTrue(df["value_int"][1] is pd.NA)
        self.assertEqual(str(df["timestamp"].dtype), "datetime64[ms, UTC]")
        self.assertEqual(str(df["host"].dtype), "category")
        wide = _frames.frame(table(), "pandas", "wide")
        self.assertEqual((wide.index.name, wide.shape), ("timestamp", (3, 2)))

    def test_polars(self):
        df = _frames.frame(table(), "polars", "long")
        self.assertEqual(df["value"].null_count(), 1)
        self.assertEqual(sum(math.isnan(v) for v in df["value"].drop_nulls()), 1)
        self.assertEqual(_frames.frame(table(), "polars", "wide").columns, ["timestamp", "m{host=a}", "m{host=b,value=x}"])

    def test_duckdb(self):
        large = 2**63 - 1
        points = _frames.frame(table(value_int=pa.array([large, None, 3, None], pa.int64())), "duckdb", "long")
        self.assertEqual(points.aggregate("host, count(value), max(value_int)", "host").order("host").fetchall(), [("a", 2, large), ("b", 1, 3)])
        at = datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.timezone.utc)
        self.assertEqual(points.filter("isnan(value)").project("metric, timestamp").fetchall(), [("m", at)])
        self.assertEqual(_frames.frame(table(), "duckdb", "wide").columns, ["timestamp", "m{host=a}", "m{host=b,value=x}"])

    def test_unknown(self):
        for kind, shape in [("spark", "long"), ("pandas", "tall")]:
            with self.assertRaises(ValueError):
                _frames.frame(table(), kind, shape)


if __name__ == "__main__":
    unittest.main()
