"""An Arrow answer while it comes."""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator
from typing import Callable, TypeVar

import pyarrow as pa
import pyarrow.ipc

from ._errors import CutShort, DownpourError

_T = TypeVar("_T")

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

# Arrow's readers take the end of a connection for the end of a stream; only this
# mark tells that nothing is missing.
_END = b"\xff\xff\xff\xff\0\0\0\0"


class Answer:
    """The record batches of an answer. One that is not whole raises CutShort."""

    def __init__(self, response: http.client.HTTPResponse):
        self._response = response
        self._body = _Body(response)
        kind = response.headers.get_content_type()
        if kind != MEDIA_TYPE:
            response.close()
            raise DownpourError(f"{response.url} answers with {kind}, want {MEDIA_TYPE}: is it a Downpour gateway?")

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        reader = self._whole(lambda: pa.ipc.open_stream(self._body))
        while (batch := self._whole(lambda: next(reader, None))) is not None:
            yield batch
        if self._body.tail != _END:
            raise CutShort("the answer ended without its end mark: the gateway gave up while sending")

    def read_all(self) -> pa.Table:
        """All batches as one table."""
        reader = self._whole(lambda: pa.ipc.open_stream(self._body))
        table = self._whole(reader.read_all)
        if self._body.tail != _END:
            raise CutShort("the answer ended without its end mark: the gateway gave up while sending")
        return table.unify_dictionaries()

    @staticmethod
    def _whole(read: Callable[[], _T]) -> _T:
        try:
            return read()
        except (OSError, http.client.HTTPException, pa.ArrowInvalid) as e:
            raise CutShort(f"the answer was cut: {e!r}") from e


class _Body(io.RawIOBase):
    """A file that remembers its last bytes."""

    def __init__(self, response: http.client.HTTPResponse):
        super().__init__()
        self._response = response
        self.tail = b""

    def read(self, n: int = -1) -> bytes:
        """Reads n bytes, fewer only at the end."""
        data = self._response.read(None if n < 0 else n)
        self.tail = data[-8:] if len(data) >= 8 else (self.tail + data)[-8:]
        return data

    def readable(self) -> bool:
        """Files are asked."""
        return True
