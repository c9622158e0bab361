package builds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/paired"
	"downpour/bench/report"
	"downpour/bench/workload"
)

func config(rounds int) *Config {
	return &Config{
		A:           Build{Name: "A"},
		B:           Build{Name: "B"},
		Data:        workload.Default(),
		Rounds:      rounds,
		Turns:       2,
		Connections: 2,
		Tolerance:   0.05,
		Report:      &report.Report{},
		Save:        func() error { return nil },
	}
}

func TestValidate(t *testing.T) {
	if err := config(1).Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		`rows: got "x", want some of put-telnet`:         func(c *Config) { c.Rows = []string{"all", "x"} },
		`stores: got "x", want some of embedded, hbase`:  func(c *Config) { c.Stores = []string{"x"} },
		"rounds: got 0, want at least 1":                 func(c *Config) { c.Rounds = 0 },
		"turns: got -1":                                  func(c *Config) { c.Turns = -1 },
		"connections: got 0":                             func(c *Config) { c.Connections = 0 },
		"worse: got 1, want a part from 0 to below 1":    func(c *Config) { c.Tolerance = 1 },
		"hosts: got 0":                                   func(c *Config) { c.Data.Hosts = 0 },
		"worse: got -0.01, want a part from 0 to below ": func(c *Config) { c.Tolerance = -0.01 },
	} {
		c := config(1)
		change(c)
		if err := Run(t.Context(), *c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A scene has pushdown servers only if both builds have them. Total counts all scenes of all
// rounds.
func TestScenes(t *testing.T) {
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := config(3)
		change(c)
		got := ""
		for _, s := range c.scenes() {
			got += fmt.Sprintf("%s %v; ", s.name, s.pushdown)
		}
		if got != want || c.Total() != int64(3*strings.Count(want, ";")) {
			t.Errorf("scenes %q, %d in all rounds, want %q, each 3 times", got, c.Total(), want)
		}
	}
	f("embedded false; HBase, single false; HBase, multi false; ", func(*Config) {})
	f("embedded false; ", func(c *Config) { c.Stores = []string{"embedded"} })
	f("HBase, single false; HBase, multi true; ", func(c *Config) {
		c.Stores, c.A.Pushdown, c.B.Pushdown = []string{"hbase"}, "a", "b"
	})
	f("HBase, single false; HBase, multi false; ", func(c *Config) { c.Stores, c.A.Pushdown = []string{"hbase"}, "a" })
}

// took is the samples of one turn of each build.
func took(a, b float64) [2][]sample {
	return [2][]sample{{{amount: a, processor: time.Second}}, {{amount: b, processor: time.Second}}}
}

// Each row gets a verdict of its own: B is slower in one, equal in another and smaller in a third.
// A row with different answers is missing from the report, and the others are still measured.
func TestRounds_verdicts(t *testing.T) {
	c := config(paired.Fewest)
	c.Stores = []string{"embedded"}
	saved := 0
	c.Save = func() error { saved++; return nil }
	r := &run{cfg: c}
	err := r.rounds(t.Context(), func(_ context.Context, s scene, round int) error {
		level := 1 + float64(round)/3 // the machine gets slower all the time
		r.rows.entry("all", s.name, "w", report.Seconds).add(took(level, 1.2*level))
		r.rows.entry("raw", s.name, "w", report.Seconds).add(took(level, 1.01*level))
		r.rows.entry(memoryPut, s.name, "w", report.Bytes).add(took(100<<20*level, 80<<20*level))
		r.rows.entry("rate", s.name, "w", report.Seconds).err = errors.New("the answers differ")
		return nil
	})
	if err == nil || err.Error() != "embedded, rate: the answers differ" {
		t.Errorf("error %v", err)
	}
	var got []string
	for _, x := range c.Report.Changes {
		got = append(got, x.Row+" "+x.Verdict())
		if x.Missing == "" && x.Processor.Median != 1 {
			t.Errorf("%s: processor %v, want a ratio of 1", x.Row, x.Processor)
		}
	}
	if want := "all worse, raw same, memory-put better, rate missing"; strings.Join(got, ", ") != want {
		t.Errorf("verdicts %s, want %s", strings.Join(got, ", "), want)
	}
	if saved != paired.Fewest || len(c.Report.Worsened()) != 1 {
		t.Errorf("saved %d times, worse: %+v; want once a round, and one worse row", saved, c.Report.Worsened())
	}
}

// A store that fails is left out of later rounds while the others go on. An interrupted run keeps
// what was measured and names the rounds that it left out.
func TestRounds_failedAndInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	c := config(5)
	r := &run{cfg: c}
	var played []string
	err := r.rounds(ctx, func(ctx context.Context, s scene, round int) error {
		played = append(played, fmt.Sprintf("%s %d", s.name, round))
		if s.name == "HBase, single" {
			return errors.New("the server is dead")
		}
		if round == 2 {
			interrupt()
			return ctx.Err()
		}
		r.rows.entry("all", s.name, "w", report.Seconds).add(took(1, 1))
		return nil
	})
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "HBase, single, round 1: the server is dead") {
		t.Errorf("error %v, want the interruption and the failure of HBase, single", err)
	}
	want := []string{"embedded 0", "HBase, single 0", "HBase, multi 0", "embedded 1", "HBase, multi 1", "embedded 2"}
	if !slices.Equal(played, want) {
		t.Errorf("played %q, want %q", played, want)
	}
	if left := c.Report.Left; len(left) != 1 || left[0] != "rounds 3 to 5" {
		t.Errorf("left %q, want rounds 3 to 5", left)
	}
	if x := c.Report.Changes; len(x) != 2 || len(x[0].A) != 2 || x[0].Verdict() != report.TooFew {
		t.Errorf("changes %+v, want 2: the first of 2 rounds, which are too few for a verdict", x)
	}
}

// A report that cannot be saved ends the run: its figures would be lost.
func TestRounds_fullDisk(t *testing.T) {
	c := config(3)
	c.Save = func() error { return errors.New("no space left on device") }
	n := 0
	err := (&run{cfg: c}).rounds(t.Context(), func(context.Context, scene, int) error { n++; return nil })
	if err == nil || n != len(c.scenes()) {
		t.Errorf("%d scenes, error %v; want the scenes of one round and an error", n, err)
	}
}

// Both builds are asked in turn, and each is first as often as the other.
func TestInTurn(t *testing.T) {
	c, order := config(4), ""
	for index := range c.Rounds {
		o := &round{run: &run{cfg: c}, index: index, sides: [2]*side{{build: c.A}, {build: c.B}}}
		for _, turns := range []int{1, 2} {
			samples, err := o.alternate(turns, func(s *side, turn int) (sample, error) {
				order += s.build.Name
				return sample{amount: float64(turn)}, nil
			})
			if err != nil || len(samples[0]) != turns || len(samples[1]) != turns {
				t.Errorf("samples %v, error %v; want one of each build for each turn", samples, err)
			}
			order += " "
		}
		if _, err := o.alternate(1, func(s *side, _ int) (sample, error) {
			if s.build.Name == "B" {
				return sample{}, errors.New("x")
			}
			return sample{}, nil
		}); err == nil || err.Error() != "build B: x" {
			t.Errorf("error %v, want build B: x", err)
		}
	}
	if want := "AB ABBA BA BAAB AB ABBA BA BAAB "; order != want {
		t.Errorf("order %s, want %s", order, want)
	}
}

// A slow question gets fewer turns; a quick one is asked several times in each turn.
func TestDivide(t *testing.T) {
	f := func(c Config, takes time.Duration, turns, count int) {
		t.Helper()
		if gotTurns, gotCount := c.divide(takes); gotTurns != turns || gotCount != count {
			t.Errorf("%s: %d turns of %d, want %d of %d", takes, gotTurns, gotCount, turns, count)
		}
	}
	c := Config{Turns: 8, TurnFor: 40 * time.Millisecond}
	f(c, time.Second, 2, 1)
	f(c, 100*time.Millisecond, 4, 1)
	f(c, 110*time.Millisecond, 4, 1) // 3 turns would do, but their number must be even
	f(c, 40*time.Millisecond, 8, 1)
	f(c, 39*time.Millisecond, 8, 2)
	f(c, time.Millisecond, 8, 40)
	f(c, 0, 8, maxAsks)
	f(Config{Turns: 1}, time.Second, 1, 1)
	f(Config{Turns: 1, TurnFor: time.Second}, time.Second, 1, 1)
}

// A round's amount is the median of its turns. Samples without processor time give no processor
// ratio.
func TestLedger(t *testing.T) {
	var l rowSet
	for range 2 {
		l.entry("a", "s", "w", report.Seconds).add([2][]sample{
			{{amount: 1}, {amount: 50}, {amount: 2}},
			{{amount: 4}, {amount: 2}},
		})
	}
	l.entry("a", "other", "w", report.Bytes)
	all := l.changes(0.05)
	if len(all) != 2 || !slices.Equal(all[0].A, []float64{2, 2}) || !slices.Equal(all[0].B, []float64{3, 3}) ||
		all[0].Processor != nil {
		t.Errorf("%+v, want 2 rows, the first with medians 2 and 3 and no processor ratio", all)
	}
	if all[1].Verdict() != "missing" {
		t.Errorf("%+v, want the verdict missing", all[1])
	}
}

// Every question has a row of its own. Its queries differ from one variant to the next, are the
// same whoever asks, and lie within the data.
func TestQuestions(t *testing.T) {
	d, seen := workload.Default(), map[string]bool{}
	for _, q := range slices.Concat(questions, cacheableQuestions) {
		if seen[q.row] || q.what == "" || !slices.Contains(Rows, q.row) {
			t.Errorf("%+v, want a row that is known and its own, and a description", q)
		}
		seen[q.row] = true
		first, next := q.of(d, 3), q.of(d, 4)
		if len(first) == 0 || slices.Equal(first, next) || !slices.Equal(first, q.of(d, 3)) {
			t.Errorf("%s: %v, then %v; want others the next time, and the same for the same variant",
				q.row, first, next)
		}
		for i := range variants {
			for _, one := range q.of(d, i) {
				if one.Path == "" && (one.Start < d.Start || one.End >= d.End() || one.End <= one.Start) {
					t.Errorf("%s: %s is not within the data", q.row, one)
				}
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for text, want := range map[string]bool{
		"tree": true, "git:HEAD~1": true, "build:bin/gateway": true, "http://127.0.0.1:4242": false,
		"trees": false, "": false,
	} {
		if got := Named(text); got != want {
			t.Errorf("%q: got %v, want the opposite", text, got)
		}
	}
}
