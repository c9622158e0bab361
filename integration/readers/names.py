"""Prints the lists of names that our package has of a gateway, and its words for a
metric that is not there.

Usage: names.py GATEWAY.
"""

import json
import sys

import downpour


def words(ask):
    """What the package says when the gateway refuses."""
    try:
        return ask()
    except downpour.DownpourError as e:
        return f"{e.status} {e}"


if __name__ == "__main__":
    server = downpour.Server(sys.argv[1])
    print(json.dumps({
        "metrics": server.metrics("CPU"),
        "all": server.metrics(),
        "tags": server.tags("sys.cpu.user"),
        "values": server.values("sys.cpu.user", "host"),
        "points": len(server.query("sum:sys.cpu.user", frame="duckdb")),
        "near": words(lambda: server.query("sum:sys.cpu.usr")),
        "no metric": words(lambda: server.tags("sys.cpu.usr")),
        "no tag": words(lambda: server.values("sys.cpu.user", "rack")),
    }))
