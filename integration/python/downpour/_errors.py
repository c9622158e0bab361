"""What can go wrong, with the gateway's own words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


class DownpourError(Exception):
    """The gateway refused or could not answer; str() has all its words.

    status is the HTTP status or None when there was no answer, details more
    words than the message has, missing the key ranges in hex that an incomplete
    answer lacks, suggestions names that may be meant by one that is not there.
    """

    def __init__(self, message: str, status: int | None = None, details: str = "", missing: Sequence[Sequence[str]] = (), suggestions: Sequence[str] = ()) -> None:
        if details and details not in message:
            message = f"{message}: {details}"
        if suggestions:
            message = f"{message}, did you mean {', '.join(suggestions)}?"
        super().__init__(message)
        self.status = status
        self.details = details
        self.missing = [tuple(r) for r in missing]
        self.suggestions = list(suggestions)


class CutShort(DownpourError):
    """An answer ended before it was complete; nothing of it is to be trusted."""


def of_body(status: int, body: bytes) -> DownpourError:
    """Reads the error object of an answer: {"error":{"code","message",…}}."""
    try:
        return of_object(status, json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        text = body[:500].decode(errors="replace").strip()
        return DownpourError(f"HTTP status {status}: {text}", status)


def of_object(status: int, error: dict[str, Any]) -> DownpourError:
    """Reads an error object."""
    return DownpourError(error["message"], status, error.get("details") or "", error.get("missing") or (), error.get("suggestions") or ())
