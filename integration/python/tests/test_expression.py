"""Expressions become the sub-queries that the gateway makes of them."""

import unittest

from downpour import DownpourError, parse


def by(key, kind, value, group):
    return {"type": kind, "tagk": key, "filter": value, "groupBy": group}


class Parse(unittest.TestCase):
    def check(self, expression, **want):
        self.assertEqual(parse(expression), want)

    def test_parts(self):
        self.check("sum:cpu.user", aggregator="sum", metric="cpu.user")
        self.check("avg:5m-max-nan:rate:explicit_tags:m", aggregator="avg", metric="m", downsample="5m-max-nan", rate=True, explicitTags=True)
        self.check("sum:rate{counter,65535,10}:m", aggregator="sum", metric="m", rate=True,
                   rateOptions={"counter": True, "dropResets": False, "counterMax": 65535, "resetValue": 10})
        self.check("sum:rate{dropcounter,,5}:1m-avg:m{a=b}", aggregator="sum", metric="m", rate=True, downsample="1m-avg",
                   rateOptions={"counter": True, "dropResets": True, "resetValue": 5}, filters=[by("a", "literal_or", "b", True)])

    def test_histograms(self):
        self.check("sum:5m-sum:percentiles[50, 99.9]:m", aggregator="sum", metric="m", downsample="5m-sum", percentiles=[50, 99.9])
        self.check("none:show-histogram-buckets:m", aggregator="none", metric="m", showHistogramBuckets=True)

    def test_filters(self):
        def check(text, *filters):
            self.check("sum:m" + text, aggregator="sum", metric="m", **({"filters": list(filters)} if filters else {}))

        check("{}")
        check("{host=*}", by("host", "wildcard", "*", True))
        check("{host=web*,dc=lga|sjc}", by("host", "wildcard", "web*", True), by("dc", "literal_or", "lga|sjc", True))
        check("{host=regexp(web0[1-3]),dc=not_literal_or(lga)}", by("host", "regexp", "web0[1-3]", True), by("dc", "not_literal_or", "lga", True))
        check("{host=*}{dc=lga}", by("dc", "literal_or", "lga", False), by("host", "wildcard", "*", True))
        check("{}{dc=lga}", by("dc", "literal_or", "lga", False))

    def test_json_stays(self):
        query = {"aggregator": "sum", "metric": "m", "tags": {"host": "*"}}
        self.assertIs(parse(query), query)

    def test_errors(self):
        for expression in ["", "m", "sum:", ":m", "sum:m{host}", "sum:m{host=*", "sum:m{=x}", "sum:average:m", "sum:percentiles[]:m", "sum:percentiles[x]:m", "sum:percentiles[50:m", "sum:m{a=b}{c=d}{e=f}"]:
            with self.subTest(expression):
                with self.assertRaises(DownpourError) as e:
                    parse(expression)
                self.assertIn(repr(expression), str(e.exception))


if __name__ == "__main__":
    unittest.main()
