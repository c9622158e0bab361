"""What can go wrong, with the gateway's own words."""

from __future__ import annotations

import json
from collections.abc import Sequence


class DownpourError(Exception):
    """The gateway refused or could not answer; str() is its message.

    status is the HTTP status or None when there was no answer, details more
    words, missing the key ranges in hex that an incomplete answer lacks.
    """

    def __init__(self, message: str, status: int | None = None, details: str = "", missing: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.details = details
        self.missing = [tuple(r) for r in missing]


class CutShort(DownpourError):
    """An answer ended before it was complete; nothing of it is to be trusted."""


def of_body(status: int, body: bytes) -> DownpourError:
    """Reads the error object of an answer: {"error":{"code","message",…}}."""
    try:
        error = json.loads(body)["error"]
        return DownpourError(error["message"], status, error.get("details") or "", error.get("missing") or ())
    except (ValueError, KeyError, TypeError):
        text = body[:500].decode(errors="replace").strip()
        return DownpourError(f"HTTP status {status}: {text}", status)
