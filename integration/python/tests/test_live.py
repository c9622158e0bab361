"""Live queries: the state, and a connection to a scripted gateway."""

import contextlib
import http
import json
import threading
import unittest

import websockets.sync.server

import downpour
from downpour._live import State


def group(tags, dps=None, query=0, aggregate=()):
    described = {"queryIndex": query, "metric": "m", "tags": tags, "aggregateTags": list(aggregate)}
    return described if dps is None else described | {"dps": dps}


def snapshot(*results, seq=1, epoch="e"):
    return {"type": "snapshot", "id": "q", "epoch": epoch, "seq": seq, "results": list(results)}


def delta(seq, **changes):
    return {"type": "delta", "id": "q", "seq": seq, "groups": [], "removed": [], "upserts": [], "deletes": [], "finalBefore": 0} | changes


class Apply(unittest.TestCase):
    def setUp(self):
        self.state = State()
        self.state.apply(snapshot(group({"host": "a"}, [[1000, 1], [2000, 2]]), group({"host": "b"}, [[1000, "NaN"], [2000, None]])))

    def rows(self, queries=1):
        return [(r.get("query", 0), r.get("host"), r["timestamp"].timestamp() * 1000, str(r["value"])) for r in self.state.table(queries).to_pylist()]

    def test_snapshot(self):
        self.assertEqual(self.rows(), [(0, "a", 1000, "1.0"), (0, "a", 2000, "2.0"), (0, "b", 1000, "nan"), (0, "b", 2000, "None")])
        self.state.apply(snapshot(group({"host": "c"}, [[1000, 1]]), seq=9, epoch="f"))
        self.assertEqual((self.rows(), self.state.epoch, self.state.seq), ([(0, "c", 1000, "1.0")], "f", 9))

    def test_upserts_and_deletes(self):
        self.state.apply(delta(2, upserts=[{"group": 0, "dps": [[1500, 7], [2000, 3]]}], deletes=[{"group": 1, "ts": [1000, 5000]}], finalBefore=1500))
        self.assertEqual(self.rows(), [(0, "a", 1000, "1.0"), (0, "a", 1500, "7.0"), (0, "a", 2000, "3.0"), (0, "b", 2000, "None")])
        self.assertEqual((self.state.seq, self.state.final_before), (2, 1500))

    def test_groups(self):
        new = {"group": 2} | group({"host": "c"}, query=1)
        again = {"group": 1} | group({}, aggregate=["host"])
        self.state.apply(delta(2, groups=[new, again], removed=[0], upserts=[{"group": 2, "dps": [[3000, 9]]}]))
        self.assertEqual(self.rows(2), [(0, None, 1000, "nan"), (0, None, 2000, "None"), (1, "c", 3000, "9.0")])
        self.assertIn("host", self.state.table().column_names)

    def test_empty(self):
        self.state.apply(snapshot())
        self.assertEqual(self.state.table().num_rows, 0)


@contextlib.contextmanager
def gateway(*scripts, refuse=None):
    """A gateway that plays one script a connection: messages to send after the
    subscription; at its end the connection is dropped. Yields its address and
    what it was sent."""
    seen, waiting = [], list(scripts)

    def handle(socket):
        seen.append((socket.subprotocol, json.loads(socket.recv())))
        for message in waiting.pop(0) if waiting else ():
            socket.send(json.dumps(message))
        socket.socket.close()

    def request(socket, _):
        if refuse:
            return socket.respond(http.HTTPStatus(refuse), json.dumps({"error": {"code": refuse, "message": "not you"}}))

    with websockets.sync.server.serve(handle, "127.0.0.1", 0, subprotocols=["downpour.v1"], process_request=request) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}", seen
        finally:
            server.shutdown()
            thread.join()


FIRST = snapshot(group({"host": "a"}, [[1000, 1]]))
SECOND = delta(2, upserts=[{"group": 0, "dps": [[2000, 2]]}])
END = {"type": "complete", "id": "q"}


class Follow(unittest.TestCase):
    def follow(self, url, **options):
        live = downpour.Server(url).follow("sum:m{host=*}", start="1h-ago", **options)
        self.addCleanup(live.close)
        return live

    def test_frames(self):
        with gateway([FIRST, {"type": "heartbeat"}, SECOND, END]) as (url, seen):
            frames = list(self.follow(url))
        self.assertEqual([f["m{host=a}"].tolist() for f in frames], [[1.0], [1.0, 2.0]])
        protocol, message = seen[0]
        self.assertEqual(protocol, "downpour.v1")
        self.assertEqual(message["query"], {"start": "1h-ago", "msResolution": True, "queries": [downpour.parse("sum:m{host=*}")]})

    def test_resumes(self):
        with gateway([FIRST], [SECOND], [snapshot(seq=5, epoch="f"), END]) as (url, seen):
            frames = list(self.follow(url, shape="long"))
        self.assertEqual([len(f) for f in frames], [1, 2, 0])
        self.assertEqual([m.get("resume") for _, m in seen], [None, {"epoch": "e", "seq": 1}, {"epoch": "e", "seq": 2}])

    def test_no_resume(self):
        with gateway([FIRST]) as (url, _):
            live = self.follow(url, resume=False)
            next(live)
            with self.assertRaisesRegex(downpour.DownpourError, url):
                next(live)

    def test_errors(self):
        error = {"type": "error", "id": "q", "error": {"code": 413, "message": "too many series", "temporary": False, "suggestions": ["fewer"]}}
        passing = {"type": "error", "id": "q", "error": {"code": 503, "message": "busy", "temporary": True}}
        with gateway([FIRST, passing, SECOND, error]) as (url, _):
            live = self.follow(url)
            self.assertEqual(len(next(live)), 1)
            self.assertEqual(len(next(live)), 2)
            with self.assertRaisesRegex(downpour.DownpourError, "too many series, did you mean fewer") as e:
                next(live)
        self.assertEqual(e.exception.status, 413)
        self.assertEqual(list(live), [])

    def test_refused(self):
        with gateway(refuse=401) as (url, _), self.assertRaisesRegex(downpour.DownpourError, "not you"):
            next(self.follow(url))

    def test_closed(self):
        with gateway([FIRST, SECOND]) as (url, _):
            with self.follow(url) as live:
                next(live)
            self.assertEqual(list(live), [])

    def test_token(self):
        offered = []
        with websockets.sync.server.serve(
            lambda socket: socket.recv(), "127.0.0.1", 0, subprotocols=["downpour.v1"],
            process_request=lambda socket, request: offered.append(request.headers["Sec-WebSocket-Protocol"]) or socket.respond(http.HTTPStatus.FORBIDDEN, ""),
        ) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            live = downpour.Server(f"http://127.0.0.1:{server.socket.getsockname()[1]}", token="secret").follow("sum:m", start="1h-ago")
            with self.assertRaises(downpour.DownpourError):
                next(live)
            server.shutdown()
            thread.join()
        self.assertEqual(offered, ["downpour.v1, bearer.secret"])


if __name__ == "__main__":
    unittest.main()
