package main

// targets are all of soak. Every test on real servers is one of realTests or belongs to a target, which
// TestTargets_complete checks; one of realTests may have a long form in a target, too.
var targets = []target{
	inProcess("race", []string{"-race", "./..."}, "encoding/", "pushdown/", "gateway/", "bench/"),
	{
		// Of all packages: make quick and make test look at those that changed alone.
		name:  "static",
		paths: []string{"integration/setup/tools.mod"},
		short: staticcheck([]string{"./..."}),
		long:  staticcheck([]string{"./..."}),
	},
	{
		// Fails if the program calls a dependency where it is known to be vulnerable. GOVULNDB is
		// the URL of a copy of Go's database.
		name:  "vulnerabilities",
		paths: []string{"go.mod"},
		short: vulnerabilities,
		long:  vulnerabilities,
	},
	{
		name:  "mutants",
		paths: []string{"integration/mutants/"},
		long:  []string{"go", "run", "./integration/mutants"},
	},
	{
		// In the packages that keep the promises: formats, operators, merging, writing, names, both
		// stores, leases and compaction. The long form tries all faults of those that were gone through whole.
		name:  "mutator",
		paths: []string{"integration/mutator/"},
		short: append([]string{"go", "run", "./integration/mutator", "-each", "12", "-for", "8m"}, promising...),
		long: append([]string{"go", "run", "./integration/mutator", "-whole", "-each", "80", "-for", "75m"},
			promising...),
	},
	{
		// A few of every package, drawn from the seed.
		name: "mutator-wide",
		long: []string{
			"go", "run", "./integration/mutator", "-each", "5", "-open", "30", "-for", "75m", "./gateway/...",
			"./pushdown/...",
		},
	},

	// Faults.
	servers("chaos", "^TestChaos$", java, "pushdown/store/hbase/", "pushdown/rpc/", "gateway/query/dispatch/",
		"integration/chaos/"),
	servers("slow-hbase", "^TestSlowHBase$", java, "pushdown/store/hbase/", "gateway/write/"),
	servers("hdfs", "^TestHDFS_", java, "pushdown/store/hbase/", "gateway/write/"),
	servers("failover",
		"^Test(Failover_|RoundRobin_|Servers_|Several_|Drain_|Upgrade_oneByOne$|Upgrade_embeddedStore$)", browser,
		"gateway/query/dispatch/", "pushdown/rpc/", "gateway/api/listener/", "gateway/cmd/", "pushdown/cmd/"),
	servers("crash", "^Test(Crash_|Backup_|FullDisk$)", java, "pushdown/store/pebble/"),
	servers("hostile", "^Test(Hostile|BadInput|Refuse_)", java, "gateway/api/", "integration/hostile/"),
	servers("upgrade-hbase", "^TestUpgrade_hbase$", java),

	// Answers next to a real OpenTSDB.
	servers("differential", "^Test(Differential_|Control_|Exchange_|Aggregators|Live_)", java,
		"gateway/query/", "pushdown/operator/", "encoding/", "integration/differential/", "integration/compare/"),
	{
		// The recorded answers are still those of OpenTSDB: its questions are drawn from the seed
		// of the recordings in both forms.
		name: "recordings", setup: java, paths: []string{"integration/conformance/", "integration/replay/"},
		short: onServers("^Test(Differential_|Exchange_sameCells)", "./integration"),
		long:  onServers("^Test(Differential_|Exchange_sameCells)", "./integration"),
	},
	servers("stories", "^TestStories_", java, "integration/story/"),
	servers("metamorphic", "^Test(Metamorphic|Pushdown_|Seek_|Stretch_)", java, "gateway/query/", "pushdown/operator/",
		"pushdown/store/hbase/"),
	servers("metadata", "^Test(Metadata_|UID_|Migrate_)", java, "gateway/metadata/", "gateway/uid/",
		"gateway/extra/tools/"),

	// Jobs.
	servers("life", "^TestLife$", java, "pushdown/compaction/", "pushdown/lease/", "pushdown/rollupjob/",
		"gateway/extra/retention/"),
	servers("merges", "^TestLife_merges$", java),
	servers("jobs", "^Test(Compaction_|MadeRollups|Retention_|Fsck_)", java, "pushdown/compaction/",
		"pushdown/rollupjob/", "gateway/extra/retention/", "gateway/extra/tools/fsck/", "gateway/extra/tools/"),
	servers("proofs", "^TestProofs_", java, "pushdown/resultcache/", "pushdown/store/hbase/"),
	servers("result-cache", "^TestResultCache_", java, "pushdown/resultcache/"),
	servers("found", "^TestFound$", java, "pushdown/announce/", "pushdown/rpc/"),

	// Versions and protections of HBase.
	servers("storage", "^TestStorage$", secured, "pushdown/store/hbase/"),
	servers("kerberos", "^Test(Kerberos|Access)$", secured, "pushdown/store/hbase/kerberos/",
		"pushdown/store/hbase/sasl/", "pushdown/store/hbase/jaas/"),
	servers("tickets", "^TestKerberos_tickets$", secured, "pushdown/store/hbase/kerberos/"),
	{
		name: "matrix", paths: []string{"pushdown/store/hbase/"}, setup: append([]string{"matrix_hbases"}, secured...),
		short: onServers("^TestMatrix$", "./integration"),
		long: onServers("^Test(Matrix|Compaction_fakeIsReal|Fake_repliesAreReal|Store_laws)$",
			"./integration", "-args", "-matrix"),
	},

	// Users.
	servers("browser", "^TestBrowser_", append([]string{"python_venv"}, browser...), "gateway/web/", "gateway/api/ws/",
		"gateway/api/origin/", "gateway/extra/docsite/"),
	servers("notebooks", "^Test(Arrow_|Flight_|Notebooks_|Python_|Docs_|OpenAPI_)",
		append([]string{"openapi_validator"}, append(python, browser...)...), "encoding/batch/",
		"integration/python/", "integration/notebooks/", "gateway/api/openapi/", "gateway/docs/"),
	servers("clients", "^Test(Clients_|Grafana|AlertRules|MetricNames)",
		[]string{"java_programs", "client_libraries", "collectd", "prometheus"}, "gateway/api/telnet/",
		"gateway/api/httpapi/putroutes/", "gateway/packaging/"),
	servers("prometheus", "^Test(Prometheus_|OTLP_)", []string{"java_programs", "prometheus", "client_libraries"},
		"gateway/extra/prometheus/", "gateway/extra/otlp/"),
	servers("packages", "^Test(Packages|Images|Kubernetes|FirstDay$)",
		[]string{
			"java_programs", "python_checks", "package_checks", "image_builder", "collectd", "debian_system",
			"prometheus",
		},
		"gateway/packaging/", "gateway/cmd/", "pushdown/cmd/"),

	// The benchmark. Its times are not checked.
	{
		name:  "bench",
		paths: []string{"bench/"},
		setup: append([]string{"victoria_metrics", "browser_driver", "browser_program"}, secured...),
		short: onServers("^Test(Bench|Builds)_", "./bench"),
		long:  onServers("^Test(Bench|Builds)_", "./bench", "-args", "-soak"),
	},
	{
		// In virtual time, up to 1,000 simulated servers.
		name:  "many-servers",
		paths: []string{"bench/size/"},
		long: []string{
			"go", "test", "-count=1", "-vet=off", "-timeout=85m", "-v", "./bench/size", "-args", "-long",
		},
	},
	{
		name: "sockets",
		short: []string{
			"go", "run", "./bench/cmd/bench", "live", "-stores", "embedded", "-parts", "sockets",
			"-sockets", "1000",
		},
		long: []string{
			"go", "run", "./bench/cmd/bench", "live", "-stores", "embedded", "-parts", "sockets",
			"-sockets", "10000",
		},
		paths: []string{"gateway/api/ws/", "gateway/live/"},
	},
	{
		name: "dashboards", setup: browser,
		long: []string{
			"go", "run", "./bench/cmd/bench", "live", "-parts", "viewers,dashboards", "-stores", "embedded",
			"-wall", "1h",
		},
	},

	// Many draws in process, and recorded questions asked in every way.
	inProcess("conformance",
		[]string{
			"-run", "Conformance|Replay", "./gateway", "./gateway/extra", "./integration/replay",
			"./pushdown/store/hbase", "./pushdown/store/pebble", "./pushdown/store/faultstore",
			"-args", "-whole",
		},
		"integration/conformance/", "integration/replay/", "pushdown/store/storetest/"),
	inProcess("promql",
		[]string{"-v", "-run", "PromQL_law", "./gateway/extra", "-args", "-promql", "5000", "-tsdb"},
		"gateway/extra/prometheus/", "integration/promtsdb/"),
	inProcess("embedded",
		[]string{
			"-v", "-run", "Crash|Damage|Salvage|Check|Disk|Compression|Seal", "./pushdown/store/pebble",
			"-args", "-soak",
		},
		"pushdown/store/pebble/"),
	inProcess("stretches",
		[]string{"-v", "-run", "^TestStretch$", "./gateway/query/merge", "-args", "-stretches", "100000"},
		"gateway/query/merge/"),
	inProcess("compaction", []string{
		"-v", "-run", "^TestOrders", "./pushdown/compaction", "-args", "-orders", "100000",
	}),
	inProcess("writes", []string{"-v", "-run", "^TestSlow", "./pushdown/store/hbase", "-args", "-soak"}),
	{
		name: "simulation", paths: []string{"integration/sim/", "pushdown/store/hbase/hbasefake/"},
		short: worlds("10m"),
		long:  worlds("70m"),
	},
	inProcess("simulation-race",
		[]string{"-race", "-v", "-run", "^TestSim$", "./integration/sim", "-args", "-seeds", "10"},
		"integration/sim/"),
	{
		// The faults of the promises that the simulation catches by itself, with the seeds of make
		// test. Its worlds occupy all processors.
		name: "simulation-power",
		long: []string{"go", "run", "./integration/mutants", "-jobs", "1", "-by", "integration/sim:TestSim", "-only",
			inWorlds},
	},
	inProcess("names", []string{
		"-race", "-v", "-run", "^TestNames_races$", "./gateway/extra", "-args", "-races", "2000",
	}),
}

// promising are the packages that keep the promises.
var promising = []string{"./encoding/...", "./pushdown/operator/...", "./gateway/query/merge",
	"./gateway/query/dispatch", "./gateway/write", "./gateway/uid", "./pushdown/store", "./pushdown/store/pebble",
	"./pushdown/store/pebble/disk", "./pushdown/store/pebble/journal", "./pushdown/store/hbase",
	"./pushdown/store/hbase/calls", "./pushdown/store/hbase/cellblock", "./pushdown/store/hbase/regions",
	"./pushdown/store/hbase/unchanged", "./gateway/query/engine/stage", "./pushdown/lease",
	"./pushdown/compaction/...", "./pushdown/resultcache"}

// worlds is the command that lets worlds of the simulation live, with seeds from that of the run on, for so long.
func worlds(last string) []string {
	return []string{"go", "test", "-count=1", "-vet=off", "-timeout=85m", "-v", "-run", "^TestSim$",
		"./integration/sim", "-args", "-seeds", "4000", "-lives", "10m", "-for", last}
}

// inWorlds matches the faults that worlds of the simulation catch: of parts and attempts, found servers, scans and
// writes on HBase, remembered answers, compaction, retention, rollups, names, live queries, and the
// log and columns of the embedded store. Those that they do not catch are in pushdown/docs/faults.md with the reason.
const inWorlds = `^(failed-attempt-kept|attempt-merged-twice|hole-not-issued-again|` +
	`cut-loses-a-row|boundary-row-read-twice|half-row-delivered|heartbeat-taken-for-the-end|` +
	`left-out-taken-for-done|log-skipped|read-point-ignored|half-answer-kept|answer-of-changed-rows|` +
	`final-before-the-gap|late-point-in-a-kept-row|` +
	`last-group-left-out-of-a-delta|failed-write-acknowledged|ack-before-write|ack-before-sync|` +
	`sync-without-waiting|sealed-types-lost|change-not-counted|made-proof-of-raw-rows-ignored|` +
	`retention-an-hour-early|unsigned-announcement-counts|announcement-of-another-address|` +
	`replayed-announcement-counts|any-signature-is-a-proof|proof-for-any-address|anybody-may-ask|` +
	`token-for-a-stranger)$`
