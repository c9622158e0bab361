"""A gateway: its address, and the questions one can put to it."""

from __future__ import annotations

import dataclasses
import datetime
import email.message
import http.client
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Union, overload

import pyarrow as pa

from . import _errors, _expression, _frames, _live, _stream

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

Time = Union[str, int, datetime.datetime]  # evaluated, so not with | before Python 3.10
Shape = Literal["long", "wide"]

START: Time = "1h-ago"  # where a call gives none

# The most names that a gateway lists at once.
_METRICS, _VALUES = 100_000, 10_000


@dataclasses.dataclass(frozen=True)
class Server:
    """A gateway at url. token is a bearer token of scope read; ca a file of
    certificates to trust beside the system's; timeout, in seconds, how long to
    wait for the next bytes of an answer."""

    url: str = "http://127.0.0.1:4242"
    token: str | None = dataclasses.field(default=None, repr=False)
    ca: str | None = None
    timeout: float = 60.0

    @overload
    def query(self, *queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["pandas"] = ..., shape: Shape = ..., **options: Any) -> "pandas.DataFrame": ...
    @overload
    def query(self, *queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["polars"], shape: Shape = ..., **options: Any) -> "polars.DataFrame": ...
    @overload
    def query(self, *queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["duckdb"], shape: Shape = ..., **options: Any) -> "duckdb.DuckDBPyRelation": ...
    @overload
    def query(self, *queries: str, start: Time = ..., end: Time | None = ..., frame: Literal["arrow"], shape: Shape = ..., **options: Any) -> pa.Table: ...

    def query(self, *queries: str, start: Time = START, end: Time | None = None, frame: _frames.Kind = "pandas", shape: Shape = "long", **options: Any) -> Any:
        """Answers queries such as "sum:5m-avg:cpu.user{host=*}" as one frame.

        start and end are OpenTSDB's ("6h-ago", "2013/01/01-00:00:00", seconds or
        milliseconds) or a datetime with a time zone; without a start it is the last
        hour. frame is "pandas", "polars", "duckdb" (a relation of DuckDB's default
        connection) or "arrow"; each but the last needs the library of its name.
        shape "long" has a row for each point: metric, a column for
        each tag key, timestamp (UTC), value, and query, the sub-query, if there
        are several; "wide" a row for each time and a column for each series.

        Of the options, integers=True adds value_int, exact beyond 2^53;
        compression is "lz4" or "zstd", for thin wires; others go to the gateway
        as they are. Raises DownpourError with the gateway's words, CutShort
        when the answer ended too early.
        """
        _frames.check(frame, shape)
        with self._stream(queries, start, end, options) as answer:
            table = answer.read_all()
        return _frames.frame(table, frame, shape)

    def batches(self, *queries: str, start: Time = START, end: Time | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """Answers as query does, in Arrow record batches while they come."""
        with self._stream(queries, start, end, options) as answer:
            yield from answer

    def follow(self, *queries: _expression.Query, start: Time = START, frame: _frames.Kind = "pandas", shape: Shape = "wide", resume: bool = True) -> "_live.Live":
        """Follows live queries: an iterator of frames, one for each change.

            for df in downpour.follow("sum:1m-avg:cpu.user{host=*}", start="15m-ago"):
                ...

        Each frame is the whole answer of this moment, as query would give it. A
        connection that is lost is taken up again, unless resume is False.
        Raises DownpourError when the gateway ends the query.
        """
        _frames.check(frame, shape)
        body = {"start": time_text(start), "msResolution": True, "queries": [_expression.parse(q) for q in queries]}
        return _live.Live(self, body, frame, shape, resume)

    def metrics(self, part: str = "") -> list[str]:
        """Lists the metrics whose names hold all words of part, whatever their
        capitals: the best first, all without a part."""
        names, header = self._ask("/api/suggest", {"type": "metrics", "q": part, "match": "substring", "max": _METRICS})
        total = int(header.get("Downpour-Total") or len(names))
        _warn_of_more(total > len(names), f"{total} metrics match, these are the first {len(names)}")
        return list(names)

    def tags(self, metric: str) -> list[str]:
        """Lists the tag keys of a metric: those of its series in the meta table, all
        of which the gateway sends. Where puts do not record series, there is none."""
        found, _ = self._ask("/api/search/lookup", {}, {"metric": metric, "useMeta": True, "limit": 0})
        return sorted({key for series in found["results"] for key in series["tags"]})

    def values(self, metric: str, tag: str) -> list[str]:
        """Lists the values that a tag key has in the series of a metric: those of the
        meta table, or of recent rows where it knows no series of the metric."""
        found, _ = self._ask("/api/search/values", {"tagk": tag}, {"metric": metric, "limit": _VALUES})
        _warn_of_more(found["more"], f"{tag} has more values, or may have: these are {len(found['values'])}")
        return list(found["values"])

    def _ask(self, path: str, parameters: dict[str, Any], body: dict[str, Any] | None = None) -> tuple[Any, email.message.Message]:
        """What a route answers as JSON, and the answer's header."""
        request = urllib.request.Request(f"{self.url.rstrip('/')}{path}?{urllib.parse.urlencode(parameters)}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with self._send(request) as answer:
            try:
                return json.loads(answer.read()), answer.headers
            except ValueError:
                raise _errors.DownpourError(f"{request.full_url} answers with {answer.headers.get_content_type()}, want JSON: is it a Downpour gateway?") from None
            except (OSError, http.client.HTTPException) as e:
                raise _errors.CutShort(f"the answer was cut: {e!r}") from e

    def _stream(self, queries: tuple[str, ...], start: Time, end: Time | None, options: dict[str, Any]) -> _stream.Answer:
        parameters = [("m", q) for q in queries] + [("start", time_text(start))]
        if end is not None:
            parameters.append(("end", time_text(end)))
        parameters += [(name, _text(value)) for name, value in options.items() if value is not None]
        request = urllib.request.Request(f"{self.url.rstrip('/')}/api/query?{urllib.parse.urlencode(parameters)}")
        request.add_header("Accept", _stream.MEDIA_TYPE)
        return _stream.Answer(self._send(request))

    def _send(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=self.timeout, context=self.tls())
            return answer
        except urllib.error.HTTPError as e:
            with e:
                raise _errors.of_body(e.code, e.read()) from None
        except (OSError, http.client.HTTPException) as e:
            raise _errors.DownpourError(f"{self.url} cannot be asked: {getattr(e, 'reason', None) or e!r}") from e

    def tls(self) -> ssl.SSLContext | None:
        """The TLS settings of https addresses, None of others."""
        return ssl.create_default_context(cafile=self.ca) if re.match("(?i)https:", self.url) else None


def _warn_of_more(more: bool, text: str) -> None:
    """A list that was cut looks like all names."""
    if more:
        warnings.warn(text, stacklevel=3)


def time_text(t: Time) -> str:
    """A time as the gateway reads it."""
    if not isinstance(t, datetime.datetime):
        return str(t)
    if t.tzinfo is None:
        raise _errors.DownpourError(f"{t} has no time zone: want one such as datetime.timezone.utc")
    return str(round(t.timestamp() * 1000))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
