"""Answers over HTTP, whole and not, and lists of names, from a scripted server."""

import contextlib
import datetime
import http.server
import json
import sys
import threading
import unittest
import unittest.mock
import warnings
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

import downpour

STREAM = "application/vnd.apache.arrow.stream"


def stream(rows=3):
    """An answer of one batch."""
    text = pa.array(["m"] * rows, pa.string()).dictionary_encode()
    batch = pa.RecordBatch.from_pydict({"metric": text, "timestamp": pa.array(range(rows), pa.timestamp("ms", tz="UTC")), "value": pa.array([1.0] * rows)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


@contextlib.contextmanager
def serving(status=200, body=b"", kind=STREAM, protocol="HTTP/1.0", headers=()):
    """A server that gives one answer, and the requests that it had."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = protocol

        def do_GET(self):
            requests.append(self)
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in (("Content-Type", kind), *headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Query(unittest.TestCase):
    def test_request(self):
        with serving(body=stream()) as (url, requests):
            server = downpour.Server(url, token="secret")
            start = datetime.datetime(2013, 1, 1, tzinfo=datetime.timezone.utc)
            df = server.query("sum:a{host=*}", "max:b", start=start, end="1h-ago", integers=True, compression=None, mode="strict")
            self.assertEqual(len(df), 3)
            self.assertNotIn("secret", repr(server))
        address = urlsplit(requests[0].path)
        self.assertEqual(address.path, "/api/query")
        self.assertEqual(parse_qsl(address.query), [("m", "sum:a{host=*}"), ("m", "max:b"), ("start", "1356998400000"), ("end", "1h-ago"), ("integers", "true"), ("mode", "strict")])
        self.assertEqual(requests[0].headers["Accept"], STREAM)
        self.assertEqual(requests[0].headers["Authorization"], "Bearer secret")

    def test_module_functions(self):
        before = downpour._asked
        self.addCleanup(setattr, downpour, "_asked", before)
        with serving(body=stream()) as (url, _):
            downpour.connect(url)
            self.assertEqual(downpour.query("sum:m", start="1h-ago", frame="arrow").num_rows, 3)
            self.assertEqual([b.num_rows for b in downpour.batches("sum:m", start="1h-ago")], [3])

    def test_last_hour(self):
        with serving(body=stream()) as (url, requests):
            downpour.Server(url).query("sum:m")
            list(downpour.Server(url).batches("sum:m"))
        for r in requests:
            self.assertEqual(parse_qsl(urlsplit(r.path).query), [("m", "sum:m"), ("start", "1h-ago")])

    def test_library_that_is_missing(self):
        with serving(body=stream()) as (url, requests):
            server = downpour.Server(url)
            for kind in ("polars", "duckdb"):
                with unittest.mock.patch.dict(sys.modules, {kind: None}), self.assertRaises(ModuleNotFoundError) as e:
                    server.query("sum:m", frame=kind)
                self.assertIn(f"pip install 'downpour-client[{kind}]'", str(e.exception))
                with unittest.mock.patch.dict(sys.modules, {kind: None}), self.assertRaises(ModuleNotFoundError):
                    server.follow("sum:m", frame=kind)
            with unittest.mock.patch.dict(sys.modules, {"polars": None, "duckdb": None}):
                self.assertEqual(server.query("sum:m", frame="arrow").num_rows, 3)
        self.assertEqual(len(requests), 1)  # nobody waits for an answer that cannot be used

    def test_time_without_zone(self):
        with self.assertRaisesRegex(downpour.DownpourError, "time zone"):
            downpour.query("sum:m", start=datetime.datetime(2013, 1, 1))


class Errors(unittest.TestCase):
    def refused(self, *words, **answer):
        with serving(**answer) as (url, _), self.assertRaises(downpour.DownpourError) as e:
            downpour.Server(url).query("sum:m", start="1h-ago")
        for word in words:
            self.assertIn(word, str(e.exception))
        return e.exception

    def test_the_gateways_words(self):
        body = b'{"error":{"code":400,"message":"No such name for \'metrics\': \'m\'","details":"more"}}'
        e = self.refused("No such name for 'metrics': 'm'", status=400, body=body, kind="application/json")
        self.assertEqual((e.status, e.details, e.missing), (400, "more", []))

    def test_all_its_words(self):
        body = b'{"error":{"code":404,"message":"Unable to resolve","details":"No such name for \'metrics\': \'cpu.usr\'","suggestions":["cpu.user","cpu.usr2"]}}'
        e = self.refused("Unable to resolve: No such name for 'metrics': 'cpu.usr', did you mean cpu.user, cpu.usr2?", status=404, body=body, kind="application/json")
        self.assertEqual(e.suggestions, ["cpu.user", "cpu.usr2"])

    def test_missing_ranges(self):
        body = b'{"error":{"code":503,"message":"The answer is incomplete","missing":[["00","01"]]}}'
        self.assertEqual(self.refused(status=503, body=body, kind="application/json").missing, [("00", "01")])

    def test_other_servers(self):
        self.refused("status 502", "Bad gateway", status=502, body=b"<html>Bad gateway</html>", kind="text/html")
        self.refused("text/html", "is it a Downpour gateway", body=b"<html>", kind="text/html")

    def test_nobody_there(self):
        with serving() as (url, _):
            pass
        with self.assertRaisesRegex(downpour.DownpourError, url):
            downpour.Server(url).query("sum:m", start="1h-ago")


class Names(unittest.TestCase):
    def asked(self, ask, answer, headers=()):
        """What is asked for, the body of the request, and what comes of the answer."""
        with serving(body=json.dumps(answer).encode(), kind="application/json", headers=headers) as (url, requests):
            names = ask(downpour.Server(url, token="secret"))
        (request,) = requests
        self.assertEqual(request.headers["Authorization"], "Bearer secret")
        address = urlsplit(request.path)
        return address.path, dict(parse_qsl(address.query)), json.loads(request.body or "null"), names

    def test_metrics(self):
        self.assertEqual(self.asked(lambda s: s.metrics("cpu user"), ["cpu.user", "sys.cpu.user"], [("Downpour-Total", "2")]),
                         ("/api/suggest", {"type": "metrics", "q": "cpu user", "match": "substring", "max": "100000"}, None, ["cpu.user", "sys.cpu.user"]))
        self.assertEqual(self.asked(lambda s: s.metrics(), [])[3], [])

    def test_tags(self):
        series = [{"tags": {"host": "a"}}, {"tags": {"dc": "x", "host": "b"}}]
        self.assertEqual(self.asked(lambda s: s.tags("m"), {"results": series}),
                         ("/api/search/lookup", {}, {"metric": "m", "useMeta": True, "limit": 0}, ["dc", "host"]))

    def test_values(self):
        self.assertEqual(self.asked(lambda s: s.values("m{", "host"), {"values": ["a", "b"], "more": False}),
                         ("/api/search/values", {"tagk": "host"}, {"metric": "m{", "limit": 10000}, ["a", "b"]))

    def test_not_all(self):
        """A list that was cut does not look like all names, and one that was not gives no warning."""
        with self.assertWarnsRegex(UserWarning, "7 metrics match, these are the first 1"):
            self.asked(lambda s: s.metrics(), ["a"], [("Downpour-Total", "7")])
        with self.assertWarnsRegex(UserWarning, "host has more values"):
            self.asked(lambda s: s.values("m", "host"), {"values": ["a"], "more": True})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.asked(lambda s: s.metrics(), ["a"], [("Downpour-Total", "1")])
            self.asked(lambda s: s.values("m", "host"), {"values": ["a"], "more": False})

    def test_module_functions(self):
        before = downpour._asked
        self.addCleanup(setattr, downpour, "_asked", before)
        with serving(body=b'{"values":["a"],"more":false,"results":[]}', kind="application/json") as (url, requests):
            downpour.connect(url)
            self.assertEqual(downpour.values("m", "host"), ["a"])
            self.assertEqual(downpour.tags("m"), [])
            self.assertEqual(sorted(downpour.metrics("cpu")), ["more", "results", "values"])
        self.assertEqual([json.loads(r.body)["metric"] for r in requests[:2]], ["m", "m"])
        self.assertIn("q=cpu", requests[2].path)

    def test_errors(self):
        with serving(body=b"<html>", kind="text/html") as (url, _), self.assertRaisesRegex(downpour.DownpourError, "text/html, want JSON: is it a Downpour gateway"):
            downpour.Server(url).tags("m")
        body = b'{"error":{"code":404,"message":"Unable to resolve","details":"No such name"}}'
        with serving(status=404, body=body, kind="application/json") as (url, _), self.assertRaisesRegex(downpour.DownpourError, "No such name"):
            downpour.Server(url).values("m", "host")
        with serving(body=b'["a"]', kind="application/json", headers=[("Content-Length", "50")]) as (url, _), self.assertRaises(downpour.CutShort):
            downpour.Server(url).metrics()


class Cut(unittest.TestCase):
    """Whatever the way in which the end is lost, nothing of the answer comes out."""

    def cut(self, **answer):
        with serving(**answer) as (url, _):
            for read in (lambda s: s.query("sum:m", start="1h-ago"), lambda s: list(s.batches("sum:m", start="1h-ago"))):
                with self.assertRaises(downpour.CutShort):
                    read(downpour.Server(url))

    def test_at_every_kind_of_place(self):
        whole = stream(100)
        for n in (0, 1, 100, len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 4, len(whole) - 1):
            with self.subTest(n):
                self.cut(body=whole[:n])

    def test_chunked(self):
        whole = stream(100)
        chunk = whole[: len(whole) - 8]
        self.cut(body=b"%x\r\n%b\r\n" % (len(chunk), chunk), protocol="HTTP/1.1", headers=[("Transfer-Encoding", "chunked")])

    def test_whole(self):
        with serving(body=stream(100)) as (url, _):
            self.assertEqual(len(downpour.Server(url).query("sum:m", start="1h-ago")), 100)


if __name__ == "__main__":
    unittest.main()
