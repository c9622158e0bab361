"""Live queries: the answer of a moment, kept up to date."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import websockets.sync.client
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from . import _frames
from ._errors import DownpourError, of_body, of_object

if TYPE_CHECKING:
    from ._server import Server

_FIRST_PAUSE, _LAST_PAUSE = 0.2, 10.0  # seconds between attempts to connect


class State:
    """One live answer: the groups of a snapshot with all deltas since applied.

    groups maps a group's index to what describes it (queryIndex, metric, tags,
    aggregateTags) and its points, times in milliseconds to values.
    """

    def __init__(self) -> None:
        self.groups: dict[int, dict[str, Any]] = {}
        self.epoch: str | None = None
        self.seq = 0
        self.final_before = 0

    def apply(self, message: dict[str, Any]) -> None:
        """Takes a snapshot or a delta."""
        self.seq = message["seq"]
        if message["type"] == "snapshot":
            self.epoch = message["epoch"]
            self.groups = {i: _describe(r) | {"points": dict(map(_point, r["dps"]))} for i, r in enumerate(message["results"])}
            return
        for g in message.get("groups", ()):
            old = self.groups.get(g["group"], {})
            self.groups[g["group"]] = _describe(g) | {"points": old.get("points", {})}
        for index in message.get("removed", ()):
            self.groups.pop(index, None)
        for u in message.get("upserts", ()):
            self.groups[u["group"]]["points"].update(map(_point, u["dps"]))
        for d in message.get("deletes", ()):
            points = self.groups[d["group"]]["points"]
            for t in d["ts"]:
                points.pop(t, None)
        self.final_before = message.get("finalBefore", self.final_before)

    def table(self, queries: int = 1) -> pa.Table:
        """The answer as a long table, as Server.query gives it."""
        groups = [g for _, g in sorted(self.groups.items(), key=lambda item: (item[1]["queryIndex"], item[0]))]
        points = [sorted(g["points"].items()) for g in groups]
        counts = [len(p) for p in points]
        keys = sorted({k for g in groups for k in (*g["tags"], *g["aggregateTags"])})
        columns: dict[str, pa.Array[Any]] = {"metric": _text([g["metric"] for g in groups], counts)}
        for k in keys:
            columns[f"tag_{k}" if k in _frames.FIXED else k] = _text([g["tags"].get(k) for g in groups], counts)
        columns["timestamp"] = pa.array([t for p in points for t, _ in p], pa.timestamp("ms", tz="UTC"))
        columns["value"] = pa.array([None if v is None else float(v) for p in points for _, v in p], pa.float64())
        if queries > 1:
            columns["query"] = pa.array([g["queryIndex"] for g, n in zip(groups, counts) for _ in range(n)], pa.int32())
        return pa.table(columns)


def _describe(group: dict[str, Any]) -> dict[str, Any]:
    return {k: group[k] for k in ("queryIndex", "metric", "tags", "aggregateTags")}


def _point(pair: list[Any]) -> tuple[int, Any]:
    t, v = pair
    return t, float(v) if isinstance(v, str) else v  # "NaN"


def _text(values: list[str | None], counts: list[int]) -> pa.DictionaryArray[Any, Any]:
    """Each value as many times as its group has points."""
    known = sorted({v for v in values if v is not None})
    index = {v: i for i, v in enumerate(known)}
    rows = [index.get(v) if v is not None else None for v, n in zip(values, counts) for _ in range(n)]
    return pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(known, pa.string()))


class Live:
    """An iterator of frames, one for each change of a live answer. It holds a
    connection: close it, use it in a with statement, or drop it."""

    def __init__(self, server: "Server", query: dict[str, Any], frame: _frames.Kind, shape: str, resume: bool):
        self.state = State()
        self._server, self._query, self._frame, self._shape, self._resume = server, query, frame, shape, resume
        self._socket: websockets.sync.client.ClientConnection | None = None
        self._open = contextlib.ExitStack()  # closes the socket
        self._closed = False
        self._pause = 0.0

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends following."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        self._socket = None
        self._open.close()

    def frame(self) -> Any:
        """The whole answer as it is known now."""
        return _frames.frame(self.state.table(len(self._query["queries"])), self._frame, self._shape)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """Waits for the next change."""
        while not self._closed:
            message = self._receive()
            if message is None or message["type"] == "heartbeat":
                continue
            if message["type"] == "complete":
                self.close()
            elif message["type"] == "error":
                self._refused(message["error"])
            elif message["type"] in ("snapshot", "delta"):
                self._pause = 0.0
                self.state.apply(message)
                return self.frame()
        raise StopIteration

    def _refused(self, error: dict[str, Any]) -> None:
        if not error["temporary"]:
            self.close()
            raise of_object(error["code"], error)

    def _receive(self) -> dict[str, Any] | None:
        """The next message, None when the connection was lost."""
        try:
            if self._socket is None:
                self._socket = self._connect()
            message: dict[str, Any] = json.loads(self._socket.recv())
            return message
        except (ConnectionClosed, OSError, WebSocketException) as e:
            self._lost(e)
            return None

    def _lost(self, why: Exception) -> None:
        """Waits before the next attempt, longer each time."""
        self._drop()
        response = why.response if isinstance(why, InvalidStatus) else None
        if response is not None and 400 <= response.status_code < 500:
            raise of_body(response.status_code, bytes(response.body or b"")) from None
        if self._closed:
            return
        if not self._resume or self.state.epoch is None:
            raise DownpourError(f"{self._server.url} cannot be followed: {why!r}") from why
        time.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LAST_PAUSE)

    def _connect(self) -> websockets.sync.client.ClientConnection:
        at = urlsplit(self._server.url)
        address = f"{'wss' if at.scheme.lower() == 'https' else 'ws'}://{at.netloc}{at.path.rstrip('/')}/api/ws"
        protocols = [Subprotocol(p) for p in ("downpour.v1", self._server.token and f"bearer.{self._server.token}") if p]
        socket = websockets.sync.client.connect(address, subprotocols=protocols, ssl=self._server.tls(), max_size=None, open_timeout=self._server.timeout)
        self._open.enter_context(socket)
        subscribe = {"type": "subscribe", "id": "q", "query": self._query}
        if self.state.epoch is not None:
            subscribe["resume"] = {"epoch": self.state.epoch, "seq": self.state.seq}
        socket.send(json.dumps(subscribe))
        return socket
