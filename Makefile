# make test   everything but three tests of minutes, as CI runs it: an hour on two cores
# make soak   the long forms of the tests that have one
# make setup  only gets what the tests need and the machine lacks
#
# `go test ./...` alone needs nothing but Go.

GO ?= go

# The big tests share two cores with the servers that they start, so few
# packages are tested at a time.
PARALLEL ?= 3

# Packages with tests behind the tag integration. Each starts servers of its own,
# so they are tested one behind the other (-p 1).
SERVERS = -p 1 ./integration ./bench

.PHONY: test setup tree vet unit page mutants integration packages docs screenshots pictures matrix soak clean

test: tree setup vet unit page mutants integration

# What a change most easily leaves behind: pages of the documentation that are not made again,
# planted faults whose place is gone, rules of the house. Seconds, once it is
# built; before each commit.
tree:
	$(GO) test ./gateway/docsite ./integration/mutants
	$(GO) test ./integration -run '^TestHouse'

setup:
	./integration/setup/setup.sh

# staticcheck is pinned in a module file of its own, so that what it needs is no
# requirement of the product.
STATICCHECK = $(GO) tool -modfile=integration/setup/tools.mod staticcheck

vet:
	$(GO) vet ./...
	$(GO) vet -tags integration ./integration/... ./bench
	$(STATICCHECK) -tags integration ./...

unit:
	$(GO) test -race -p $(PARALLEL) -timeout 40m ./...
	$(GO) test -run Allocations ./pushdown/store/pebble

# The page's modules, without a browser.
page:
	node --test gateway/web/test/

# The planted faults that the change touches, each of which a test must catch.
mutants:
	$(GO) run ./integration/mutants -changed

# Real HBase and OpenTSDB, Chromium, pyarrow, and our programs as processes. Three tests of minutes
# run in make soak alone: all jobs while regions are merged, HBase upgraded under load, and tickets that end under
# load, for which a machine must not stall.
MINUTES = ^Test(Life_merges|Upgrade_hbase|Kerberos_tickets)$$

integration:
	$(GO) test -tags integration -count 1 -parallel 6 -timeout 80m -skip '$(MINUTES)' $(SERVERS)

# What operators install, in build/packages: see gateway/packaging/README.md.
packages:
	gateway/packaging/build.sh

# The documentation's site in gateway/web/site, after a page has changed.
docs:
	$(GO) run ./gateway/cmd/docsite

# A picture of every state of the page, in build/screenshots.
screenshots: setup
	CHROMIUM=$$(command -v chromium) node integration/browser/screenshots.mjs build/screenshots

# The pictures of the page's docs that come from the scripted server.
pictures: setup
	CHROMIUM=$$(command -v chromium) node integration/browser/pictures.mjs gateway/web/docs

# Every version of HBase that setup gets, with every protection of connections and both ways to
# find servers. It writes the table of pushdown/docs/hbase.md.
matrix: setup
	./integration/setup/setup.sh matrix_hbases
	$(GO) test -tags integration -count 1 -v -timeout 100m ./integration -run '^Test(Matrix|Compaction_fakeIsReal)$$' -args -matrix

# The long forms, one behind the other. Each takes at most 90 minutes on two
# cores and has a target of its own, so that they can run in turn.
LONG = mutants chaos hostile hdfs result-cache proofs slow-hbase crash integration embedded writes names sockets stretches dashboards compaction matrix tickets life

soak: $(LONG:%=soak-%)

LONG_INTEGRATION = $(GO) test -tags integration -count 1 -v -timeout 100m $(SERVERS)

# Every planted fault: those that break a promise, then the rest.
soak-mutants:
	$(GO) run ./integration/mutants
	$(GO) run ./integration/mutants -rest

# An hour each: faults of HBase and of pushdown servers; hostile requests; region
# servers killed under puts.
soak-chaos: setup
	$(LONG_INTEGRATION) -run '^TestChaos$$' -args -soak

soak-hostile: setup
	$(LONG_INTEGRATION) -run '^TestHostile$$' -args -soak

soak-hdfs: setup
	$(LONG_INTEGRATION) -run '^TestHDFS' -args -soak

# Tables replaced by others, 12 rounds; HBase that stops 30 times; 100 kills of the
# embedded gateway.
soak-result-cache: setup
	$(LONG_INTEGRATION) -run '^TestResultCache' -args -soak

# 4,000 changes against both proofs of the result cache, over rows of which some were
# written to before.
soak-proofs: setup
	$(LONG_INTEGRATION) -run '^TestProofs_drawn$$' -args -soak

soak-slow-hbase: setup
	$(LONG_INTEGRATION) -run '^TestSlowHBase$$' -args -soak

soak-crash: setup
	$(LONG_INTEGRATION) -run '^TestCrash' -args -soak

# Ten minutes on a secured HBase with tickets of one minute.
soak-tickets: setup
	$(LONG_INTEGRATION) -run '^TestKerberos_tickets$$' -args -soak

# Half an hour of puts, deletions, compaction, retention and rollups at once; then eight minutes in which
# regions are merged.
soak-life: setup
	$(LONG_INTEGRATION) -run '^TestLife' -args -soak

# What else has a long form: 5,000 random queries, all rows of the benchmark.
soak-integration: setup
	$(LONG_INTEGRATION) -parallel 2 -skip '^Test(Chaos|Hostile|HDFS|ResultCache|Proofs_drawn|SlowHBase|Crash|Life|Kerberos_tickets)' -args -soak

# 5,000 states after a crash; every byte of a store changed.
soak-embedded:
	$(GO) test -count 1 -v -timeout 90m -run 'Crash|Damage|Salvage|Check|Disk' ./pushdown/store/pebble -args -soak

# 100,000 comparisons of plans with and without a seam.
soak-stretches:
	$(GO) test -count 1 -v -timeout 30m -run '^TestStretch$$' ./gateway/query/merge -args -stretches 100000

# 100,000 drawn orders of what happens to a row beside jobs that compact it, and half as many while the clocks
# of its servers differ.
soak-compaction:
	$(GO) test -count 1 -v -timeout 60m -run '^TestOrders' ./pushdown/compaction -args -orders 100000

# 1,000 drawn faults of a fake HBase that is slow; 2,000 races of names.
soak-writes:
	$(GO) test -count 1 -v -timeout 90m -run '^TestSlow' ./pushdown/store/hbase -args -soak

soak-names:
	$(GO) test -race -count 1 -v -timeout 90m -run '^TestNames_races$$' ./gateway -args -races 2000

# 10,000 WebSockets on one gateway.
soak-sockets:
	$(GO) run ./bench/cmd/bench live -stores embedded -parts sockets -sockets 10000

# An hour of 60 live panels in a browser, beside the other figures of dashboards.
soak-dashboards: setup
	$(GO) run ./bench/cmd/bench live -parts viewers,dashboards -stores embedded -wall 1h

soak-matrix: matrix

clean:
	rm -rf build
