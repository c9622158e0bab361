package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"downpour/bench"
	"downpour/bench/builds"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/scenario"
	"downpour/bench/workload"
)

// compareFlags are the command line of bench compare.
type compareFlags struct {
	cfg          scenario.Config
	rows, scales string
	env, resume  string
	a, b         string
	queries      string
	worse        float64
	builds       buildFlags
}

// parseCompare binds the flags of bench compare and reads them.
func parseCompare(s *session) (f compareFlags, err error) {
	s.saveFlag()
	d := dataFlags(s.flags)
	s.flags.StringVar(&f.rows, "rows", "", "rows of the table, by comma: "+strings.Join(scenario.Rows, ", ")+
		"; of builds: "+strings.Join(builds.Rows, ", ")+"; empty is all")
	s.flags.StringVar(&f.scales, "scales", "",
		"sizes of the data, by comma: "+strings.Join(scenario.Scales, ", ")+"; empty is all")
	s.flags.IntVar(&f.cfg.Rounds, "rounds", 9, fmt.Sprintf("rounds that count; of builds %d unless given", buildRounds))
	s.flags.IntVar(&f.cfg.BigRounds, "big-rounds", 2, "rounds that count at the larger sizes")
	s.flags.IntVar(&f.cfg.Connections, "connections", 2, "connections that put")
	s.flags.IntVar(&f.cfg.Seconds, "seconds", 20, "length of one run of dashboards")
	s.flags.IntVar(&f.cfg.Pods, "pods", 1_000_000, "series of the rows newseries, firstlook and sparse")
	s.flags.IntVar(&f.cfg.HBasePods, "hbase-pods", 100_000, "series of the row newseries-hbase")
	s.flags.IntVar(&f.cfg.Viewers, "viewers", 50, "viewers of the dashboard of the row viewers")
	s.flags.IntVar(&f.cfg.ViewersPoints, "viewers-points", 100_000,
		"points a second that are put during the row viewers")
	s.flags.IntVar(&f.cfg.LivingDays, "living-days", 30, "days of data of the row living")
	s.flags.IntVar(&f.cfg.MemoryHours, "memory-hours", 28,
		"hours of data of the memory row, with -step and with a tenth of it; 28 are 10 M and 100 M points")
	s.flags.StringVar(&f.env, "scan-env", "DOWNPOUR_RESULT_CACHE=off",
		"settings of gateways that are to read every row, KEY=VALUE by comma")
	s.flags.StringVar(&f.resume, "resume", "", "report (JSON) of an interrupted run, to be gone on with")
	s.flags.StringVar(&f.a, "a", "", "compare two builds of Downpour instead, "+
		"or two running servers with OpenTSDB's API: "+buildHelp+", or a URL; the one that times are multiples of")
	s.flags.StringVar(&f.b, "b", "", "and the other")
	s.flags.Float64Var(&f.worse, "worse", 5, "percent by which B may be worse than A, with -a and -b")
	f.builds.bind(s.flags)
	s.flags.StringVar(&f.queries, "queries", "",
		"file of requests for -a and -b, /api/query?… a line; empty asks for the generated data set")
	err = s.parse(0)
	f.cfg.Data = *d
	f.cfg.Rows, f.cfg.Scales = list(f.rows), list(f.scales)
	return f, err
}

// list cuts a text at commas and blanks.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// compare is bench compare: the table of aims, or two builds or servers if -a and -b are
// given. A run that was interrupted goes on with -resume.
func compare(ctx context.Context, s *session) error {
	f, err := parseCompare(s)
	if err != nil {
		return err
	}
	if f.a != "" || f.b != "" {
		return compareTwo(ctx, s, f)
	}

	if err := f.builds.unused(s.flags); err != nil {
		return err
	}
	cfg := &f.cfg
	cfg.Open, cfg.Report = openStore, s.report()
	if cfg.ScanEnv, err = settings(f.env); err != nil {
		return fmt.Errorf("scan-env: %w", err)
	}

	if f.resume != "" {
		if cfg.Report, err = resumed(f.resume, cfg); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}

	r := cfg.Report
	r.Data = "1x: " + cfg.Data.String()
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := setUpPeers(ctx, s, r); err != nil {
		return err
	}

	cfg.Progress = progress.New(s.errs, "compare, seconds of work", cfg.Total())
	fmt.Fprintf(s.out, "%s\n%s\n", r.Machine, report.AimHead())
	cfg.Print = func(a report.Aim) {
		cfg.Progress.Clear()
		fmt.Fprintln(s.out, a.Line())
	}
	cfg.Save = func() error { _, err := s.save(r.Done()); return err }
	err = scenario.Run(ctx, *cfg)
	cfg.Progress.End()
	printUndone(s, r)
	return s.finish(r, err)
}

// settings reads the variables for our servers, NAME=VALUE by comma.
func settings(text string) (map[string]string, error) {
	env := map[string]string{}
	for _, setting := range list(text) {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || !strings.HasPrefix(key, "DOWNPOUR_") {
			return nil, fmt.Errorf("got %q, want DOWNPOUR_NAME=VALUE", setting)
		}
		env[key] = value
	}
	return env, nil
}

// setUpPeers installs what we are measured against. Without VictoriaMetrics the rows
// that need it will say so.
func setUpPeers(ctx context.Context, s *session, r *report.Report) error {
	if err := s.setUp(ctx, "java_programs"); err != nil {
		return err
	}
	if err := s.setUp(ctx, "victoria_metrics"); err != nil {
		r.AddPeer(report.Peer{Name: peer.Victoria, Missing: strings.TrimSpace(err.Error())})
	}
	return nil
}

// printUndone says what was not measured, and how to go on.
func printUndone(s *session, r *report.Report) {
	if len(r.Left) == 0 {
		return
	}
	fmt.Fprintf(s.out, "left undone: %s\n", strings.Join(r.Left, ", "))
	if path, err := s.save(r); err == nil && path != "" {
		fmt.Fprintf(s.out, "go on with: bench compare -resume %s\n", strings.TrimSuffix(path, ".html")+".json")
	}
}

// resumed reads an earlier report and refuses one that would mix two commits,
// data sets or machines in one table.
func resumed(path string, cfg *scenario.Config) (*report.Report, error) {
	old, err := report.Read(path)
	if err != nil {
		return nil, err
	}
	now := report.New("compare", nil)
	for _, f := range []struct{ what, got, want string }{
		{"workload", old.Workload, "compare"}, {"commit", old.Commit, now.Commit},
		{"data", old.Data, "1x: " + cfg.Data.String()}, {"machine", old.Machine.String(), now.Machine.String()},
	} {
		if f.got != f.want {
			return nil, fmt.Errorf("%s: its %s is %q, this run's %q", path, f.what, f.got, f.want)
		}
	}
	return old, nil
}

// compareTwo compares what -a and -b name.
func compareTwo(ctx context.Context, s *session, f compareFlags) error {
	if f.a == "" || f.b == "" {
		return errors.New("got one of -a and -b, want both")
	}
	// A URL of a server and a build: they would not be measured alike.
	if builds.Named(f.a) != builds.Named(f.b) {
		return fmt.Errorf("got -a %s and -b %s, want two builds or the URLs of two servers", f.a, f.b)
	}

	if builds.Named(f.a) {
		return compareBuilds(ctx, s, f)
	}
	if err := f.builds.unused(s.flags); err != nil {
		return err
	}
	return pair(ctx, s, f)
}

// pair compares two servers that run already, and fails if B is worse than A by more
// than -worse percent in any row of the report.
func pair(ctx context.Context, s *session, f compareFlags) error {
	queries := []workload.Query{}
	for _, text := range bench.Queries {
		queries = append(queries, f.cfg.Data.Whole(text))
	}

	if f.queries != "" {
		var err error
		if queries, err = recorded(f.queries); err != nil {
			return err
		}
	}

	r := s.report()
	a, b := peer.At("A", f.a), peer.At("B", f.b)
	r.AddPeer(a.Peer)
	r.AddPeer(b.Peer)
	p := progress.New(s.errs, "compare", int64((f.cfg.Rounds+1)*2*len(queries))) // with the warm round
	figures, err := bench.Pair(ctx, bench.PairConfig{
		A:        a,
		B:        b,
		Queries:  queries,
		Rounds:   f.cfg.Rounds,
		Seed:     f.cfg.Data.Seed,
		Progress: p,
	})
	p.End()
	r.Figures, r.Cache = figures, "warm: one round before those that count"
	r.Changes = bench.Changes(figures, queries, f.worse/100)
	return errors.Join(s.finish(r, err), errorIfWorse(r))
}

// errorIfWorse is an error that names the rows that are worse, nil if there is none.
func errorIfWorse(r *report.Report) error {
	var rows []string
	for _, c := range r.Worsened() {
		rows = append(rows, c.Store+" "+c.Row)
	}
	if len(rows) == 0 {
		return nil
	}
	return fmt.Errorf("B is worse than A in %d of %d rows: %s", len(rows), len(r.Changes), strings.Join(rows, "; "))
}

// recorded reads a file of requests.
func recorded(path string) ([]workload.Query, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("queries: %w", err)
	}
	defer file.Close()

	queries, err := workload.Recorded(file)
	if err != nil {
		return nil, fmt.Errorf("queries: %s: %w", path, err)
	}
	return queries, nil
}

// table prints the README's table of a report.
func table(_ context.Context, s *session) error {
	if err := s.parse(1); err != nil {
		return err
	}
	r, err := report.Read(s.flags.Arg(0))
	if err != nil {
		return err
	}

	if len(r.Aims) == 0 {
		return fmt.Errorf("%s: a report of bench %s without aims; bench compare makes one with them",
			s.flags.Arg(0), r.Workload)
	}
	return r.WriteMarkdown(s.out)
}
