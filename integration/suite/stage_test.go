package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// A stage begins after those that it needs; after a failure none begins; a budget that is broken twice over
// is a failure, and so is a stage whose need is not met. A budget grows with the work that the output shows.
func TestRunAll(t *testing.T) {
	shell := func(name, script string, needs ...string) stage {
		return stage{name: name, command: []string{"sh", "-c", script}, needs: needs}
	}
	busy := shell("busy", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	busy.budget = time.Millisecond
	thorough := shell("thorough", busy.command[2]+"; echo caught a; echo not caught; echo caught b")
	thorough.budget, thorough.unit, thorough.each = time.Millisecond, "caught ", time.Hour
	idle := thorough
	idle.unit = "missed "
	for _, c := range []struct {
		stages []stage
		order  string // of the stages that ended
		err    string
	}{
		{[]stage{shell("b", "true", "a"), shell("a", "true")}, "a b", ""},
		{[]stage{shell("a", "true", "elsewhere")}, "a", ""},
		{
			[]stage{shell("a", "exit 3"), shell("b", "true", "a"), shell("c", "true", "b")},
			"a",
			"stage a: exit status 3",
		},
		{[]stage{busy}, "busy", "more than twice its budget"},
		{[]stage{thorough}, "thorough", ""},
		{[]stage{idle}, "thorough", "more than twice its budget of 0 s"},
	} {
		results, err := (&runner{root: t.TempDir(), out: io.Discard}).runAll(t.Context(), c.stages)
		var order []string
		for _, r := range results {
			order = append(order, r.stage.name)
		}
		if got := strings.Join(order, " "); got != c.order {
			t.Errorf("%s: ended %s, want %s", c.stages[0].name, got, c.order)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.stages[0].name, err, c.err)
		}
	}
}
