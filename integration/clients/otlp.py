"""Writes by OpenTelemetry's SDK and its exporter over HTTP, which read their settings from the environment.

Each instrument is exported twice: as it is after the first changes, and after the others.
"""

import logging
import sys

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

logging.basicConfig(stream=sys.stderr)
reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=3_600_000)
provider = MeterProvider([reader], views=[
    View(instrument_name="request.duration", aggregation=ExplicitBucketHistogramAggregation([0.1, 1, 10])),
])
meter = provider.get_meter("shop")

orders = meter.create_counter("orders", unit="1", description="what was bought")
queue = meter.create_up_down_counter("queue.size")
duration = meter.create_histogram("request.duration", unit="s")
wide = meter.create_counter("too.wide")
meter.create_observable_gauge("room/heat", [lambda options: [Observation(21.25, {"room": "a b"})]])


orders.add(2, {"status": "paid", "express": True})
queue.add(5)
duration.record(0.05)
wide.add(1, {"key%d" % i: i for i in range(20)})
if not provider.force_flush(60_000):
    raise SystemExit("the metrics were not exported")
orders.add(1, {"status": "paid", "express": True})
orders.add(0.5, {"status": "returned", "shop": 7})
queue.add(-3)
duration.record(3)
duration.record(30)
provider.shutdown()  # it exports once more
