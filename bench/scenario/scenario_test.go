package scenario

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/bench/workload"
)

func config(rows, scales []string) Config {
	return Config{
		Rows: rows, Scales: scales, Data: workload.Default(), Rounds: 1, BigRounds: 1, Connections: 1, Seconds: 1,
		MemoryHours: 10, Pods: 1, HBasePods: 1, Viewers: 1, ViewersPoints: 1, LivingDays: 1,
		Report: &report.Report{}, Print: func(report.Aim) {}, Save: func() error { return nil },
	}
}

// Every row is measured by a group, and -rows can choose each of them. Wrong rows, scales and hosts
// are errors.
func TestGroups(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups() {
		if !slices.Contains(Scales, g.scale) || g.seconds <= 0 {
			t.Errorf("group %s: scale %s, %d s", g, g.scale, g.seconds)
		}
		for _, row := range g.rows {
			seen[row] = true
		}
	}
	if len(seen) != len(Rows) {
		t.Errorf("groups measure %d rows, want %d", len(seen), len(Rows))
	}
	for _, row := range Rows {
		c := config([]string{row}, []string{"1x"})
		if got := c.chosen(groups()); len(got) != 1 || !slices.Equal(got[0].rows, []string{row}) {
			t.Errorf("-rows %s chooses %v", row, got)
		}
		if err := c.Validate(); err != nil || c.Total() <= 0 {
			t.Errorf("-rows %s: %v", row, err)
		}
	}
	for want, c := range map[string]Config{
		`rows: got "x", want some of compacted`: config([]string{"x"}, nil),
		`scales: got "2x"`:                      config(nil, []string{"2x"}),
		`hosts: got 0`:                          {},
	} {
		if want == "hosts: got 0" {
			c = config(nil, nil)
			c.Data.Hosts = 0
		}
		if err := Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A run that fails in one row and is interrupted in another says what it left out. When it is
// resumed, it measures what is missing and nothing else.
func TestRun_interruptedAndResumed(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	broken, interrupted := true, true
	var ran []string
	made := func(name string, run func(*stage, group) error) group {
		return group{
			scenario{rows: []string{name}, seconds: 1, steps: []step{do(func(_ context.Context, s *stage) error {
				ran = append(ran, name)
				if err := run(s, s.group); err != nil {
					return err
				}
				f := report.Figure{Runs: []time.Duration{1}}
				s.judge(faster(name, 1, "x"), name, f, f)
				return nil
			})}},
			"1x",
		}
	}
	all := []group{
		made("good", func(*stage, group) error { return nil }),
		made("broken", func(*stage, group) error {
			if broken {
				return errors.New("the server is dead\nand its log is long")
			}
			return nil
		}),
		made("slow", func(*stage, group) error {
			if interrupted {
				interrupt()
				return context.Canceled
			}
			return nil
		}),
		made("last", func(*stage, group) error { return nil }),
	}
	cfg := config(nil, nil)
	saved := 0
	cfg.Save = func() error { saved++; return nil }
	err := run(ctx, cfg, all)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "broken at 1x: the server is dead") {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(cfg.Report.Left, ", "); got != "slow at 1x, last at 1x" {
		t.Errorf("left %q, want slow and last", got)
	}
	if a := cfg.Report.Aims; len(a) != 2 || !a[0].Met() || a[1].Missing != "the server is dead" || saved == 0 {
		t.Errorf("aims %+v, saved %d times", a, saved)
	}

	broken, interrupted, ran = false, false, nil
	if err := run(t.Context(), cfg, all); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ran, " "); got != "broken slow last" {
		t.Errorf("resumed, it ran %s; want broken slow last", got)
	}
	if len(cfg.Report.Left) != 0 || len(cfg.Report.Aims) != 4 ||
		slices.ContainsFunc(cfg.Report.Aims, func(a report.Aim) bool { return !a.Met() }) {
		t.Errorf("left %v, aims %+v; want nothing left, and 4 aims that are met", cfg.Report.Left, cfg.Report.Aims)
	}
}

// A report that cannot be saved ends the run: its figures would be lost.
func TestRun_fullDisk(t *testing.T) {
	cfg := config(nil, nil)
	cfg.Save = func() error { return errors.New("no space left on device") }
	n := 0
	one := group{
		scenario{rows: []string{"a"}, steps: []step{do(func(context.Context, *stage) error { n++; return nil })}},
		"1x",
	}
	if err := run(t.Context(), cfg, []group{one, one}); err == nil || n != 1 {
		t.Errorf("%d groups ran, error %v; want 1 and an error", n, err)
	}
}

func TestAims(t *testing.T) {
	cfg := config(nil, nil)
	s := newStage(&cfg)
	s.group = group{scenario{rows: []string{"x"}}, "1x"}
	mine := report.Figure{Name: "mine", Work: 3000, Unit: "points", Runs: []time.Duration{10e6, 20e6, 30e6}}
	theirs := report.Figure{Work: 3000, Unit: "points", Runs: []time.Duration{100e6, 120e6, 100e6}}
	f := func(a aim, ours, theirs report.Figure, want report.Aim, met bool) {
		t.Helper()
		cfg.Report.Aims = nil
		s.judge(a, "w", ours, theirs)
		want.Row, want.Scale, want.Want, want.Figure = "x", "1x", a.want, ours.Name
		if got := cfg.Report.Aims; len(got) != 1 || got[0] != want || got[0].Met() != met {
			t.Errorf("got %+v, want %+v, met: %v", got, want, met)
		}
	}
	tenth := report.Ratio{Median: 5, Low: 100.0 / 30, High: 10}
	f(faster("x", 5, tsd), mine, theirs, report.Aim{
		What:    "w",
		Against: "OpenTSDB, same tables",
		AtLeast: true,
		Got:     tenth,
		Ours:    "20.0 ms",
		Theirs:  "100 ms",
	}, true)
	f(within("x", 1.8, bare), theirs, mine, report.Aim{
		What:    "w",
		Against: "bare scan of the same rows",
		Got:     tenth,
		Ours:    "100 ms",
		Theirs:  "20.0 ms",
	}, false)
	f(rate("x", 5, tsd).saying("v").beside("b"), mine, theirs, report.Aim{
		What:    "v",
		Against: "b",
		AtLeast: true,
		Got:     tenth,
		Ours:    "150,000 points/s",
		Theirs:  "30,000 points/s",
	}, true)
	f(rated("x", 150_001), mine, theirs,
		report.Aim{What: "w", AtLeast: true, Unit: "points/s", Got: report.Single(150_000)}, false)
	f(aim{row: "x", kind: inMS, want: 20}, mine, theirs,
		report.Aim{What: "w", Unit: "ms", Got: report.Single(20)}, true)
	f(faster("x", 5, tsd), mine, report.Figure{Name: "none"}, report.Aim{
		What:    "w",
		Against: "OpenTSDB, same tables",
		AtLeast: true,
		Ours:    "20.0 ms",
		Theirs:  "0.000 ms",
		Missing: `got the figures "mine" and "none", want both with runs`,
	}, false)
	cfg.Report.Aims = nil
	if s.judge(faster("y", 5, tsd), "w", mine, theirs); len(cfg.Report.Aims) != 0 {
		t.Errorf("a row that is not wanted: %+v", cfg.Report.Aims)
	}
	if got := shortName("sum:5m-avg:%s{host=*}"); got != "sum:5m-avg{host=*}" {
		t.Errorf("short name %s", got)
	}
}

// What the data names is there: sides, floors, rows. Each aim of a scenario is of one of its rows and compared with a
// side or floor that its step has.
func TestScenarios(t *testing.T) {
	for _, sc := range scenarios {
		checkSteps(t, sc, sc.steps)
	}
}

func checkSteps(t *testing.T, sc scenario, steps []step) {
	t.Helper()
	for _, one := range steps {
		switch one := one.(type) {
		case meanwhile:
			checkSteps(t, sc, one.steps)
		case wanted:
			if !slices.Contains(sc.rows, one.row) {
				t.Errorf("%v: steps of row %s", sc.rows, one.row)
			}
			checkSteps(t, sc, one.steps)
		case loop:
			checkAims(t, sc, one.sides, one.aims)
			for _, a := range one.aims {
				if a.of == "" {
					t.Errorf("%v: aim %+v, want the side whose p99 it is of", sc.rows, a)
				}
			}
		case puts:
			checkAims(t, sc, one.sides, one.aims)
		case asks:
			for _, name := range one.floors {
				if floors[name] == nil {
					t.Errorf("%v: floor %s", sc.rows, name)
				}
			}
			for i, q := range one.questions {
				checkAims(t, sc, slices.Concat(one.sides, one.floors), q.aims)
				if ways := []bool{q.m != "", q.query != nil, q.of != nil}; slices.Index(ways, true) < 0 {
					t.Errorf("%v: question %d asks nothing", sc.rows, i)
				}
			}
		}
	}
}

func checkAims(t *testing.T, sc scenario, with []string, aims []aim) {
	t.Helper()
	for _, name := range with {
		if _, ok := sides[name]; !ok && floors[name] == nil {
			t.Errorf("%v: side %s is unknown", sc.rows, name)
		}
	}
	for _, a := range aims {
		alone := a.kind == inMS || a.kind == rateAlone
		// What ours is compared with is a side, a floor or the name of a figure.
		than := slices.Contains(with, a.than) || a.against != "" && strings.Contains(a.than, " ")
		if !slices.Contains(sc.rows, a.row) || !alone && !than || a.of != "" && !slices.Contains(with, a.of) {
			t.Errorf("%v: aim %+v, want one of its rows, compared with one of %v", sc.rows, a, with)
		}
		if a.against == "" && !alone && inWords[a.than] == "" {
			t.Errorf("%v: aim %+v, want what it is compared with in words", sc.rows, a)
		}
	}
}

// A data set that could not be loaded is removed, so that the next group loads it again.
func TestUse_failed(t *testing.T) {
	cfg := config(nil, nil)
	s := newStage(&cfg)
	defer s.close()
	var dirs []string
	s.group = group{scenario{on: &dataset{own: true, fill: func(_ context.Context, s *stage) error {
		if dirs = append(dirs, s.set.at.Dir); len(dirs) == 1 {
			return errors.New("no space left on device")
		}
		return nil
	}}}, "1x"}
	if err := s.use(t.Context()); err == nil || s.set != nil {
		t.Errorf("error %v, set %+v; want an error and none", err, s.set)
	}
	if _, err := os.Stat(dirs[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want it removed", dirs[0], err)
	}
	for range 2 {
		if err := s.use(t.Context()); err != nil || s.set == nil || len(dirs) != 2 {
			t.Errorf("error %v, loaded %d times; want none and twice", err, len(dirs))
		}
	}
}

// A step asks every side in turn, gives figures and aims their names, and compares with the side,
// floor or question that an aim names. What no aim is wanted of is not asked.
func TestAsks(t *testing.T) {
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("m"))
		io.WriteString(w, `[{"metric":"m","tags":{},"aggregateTags":[],"dps":{"1":7}}]`)
	}))
	defer web.Close()
	defer peer.CloseIdle()
	cfg := config(nil, nil)
	cfg.Rounds = 2
	s := newStage(&cfg)
	s.group = group{scenario{rows: []string{"x", "y"}, on: compacted}, "1x"}
	s.set = &set{
		dataset: compacted,
		scale:   "1x",
		data:    cfg.Data,
		at:      place.Of(map[string]*peer.Server{ours: peer.At(peer.Downpour, web.URL)}),
	}
	step := asks{
		sides:   []string{ours},
		figures: "{scale} {set}, ",
		what:    "{m}, {rows}",
		slack:   hour,
		warm:    1,
		questions: []question{
			{m: sum},
			{m: byHost, aims: []aim{within("x", 1000, "1x compacted, sum:5m-avg:cpu.user").beside("the first")}},
			{m: maxima, aims: []aim{faster("z", 1, tsd)}},
		},
	}
	if err := step.run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range cfg.Report.Figures {
		names = append(names, f.Name)
		if len(f.Runs) != 2 || f.Of != "1x compacted, sum:5m-avg:cpu.user" || f.Work != int64(cfg.Data.Points()) {
			t.Errorf("%+v, want 2 runs of all points, as multiples of the first question", f)
		}
	}
	want := []string{"1x compacted, sum:5m-avg:cpu.user", "1x compacted, sum:5m-avg:cpu.user{host=*}"}
	if !slices.Equal(names, want) {
		t.Errorf("figures %q, want %q", names, want)
	}
	if a := cfg.Report.Aims; len(a) != 1 || a[0].What != "sum:5m-avg{host=*}, compacted rows" ||
		a[0].Against != "the first" || a[0].Figure != names[1] || !a[0].Met() {
		t.Errorf("aims %+v", a)
	}
	if len(asked) != 2*3 {
		t.Errorf("asked %q, want two questions in one warm round and two others", asked)
	}
}

func TestTreeBytes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"x": 10, "a/y": 5} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := treeBytes(dir); n != 15 || err != nil {
		t.Errorf("%d bytes, %v, want 15", n, err)
	}
}

// Only the newest file of family t in each region counts: 10 and 3 bytes. The files that a
// compaction has read, which stay for a while, checksums and other families do not.
func TestCompactedBytes(t *testing.T) {
	table := t.TempDir()
	if n, err := compactedBytes(table); err == nil {
		t.Errorf("an empty table: %d bytes, want an error", n)
	}
	at := time.Unix(1700000000, 0)
	for i, f := range []struct {
		name string
		size int
	}{
		{"r1/t/read", 100},
		{"r1/t/made", 10},
		{"r1/t/.made.crc", 7},
		{"r2/t/read", 3},
		{"r2/t/.read.crc", 1},
		{"r1/.regioninfo", 50},
		{"r1/id/other", 1000},
	} {
		name := filepath.Join(table, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, make([]byte, f.size), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := compactedBytes(table); n != 13 || err != nil {
		t.Errorf("%d bytes, %v, want 13", n, err)
	}
}
