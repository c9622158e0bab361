package docsite

// Topic is a chapter of the index.
type Topic struct {
	Name  string
	About string
	Pages []Page
}

// Page is a page of the site, made of one file.
type Page struct {
	Slug  string // its address below /docs/
	Path  string // of its Markdown, or of the API's description
	About string // for the index
}

// apiPath is the one page that is not Markdown: the description of the HTTP API.
const apiPath = "gateway/api/openapi/openapi.json"

// Topics are all chapters with their pages, in the order of the index.
func Topics() []Topic {
	return []Topic{
		{"Start", "What it is, and the words it uses.", []Page{
			{"start", "README.md", "what Downpour is, and how to start it"},
			{"concepts", "gateway/docs/concepts.md", "series, rows and UIDs; what becomes of a put and of a query"},
			{"glossary", "GLOSSARY.md", "every term, and where it lives"},
		}},
		{"Queries", "From a question to a chart.", []Page{
			{"queries", "gateway/docs/queries.md", "queries by example: filters, downsampling, rates, expressions"},
			{"promql", "gateway/docs/promql.md", "Prometheus' language and API"},
			{"grafana", "gateway/docs/grafana.md", "Grafana's two data sources, its variables and alerts"},
			{"chart", "gateway/web/README.md", "the page of charts: what it does, its address, its keys"},
			{"dashboards", "gateway/docs/dashboards.md", "dashboards: the page, the documents, how they are kept"},
			{"dashboards-comparison", "gateway/docs/dashboards-comparison.md", "dashboards here and elsewhere"},
			{"rollups", "gateway/docs/rollups.md", "rollups and pre-aggregates"},
			{"trees", "gateway/docs/trees.md", "series sorted into trees"},
		}},
		{"Live, and notebooks", "Answers that are kept up to date, and answers as tables.", []Page{
			{"live", "gateway/docs/live.md", "the WebSocket protocol of live queries"},
			{"notebooks", "gateway/docs/notebooks.md", "tables for pandas, polars and DuckDB; following a query"},
			{"clients", "gateway/docs/clients.md", "notebooks and charts of your own, in ten lines"},
			{"python", "integration/python/README.md", "the Python package"},
			{"notebook-examples", "integration/notebooks/README.md", "two notebooks to run"},
		}},
		{"Operating", "Install, watch, keep.", operating},
		{"Moving from OpenTSDB", "What stays, what differs, and the way over.", []Page{
			{"moving", "gateway/docs/moving.md", "step by step, beside running TSDs"},
			{"compatibility", "gateway/docs/compatibility.md", "what equals OpenTSDB and what does not"},
		}},
		{"Reference", "To look things up.", []Page{
			{"api", apiPath, "every route of the HTTP API, with its parameters, bodies and answers"},
			{"stability", "STABILITY.md", "what stays the same from one release to the next"},
			{"changelog", "CHANGELOG.md", "what changed"},
		}},
		{"Internals", "How it is made.", []Page{
			{"architecture", "ARCHITECTURE.md", "how a put, a query and a live change travel through the code"},
			{"contributing", "CONTRIBUTING.md", "how to work on it"},
			{"bench", "bench/README.md", "how it is measured, and the table of aims"},
			{"encoding", "encoding/docs/README.md", "the byte formats, one page each"},
			{"row-key", "encoding/docs/row-key.md", "row keys"},
			{"qualifier", "encoding/docs/qualifier.md", "qualifiers"},
			{"value", "encoding/docs/value.md", "values"},
			{"compacted", "encoding/docs/compacted.md", "compacted cells"},
			{"append", "encoding/docs/append.md", "append columns"},
			{"uid-table", "encoding/docs/uid-table.md", "the UID table"},
			{"annotation", "encoding/docs/annotation.md", "annotations"},
			{"histogram", "encoding/docs/histogram.md", "histograms"},
			{"rollup-rows", "encoding/docs/rollup.md", "rows of rollups"},
			{"scan-plan", "encoding/docs/scan-plan.md", "scan plans"},
			{"series-batch", "encoding/docs/series-batch.md", "record batches of series"},
			{"partial-batch", "encoding/docs/partial-batch.md", "record batches of partial aggregates"},
			{"aligned-batch", "encoding/docs/aligned-batch.md", "record batches of aligned groups"},
			{"histogram-batch", "encoding/docs/histogram-batch.md", "record batches of histograms"},
			{"embedded-format", "pushdown/store/pebble/FORMAT.md", "files of the embedded store"},
			{"tests", "integration/README.md", "the tests with real servers"},
			{"conformance", "integration/conformance/README.md", "what a real OpenTSDB stored and answered"},
			{"soak-2026-11-21", "integration/results/2026-11-21.md", "what the long tests found on one day"},
		}},
	}
}

// operating are the pages for operators.
var operating = []Page{
	{"first-day", "gateway/docs/first-day.md", "an operator's first day, from packages to HBase"},
	{"packages", "gateway/packaging/README.md",
		"Debian packages, archives, container images, Kubernetes: what they install, how they are made"},
	{"sizing", "gateway/docs/sizing.md",
		"disk, memory and cores for so many series and points; how to check your own store"},
	{"many-series", "gateway/docs/many-series.md",
		"a million series or more: what they cost, where they come from, how to get rid of them"},
	{"collectors", "gateway/docs/collectors.md", "collectd, telegraf, tcollector or a shell that write into a gateway"},
	{"remote-write", "gateway/docs/remote-write.md", "a Prometheus that writes into OpenTSDB's tables"},
	{"otlp", "gateway/docs/otlp.md", "OpenTelemetry's metrics: SDKs and collectors that write into a gateway"},
	{"troubleshooting", "gateway/docs/troubleshooting.md",
		"what you see, what it means, what to do: messages, refusals, missing points, a slow query"},
	{"settings", "gateway/docs/settings.md", "every environment variable"},
	{"ops", "gateway/docs/ops.md", "the operator's page: what runs, what is slow or heavy; how to end a query"},
	{"metrics", "gateway/docs/metrics.md",
		"the metrics, a Grafana dashboard, alerts and what to do about each"},
	{"log", "gateway/docs/log.md", "the log: refused points, slow queries, who did what"},
	{"tools", "gateway/docs/tools.md", "the command line: import, export, names, checks, backups"},
	{"several-gateways", "gateway/docs/several-gateways.md",
		"several gateways behind a balancer, stopping, upgrading"},
	{"data-life", "gateway/docs/data-life.md",
		"what to run on the first day, each week, and when a disk fills"},
	{"retention", "gateway/docs/retention.md", "how long rows are kept"},
	{"sealing", "gateway/docs/sealing.md", "old hours of the embedded store in a compact form"},
	{"compaction", "gateway/docs/compaction.md", "row compaction on HBase"},
	{"servers", "pushdown/docs/servers.md",
		"why a process beside the region server; how to place pushdown servers"},
	{"faults", "pushdown/docs/faults.md", "what happens when regions, servers and disks fail"},
	{"hbase", "pushdown/docs/hbase.md",
		"HBase: versions, TLS, servers found by ZooKeeper or by bootstrap nodes"},
	{"kerberos", "pushdown/docs/kerberos.md", "a secured HBase"},
	{"storage", "pushdown/docs/storage.md", "region replicas, quotas, MOB, encryption, erasure coding"},
	{"result-cache", "pushdown/docs/result-cache.md", "answers given again, and how they are proven"},
}

// short has the names that pages have in lists, where their headings say too little next to others.
var short = map[string]string{
	"start":             "What it is, and the start",
	"chart":             "The page of charts",
	"notebook-examples": "Example notebooks",
	"python":            "The Python package",
	"compatibility":     "Compared with OpenTSDB",
	"encoding":          "Byte formats",
	"live":              "Live queries",
	"clients":           "Ten lines of your own",
	"conformance":       "Recorded answers",
	"soak-2026-11-21":   "Long tests of one day",
	"ops":               "The operator's page",
	"metrics":           "Metrics and alerts",
}

// pages returns the pages of all topics, by the path of their file.
func pages(topics []Topic) map[string]Page {
	all := map[string]Page{}
	for _, t := range topics {
		for _, p := range t.Pages {
			all[p.Path] = p
		}
	}
	return all
}
