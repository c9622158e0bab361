import com.codahale.metrics.Clock;
import com.codahale.metrics.Gauge;
import com.github.sps.metrics.OpenTsdbReporter;
import com.github.sps.metrics.TaggedMetricRegistry;
import com.github.sps.metrics.opentsdb.OpenTsdb;
import com.github.sps.metrics.opentsdb.OpenTsdbTelnet;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.opentsdb.OpenTSDBConfig;
import io.micrometer.opentsdb.OpenTSDBMeterRegistry;
import java.util.Map;

/**
 * Writes by the OpenTSDB reporters of Java's metrics libraries, each as its own documentation has
 * it, one report each: Writers HOST PORT.
 */
public class Writers {
    public static void main(String[] args) throws Exception {
        String host = args[0];
        int port = Integer.parseInt(args[1]);
        micrometer("http://" + host + ":" + port + "/api/put");
        dropwizard(OpenTsdb.forService("http://" + host + ":" + port).create(), "metrics-http");
        dropwizard(OpenTsdbTelnet.forService(host, port).create(), "metrics-telnet");
    }

    /** Micrometer: a counter, a gauge and a summary. A registry that closes publishes once more. */
    static void micrometer(String uri) {
        OpenTSDBConfig config = new OpenTSDBConfig() {
            @Override public String get(String key) { return null; }
            @Override public String uri() { return uri; }
        };
        OpenTSDBMeterRegistry registry = new OpenTSDBMeterRegistry(config, io.micrometer.core.instrument.Clock.SYSTEM);
        registry.config().commonTags("lib", "micrometer");
        Counter.builder("clients.orders").tag("kind", "new").register(registry).increment(3);
        registry.gauge("clients.queue", 2.5);
        DistributionSummary summary = DistributionSummary.builder("clients.size").publishPercentiles(0.5).register(registry);
        summary.record(4);
        summary.record(8);
        registry.close();
    }

    /** Dropwizard's metrics by metrics-opentsdb. */
    static void dropwizard(OpenTsdb to, String lib) {
        TaggedMetricRegistry registry = new TaggedMetricRegistry();
        registry.counter("orders").inc(3);
        registry.register("queue", (Gauge<Double>) () -> 2.5);
        registry.histogram("size").update(4);
        registry.histogram("size").update(8);
        OpenTsdbReporter reporter = OpenTsdbReporter.forRegistry(registry)
            .prefixedWith("clients").withTags(Map.of("lib", lib)).withClock(Clock.defaultClock()).build(to);
        reporter.report();
        reporter.stop();
    }
}
