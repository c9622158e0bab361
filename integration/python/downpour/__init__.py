"""Queries a Downpour gateway from a notebook.

    import downpour

    df = downpour.query("sum:5m-avg:cpu.user{host=*}", start="6h-ago")

The functions of this module ask the gateway of connect(), by default the one at
http://127.0.0.1:4242.
"""

from ._errors import CutShort, DownpourError
from ._expression import parse
from ._live import Live
from ._server import Server

__all__ = [
    "CutShort", "DownpourError", "Live", "Server",
    "batches", "connect", "follow", "parse", "query",
]

_asked = Server()


def connect(url: str, **options) -> Server:
    """Makes Server(url, **options) the one that this module's functions ask."""
    global _asked
    _asked = Server(url, **options)
    return _asked


def query(*queries, **options):
    """Server.query of the gateway of connect()."""
    return _asked.query(*queries, **options)


def batches(*queries, **options):
    """Server.batches of the gateway of connect()."""
    return _asked.batches(*queries, **options)


def follow(*queries, **options):
    """Server.follow of the gateway of connect()."""
    return _asked.follow(*queries, **options)
