"""Reads a part from a pushdown server with pyarrow.flight.

Usage: read_flight.py LOCATION TICKET-FILE [TOKEN]. Prints one JSON object a
line: what hello says, then each row of the part (span in hex, and its columns,
all times written out), or {"error": …} with the server's words.
"""

import json
import sys

import pyarrow.flight as flight


def call_options(token):
    headers = [(b"authorization", b"Bearer " + token.encode())] if token else []
    return flight.FlightCallOptions(timeout=30, headers=headers)


def plain(value):
    """Turns a value into what JSON keeps exactly."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def spread(row):
    """Writes out times at even distances, of which only the first two are sent."""
    for name, beside in (("time", "value"), ("raw_time", "raw_bits")):
        times, n = row.get(name), len(row.get(beside) or [])
        if times is not None and len(times) == 2 and n > 2:
            row[name] = [times[0] + i * (times[1] - times[0]) for i in range(n)]
    return row


def main(location, ticket_file, token=""):
    with open(ticket_file, "rb") as f:
        ticket = flight.Ticket(f.read())
    client = flight.connect(location)
    options = call_options(token)
    try:
        (hello,) = client.do_action(flight.Action("hello", b""), options)
        print(json.dumps(json.loads(hello.body.to_pybytes())))
        table = client.do_get(ticket, options).read_all()
        table.validate(full=True)
        for row in table.to_pylist():
            print(json.dumps({name: plain(value) for name, value in spread(row).items()}))
    except flight.FlightError as e:
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}))
    except Exception as e:  # pyarrow raises its own kinds for some statuses
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
