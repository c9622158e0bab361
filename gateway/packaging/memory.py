"""Measures how much memory gateways take for the same points and queries:

    python3 gateway/packaging/memory.py GATEWAY…

Each is started on an embedded store of its own, gets the same 8.64 million points
(1,000 series, one every 10 s, a day) by telnet, is started again, and is asked the
same queries. Printed are the most memory that was resident from the second start on
(VmHWM), what is resident 60 s after the last query (VmRSS), and the median time of
the queries in the last of three rounds.
"""

import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

START, SERIES, STEPS, EVERY = 1356998400, 1000, 8640, 10
QUERIES = ["sum:5m-avg:m", "avg:5m-max:m{host=*}", "max:1h-p99:m", "sum:1m-avg:rate:m", "sum:m{host=h7}", "sum:10s-avg:m{host=h1|h2|h3}"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    def __init__(self, program, directory):
        self.port = free_port()
        env = {"DOWNPOUR_STORE": f"pebble:{directory}/data", "DOWNPOUR_LISTEN": f"127.0.0.1:{self.port}", "DOWNPOUR_SELF_METRICS": "0", "DOWNPOUR_MEMORY": "2GiB",
               "DOWNPOUR_RESULT_CACHE": "off"}
        self.process = subprocess.Popen([program], env=env, stdout=subprocess.DEVNULL, stderr=open(f"{directory}/log", "a"))
        deadline = time.monotonic() + 60
        while True:
            try:
                self.get("/readyz")
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=300) as answer:
            return answer.read()

    def status(self, field):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) // 1024 for line in f if line.startswith(field))

    def put(self):
        values = random.Random(7)
        level = [values.randrange(1000) for _ in range(SERIES)]
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            for step in range(STEPS):
                level = [v + values.randrange(-3, 4) for v in level]
                at = START + step * EVERY
                s.sendall("".join(f"put m {at} {v} host=h{i}\n" for i, v in enumerate(level)).encode())
            s.sendall(b"version\n")
            said = s.recv(1 << 16)
            assert b"error" not in said.lower() and said, said

    def end(self):
        self.process.terminate()
        assert self.process.wait(120) == 0


def measure(program):
    with tempfile.TemporaryDirectory() as directory:
        g = Gateway(program, directory)
        g.put()
        g.end()

        g = Gateway(program, directory)
        took = []
        for turn in range(3):
            took = []
            for q in QUERIES:
                began = time.monotonic()
                g.get(f"/api/query?start={START}&end={START + STEPS * EVERY}&m={urllib.request.quote(q)}")
                took.append(time.monotonic() - began)
        peak = g.status("VmHWM")
        time.sleep(60)
        print(f"{os.path.basename(program)}: VmHWM {peak} MiB, VmRSS after 60 s {g.status('VmRSS')} MiB, queries {1000 * statistics.median(took):.0f} ms", flush=True)
        g.end()


for named in sys.argv[1:]:
    measure(named)
