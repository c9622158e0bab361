package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A line of the record is read as it was written; one that is none is an error with its number.
func TestRecord(t *testing.T) {
	for _, line := range []string{
		"chaos short 4a353ca0 2026-11-28 1287364 passed 6.1",
		"life long 4a353ca0+ 2026-11-28 18446744073709551615 failed 41.0 --- FAIL: TestLife (2460.11s)",
		"simulation long 4a353ca0 2026-11-28 12 passed 70.2 worlds=400 faults=81234",
	} {
		runs, err := parseRecord(strings.NewReader("# comment\n\n" + line + "\n"))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%s: %v, %v", line, runs, err)
		}
		if d := cmp.Diff(line, runs[0].String()); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	for line, want := range map[string]string{
		"chaos short 4a353ca0": "line 2: got 3 fields, want TARGET FORM COMMIT DAY SEED " +
			"passed|failed MINUTES and a note",
		"chaos short 4a353ca0 today 1 passed 6.1":      `line 2: day: got "today", want one like 2006-01-02`,
		"chaos short 4a353ca0 2026-11-28 x passed 6.1": `line 2: seed: got "x", want a number`,
		"chaos short 4a353ca0 2026-11-28 1 ok 6.1":     `line 2: outcome: got "ok", want passed or failed`,
		"chaos short 4a353ca0 2026-11-28 1 passed six": `line 2: minutes: got "six", want a number`,
	} {
		_, err := parseRecord(strings.NewReader("\n" + line))
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", line, err, want)
		}
	}
}

// What failed after the last passed run is open; what failed before it is not.
func TestAge(t *testing.T) {
	runs, err := parseRecord(strings.NewReader(`
chaos short aaaaaaaa 2026-11-01 7 failed 1.0 --- FAIL: TestChaos
chaos short bbbbbbbb 2026-11-18 8 passed 6.0
chaos long cccccccc 2026-11-20 9 failed 60.0 --- FAIL: TestChaos (1 s)
`))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for form, want := range map[string]string{
		short: "passed 10 days ago at bbbbbbbb",
		long:  "never passed, OPEN: failed at cccccccc with TEST_SEED=9: --- FAIL: TestChaos (1 s)",
	} {
		if got := age(runs, "chaos", form, now); got != want {
			t.Errorf("%s: got %s, want %s", form, got, want)
		}
	}
}

// What passed runs have counted is added up.
func TestCounted(t *testing.T) {
	runs, err := parseRecord(strings.NewReader(`
simulation long aaaaaaaa 2026-11-01 7 passed 61.0 worlds=400 faults=81234 busy-hours=1.5
simulation long bbbbbbbb 2026-11-18 8 failed 6.0 --- FAIL: TestSim faults=9
writes long bbbbbbbb 2026-11-18 8 passed 6.0 faults=7
simulation long cccccccc 2026-11-20 9 passed 60.0 worlds=300 faults=6 busy-hours=1.6
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := counted(runs, "simulation"), "; in all worlds=700 faults=81240 busy-hours=3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := counted(runs, "chaos"); got != "" {
		t.Errorf("got %q of a target that counts nothing", got)
	}
}

// A test's log has the counts in a line of their own.
func TestWhatCounted(t *testing.T) {
	for log, want := range map[string]string{
		"=== RUN TestSim\n    sim_test.go:60: counted: worlds=8 faults=2757\n" +
			"--- PASS: TestSim (1.00s)\n": "worlds=8 faults=2757",
		"    sim_test.go:60: counted: nothing\nPASS\n": "",
		"PASS\n": "",
	} {
		if got := whatCounted(log); got != want {
			t.Errorf("got %q, want %q of\n%s", got, want, log)
		}
	}
}
