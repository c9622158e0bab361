package main

import (
	"slices"
	"strings"
	"time"
)

// realTests are the tests on real servers that run with every change: what no fake can say. All others are
// targets of soak.
const realTests = `^Test(Exchange_createTables|Exchange_sameCells|Exchange_sameAnswers|Exchange_afterSplitAndMove|` +
	`Pushdown_sameAnswersAsInProcess|Pushdown_rowsSelectedInRegionServers|Compaction_fakeIsReal|` +
	`Fake_repliesAreReal|Store_laws|Live_openTSDBWrites|` +
	`Refuse_wrongSalt|Crash_acknowledgedPointsSurvive|Arrow_javascript|` +
	`Browser_chartMovesAfterPut|Browser_statesOfThePage|Browser_operations)$`

// waiting are packages whose tests mostly wait. They start first, so that others use the processor while they wait.
var waiting = []string{
	"./gateway", "./gateway/extra", "./bench", "./pushdown/store/hbase", "./pushdown/store/pebble",
	"./gateway/extra/tools", "./pushdown/rpc/server",
}

// stages are what make test runs, for a change since base that edits these packages; the others were vetted with the
// changes that edited them. Budgets are what a run with an empty build cache takes, and a half more.
func stages(base string, edited []string) []stage {
	return append(vet(edited), []stage{
		{
			name: "setup",
			command: []string{
				"integration/setup/setup.sh", "hbase_and_opentsdb", "arrow_js", "browser_driver",
				"browser_program",
			},
			budget: 200 * time.Second,
		},
		{
			name:    "build",
			command: compiling("go", "build", "./..."),
			budget:  360 * time.Second,
		},
		{
			name:    "unit",
			command: inProcessTests(slices.Concat([]string{"-count=1", "-timeout=20m"}, waiting, []string{"./..."})...),
			budget:  1100 * time.Second,
			needs:   []string{"build"},
			tests:   true,
		},
		{
			name: "real",
			command: programTests("-tags", "integration", "-count=1", "-parallel=6", "-timeout=20m", "-run", realTests,
				"./integration"),
			budget: 300 * time.Second,
			needs:  []string{"build", "setup"},
			tests:  true,
		},
		{
			name:    "page",
			command: []string{"node", "--test", "gateway/web/test/"},
			budget:  30 * time.Second,
			needs:   []string{"build"}, // it makes the documentation's site
		},
		{
			name:    "faults",
			command: []string{"go", "run", "./integration/mutants", "-changed", base}, // of the change; soak runs all
			budget:  30 * time.Second,
			unit:    "caught ", // a change may touch one fault or a hundred
			each:    7 * time.Second,
			needs:   []string{"unit"},
		},
	}...)
}

// compiling is a command that compiles without collecting garbage below 2 GiB, which takes a third
// less of the processor.
func compiling(command ...string) []string {
	return append([]string{"env", "GOGC=off", "GOMEMLIMIT=2GiB"}, command...)
}

// inProcessTests is a go test command for tests that start no servers of their own. They collect
// garbage a quarter as often as by default, which takes a fifth less of the processor. Many tests
// wait, so more packages are tested at a time than there are cores.
func inProcessTests(args ...string) []string {
	return append([]string{"env", "GOGC=400"}, goTest(append([]string{"-p=4"}, args...))...)
}

// programTests is a go test command for tests that start programs, which must run with their usual
// settings of the garbage collector.
func programTests(args ...string) []string { return goTest(args) }

// goTest is a go test command whose compiler runs as in compiling. It starts the compiler by env,
// and not the tests: a program that was just linked may be busy for a moment, in which go test
// alone tries again to start it (go.dev/issue/62221).
func goTest(args []string) []string {
	return append([]string{"go", "test", "-toolexec=" + strings.Join(compiling(), " "), "-json", "-vet=off"}, args...)
}

// vet is the stage that vets packages, none if there are none. cgocall opens a file by the path at
// which it was compiled: with -trimpath maybe that of a clone which is gone.
func vet(packages []string) []stage {
	if len(packages) == 0 {
		return nil
	}
	return []stage{{
		name:    "vet",
		command: append(compiling("go", "vet", "-cgocall=false", "-tags", "integration"), packages...),
		budget:  150 * time.Second,
		needs:   []string{"build"},
	}}
}

// staticcheck is the command that has it look at packages. It is pinned in a module file of its
// own, so that what it needs is no requirement of the product.
func staticcheck(packages []string) []string {
	return append([]string{"go", "tool", "-modfile=integration/setup/tools.mod", "staticcheck", "-tags", "integration"},
		packages...)
}

// vulnerabilities is the command that looks for known vulnerabilities of dependencies in what programs and tests call.
var vulnerabilities = []string{"sh", "-c", "exec go tool -modfile=integration/setup/tools.mod govulncheck -db " +
	"\"${GOVULNDB:-https://vuln.go.dev}\" -tags integration ./..."}
