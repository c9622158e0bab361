# make test   everything, as CI runs it: under 20 minutes on two cores
# make soak   the long forms of the tests that have one
# make setup  only gets what the tests need and the machine lacks
#
# `go test ./...` alone needs nothing but Go.

GO ?= go

# The big tests share two cores with the servers that they start, so few
# packages are tested at a time.
PARALLEL ?= 3

.PHONY: test setup vet unit page mutants integration soak screenshots clean

test: setup vet unit page mutants integration

setup:
	./integration/setup/setup.sh

vet:
	$(GO) vet ./...
	$(GO) vet -tags integration ./integration/...

unit:
	$(GO) test -race -p $(PARALLEL) -timeout 10m ./...
	$(GO) test -run Allocations ./pushdown/store/pebble

# The page's modules, without a browser.
page:
	node --test gateway/web/test/

# A sample of the planted faults, each of which a test must catch.
mutants:
	$(GO) run ./integration/mutants -sample 6

# Real HBase and OpenTSDB, Chromium, pyarrow, and our programs as processes.
integration:
	$(GO) test -tags integration -count 1 -parallel 6 -timeout 40m ./integration

# A picture of every state of the page, in build/screenshots.
screenshots: setup
	CHROMIUM=$$(command -v chromium) node integration/browser/screenshots.mjs build/screenshots

soak: setup
	$(GO) run ./integration/mutants
	$(GO) test -tags integration -count 1 -parallel 6 -timeout 4h ./integration -args -soak

clean:
	rm -rf build
