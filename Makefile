# make quick         before a commit: vet, rules of the house, tests of what changed and of what depends on it
# make test          what runs with every change: the same tests and draws for everybody
# make soak-changed  real servers, browsers, packages and long tests that the changes call for, in their short forms
# make soak          all of these, in their long forms, with fresh seeds
# make soak-NAME     one of them; go run ./integration/suite record lists the names
#
# TEST_SEED=N repeats what a test drew with the seed that it printed. `go test ./...` alone needs nothing but Go.

GO ?= go

# Two clones share what was compiled, because no path of theirs is in it.
export GOFLAGS += -trimpath

# What is compiled only to be tested needs no symbols for debuggers, which cost a tenth of compiling and half of linking. It is
# linked without C, as in the images, which is faster too; soak tests the programs with C.
quick test: export GOFLAGS += -ldflags=-w -gcflags=all=-dwarf=false
quick test: export CGO_ENABLED ?= 0

SUITE = $(GO) run ./integration/suite

.PHONY: quick test soak-changed soak slice setup packages docs screenshots pictures matrix clean

quick:
	$(SUITE) quick

test:
	$(SUITE) test

soak-changed:
	$(SUITE) soak-changed

soak:
	$(SUITE) soak -long

soak-%:
	$(SUITE) soak -long $*

# One target of soak, by turns. Continuous integration runs it behind make test.
slice:
	$(SUITE) slice

# Gets what all of soak needs and the machine lacks.
setup:
	./integration/setup/setup.sh

# What operators install, in build/packages: see gateway/packaging/README.md.
packages:
	gateway/packaging/build.sh

# The table of all variables in gateway/docs/settings.md, after one has changed.
docs:
	$(GO) test -run '^TestSettings_current$$' ./gateway/extra/docsite/settingspage -update

# A picture of every state of the page, in build/screenshots.
screenshots: setup
	CHROMIUM=$$(command -v chromium-headless-shell) node integration/browser/screenshots.mjs build/screenshots

# The pictures of the page's docs that come from the scripted server.
pictures: setup
	CHROMIUM=$$(command -v chromium-headless-shell) node integration/browser/pictures.mjs gateway/web/docs

# Every version of HBase that setup gets, with every protection of connections and both ways to
# find servers. It writes the table of pushdown/docs/hbase.md.
matrix: soak-matrix

clean:
	rm -rf build
