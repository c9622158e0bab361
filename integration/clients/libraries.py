"""Writes by OpenTSDB's client libraries, each as its own documentation has it,
and reads what the query builder of another asks for.

    libraries.py write HOST PORT START    10 points of each library, 10 s apart
    libraries.py read HOST PORT START     prints what was read, as JSON

Point i of a library has the value i, its series the tags lib=NAME host=h1.
"""

import json
import sys

POINTS = 10


def over_http(host, port, start):
    """opentsdb-py: HTTP, gzip, batches with details."""
    from opentsdb import TSDBClient
    client = TSDBClient(host, port=port, static_tags={"lib": "opentsdb-py-http"}, host_tag=False)
    if not client.is_alive():
        raise SystemExit("opentsdb-py: the server is not alive")
    for i in range(POINTS):
        client.send("clients.points", i, host="h1", timestamp=start + 10 * i)
    # What it may not send: the server says so, and the client counts it.
    client.send("clients.points", "x", host="h1", timestamp=start)
    client.close()
    client.wait()
    if client.statuses != {"success": POINTS, "failed": 1, "queued": POINTS + 1}:
        raise SystemExit("opentsdb-py counts %r" % client.statuses)


def over_telnet(host, port, start):
    """opentsdb-py: telnet."""
    from opentsdb import TSDBClient, TSDBConnectProtocols
    client = TSDBClient(host, port=port, protocol=TSDBConnectProtocols.TELNET, host_tag=False, check_tsdb_alive=True,
                        static_tags={"lib": "opentsdb-py-telnet"})
    for i in range(POINTS):
        client.send("clients.points", i, host="h1", timestamp=start + 10 * i)
    client.close()
    client.wait()


def potsdb_telnet(host, port, start):
    import potsdb
    client = potsdb.Client(host, port=port, host_tag="h1")
    for i in range(POINTS):
        client.log("clients.points", i, lib="potsdb", timestamp=start + 10 * i)
    client.wait()


def http_client(host, port, start):
    """opentsdb-http-client: a POST a point, 200 or 204 expected."""
    from opentsdb_http_client import http_client as library
    client = library.OpenTSDBClient(host, port, host_tag=True)
    for i in range(POINTS):
        client.put("clients.points", i, lib="opentsdb-http-client", host="h1", timestamp=start + 10 * i)
    client.wait()


def read(host, port, start):
    """opentsdb2py: its builder of GET queries. The rest of it needs a Python
    that evaluates annotations late."""
    import requests
    from opentsdb2py.query import Filter, MetricQueryBuilder
    by_lib = Filter(type="wildcard", tagk="lib", filter="*", group_by=True)
    two = Filter(type="literal_or", tagk="lib", filter="potsdb|opentsdb-py-http", group_by=True)
    host_only = Filter(type="iliteral_or", tagk="host", filter="H1", group_by=False)

    def ask(metric, **options):
        query = MetricQueryBuilder(metric=metric, aggregator="sum", **options)
        return requests.get("http://%s:%d/api/query" % (host, port), params=[("start", start), ("end", start + 3600), query.build()])

    json.dump({
        "all": ask("clients.points", filters=[by_lib]).json(),
        "two": ask("clients.points", downsample="50s-avg", filters=[two, host_only]).json(),
        "none": ask("clients.nothing").status_code,
    }, sys.stdout)


def main():
    command, host, port, start = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if command == "read":
        read(host, port, start)
        return
    for write in (over_http, over_telnet, potsdb_telnet, http_client):
        write(host, port, start)


main()
