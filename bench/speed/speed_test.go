package speed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/report"
	"downpour/bench/workload"
)

func config(rows, scales []string) Config {
	return Config{Rows: rows, Scales: scales, Data: workload.Default(), Rounds: 1, BigRounds: 1, Connections: 1, Seconds: 1, MemoryHours: 10, Pods: 1, HBasePods: 1, Viewers: 1, ViewersPoints: 1, LivingDays: 1,
		Report: &report.Report{}, Print: func(report.Aim) {}, Save: func() error { return nil }}
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
		return group{rows: []string{name}, scale: "1x", seconds: 1, run: func(ctx context.Context, s *stage, g group) error {
			ran = append(ran, name)
			if err := run(s, g); err != nil {
				return err
			}
			f := report.Figure{Runs: []time.Duration{1}}
			s.aim(faster(name, g, name, 1, f, f, "x"))
			return nil
		}}
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
	if len(cfg.Report.Left) != 0 || len(cfg.Report.Aims) != 4 || slices.ContainsFunc(cfg.Report.Aims, func(a report.Aim) bool { return !a.Met() }) {
		t.Errorf("left %v, aims %+v; want nothing left, and 4 aims that are met", cfg.Report.Left, cfg.Report.Aims)
	}
}

// A report that cannot be saved ends the run: its figures would be lost.
func TestRun_fullDisk(t *testing.T) {
	cfg := config(nil, nil)
	cfg.Save = func() error { return errors.New("no space left on device") }
	n := 0
	one := group{rows: []string{"a"}, scale: "1x", run: func(context.Context, *stage, group) error { n++; return nil }}
	if err := run(t.Context(), cfg, []group{one, one}); err == nil || n != 1 {
		t.Errorf("%d groups ran, error %v; want 1 and an error", n, err)
	}
}

func TestAims(t *testing.T) {
	g := group{scale: "1x"}
	ours, theirs := report.Figure{Runs: []time.Duration{10e6, 20e6, 30e6}}, report.Figure{Runs: []time.Duration{100e6, 120e6, 100e6}}
	if a := faster("x", g, "w", 5, ours, theirs, "t"); a.Got.Median != 5 || !a.Met() || a.Ours != "20.0 ms" || a.Theirs != "100 ms" {
		t.Errorf("%+v", a)
	}
	if a := within("x", g, "w", 1.8, theirs, ours, "t"); a.Got.Median != 5 || a.Met() {
		t.Errorf("%+v", a)
	}
	if got := shortName("sum:5m-avg:%s{host=*}"); got != "sum:5m-avg{host=*}" {
		t.Errorf("short name %s", got)
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
	}{{"r1/t/read", 100}, {"r1/t/made", 10}, {"r1/t/.made.crc", 7}, {"r2/t/read", 3}, {"r2/t/.read.crc", 1}, {"r1/.regioninfo", 50}, {"r1/id/other", 1000}} {
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
