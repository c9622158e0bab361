"""Follows a live query of a real gateway with our package, over TLS with a token,
and holds each frame against the same query asked fresh.

Usage: follow.py URL CERTIFICATES READ-TOKEN WRITE-TOKEN
"""

import json
import sys
import time
import urllib.request

import downpour

QUERY = "sum:10s-avg:live.test{host=*}"
START = 1356998400


def put(url, ca, token, *points):
    body = json.dumps([{"metric": "live.test", "timestamp": START + at, "value": value, "tags": tags} for at, value, tags in points])
    request = urllib.request.Request(f"{url}/api/put", body.encode(), {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    urllib.request.urlopen(request, context=downpour.Server(url, ca=ca).tls()).read()


def refused(words, act):
    try:
        act()
    except downpour.DownpourError as e:
        assert words in str(e), f"{e!r} lacks {words!r}"
        return e
    raise AssertionError(f"not refused: want {words!r}")


def same(a, b):
    order = ["host", "timestamp"]
    return a.columns == b.columns and a.sort(order).equals(b.sort(order))


def text(frame):
    """Names as text: the categories of two frames need not be the same ones."""
    import polars as pl

    return frame.with_columns(pl.col(c).cast(pl.String) for c in frame.columns if c in ("metric", "host", "dc"))


def main(url, ca, read, write):
    refused("Unauthorized", lambda: downpour.Server(url, ca=ca).query(QUERY, start=START))
    refused("ertificate", lambda: downpour.Server(url, token=read).query(QUERY, start=START))
    refused("", lambda: next(downpour.Server(url, ca=ca, token="wrong").follow(QUERY, start=START)))
    server = downpour.Server(url, token=read, ca=ca)
    a, b = {"host": "a", "dc": "x"}, {"host": "b", "dc": "x"}
    put(url, ca, write, (0, 1, a), (10, 2, a))
    frames = 0
    with server.follow(QUERY, start=START, frame="polars", shape="long") as live:
        for step in [
            [],
            [(20, 3, a)],  # in order
            [(5, 9, a)],  # late
            [(20, 4.5, a)],  # corrected
            [(0, 7, b), (30, 8, b)],  # a new series
            [(0, 1, a | {"dc": "y"})],  # dc is aggregated now
        ]:
            if step:
                put(url, ca, write, *step)
            fresh = text(server.query(QUERY, start=START, frame="polars"))
            deadline = time.monotonic() + 20
            for frame in live:
                frames += 1
                if same(text(frame), fresh):
                    break
                assert time.monotonic() < deadline, f"{step}: the frame {frame} stays behind {fresh}"
    print(f"{frames} frames, {len(fresh)} points")


if __name__ == "__main__":
    main(*sys.argv[1:])
