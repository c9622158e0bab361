package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"downpour/bench"
	"downpour/bench/live"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/integration/e2e"
)

// liveFlags are what the command line says of a run on live queries.
type liveFlags struct {
	live.Config
	url     string
	stores  string
	parts   string
	sockets string
	plans   map[string]*int // followed at once, by store
}

// liveFlags binds the flags of bench live.
func (s *session) liveFlags() *liveFlags {
	f := &liveFlags{plans: map[string]*int{}}
	s.flags.StringVar(&f.url, "url", "",
		"gateway to ask, for the parts frames and sockets; empty starts one for each store")
	s.flags.StringVar(&f.stores, "stores", "embedded,hbase", "stores to start a gateway on, by comma")
	s.flags.StringVar(&f.parts, "parts", "frames,sockets,tick,answers",
		"what to measure: put to frame; many sockets; a tick against asking again; the Arrow answer against "+
			"JSON, the scan and the wire; and viewers, many of one dashboard; dashboards, in Chromium")
	s.flags.StringVar(&f.sockets, "sockets", "1,100,1000",
		"numbers of sockets: of the part frames on one plan, by comma; without that part, of the part sockets")
	s.flags.IntVar(&f.Puts, "puts", 30, "points put, each plan")
	s.flags.DurationVar(&f.Every, "every", 537*time.Millisecond,
		"time between two; no divisor of a tick, or all would meet it at the same place")
	s.flags.IntVar(&f.Crowd, "crowd", 2000, "sockets of the part sockets, a tenth each stalled, slow and half-open")
	s.flags.IntVar(&f.CrowdPlans, "plans", 50, "plans that they are on")
	s.flags.IntVar(&f.Data.Hosts, "hosts", 1000, "series of tick and answers")
	s.flags.IntVar(&f.Data.Hours, "hours", 6, "hours of them, up to now")
	s.flags.IntVar(&f.Tick.Seconds, "seconds", 30,
		"seconds of puts without followers, and with them, in each round; two late looks on HBase")
	s.flags.IntVar(&f.Tick.Rounds, "ticks", 3, "rounds of ticks")
	s.flags.IntVar(&f.Tick.Asks, "asks", 10, "how often the query is asked again in each")
	f.plans["embedded"] = s.flags.Int("followed", 20, "live queries followed at once, embedded")
	f.plans["hbase"] = s.flags.Int("followed-hbase", 2, "live queries followed at once, on HBase")
	s.flags.StringVar(&f.Tick.Downsample, "downsample", "5m-avg", "of the query that is followed")
	s.flags.IntVar(&f.Rounds, "rounds", 7, "measured rounds of answers, and of viewers")
	s.flags.IntVar(&f.Dashboards.Viewers, "viewers", 50, "that look at one dashboard at once, against one")
	s.flags.IntVar(&f.Dashboards.Seconds, "viewing", 20, "seconds of them, in each round")
	s.flags.IntVar(&f.Dashboards.Paints, "paints", 7, "how often a dashboard is opened in the browser")
	s.flags.DurationVar(&f.Dashboards.Wall, "wall", 3*time.Minute,
		"how long 60 live panels are open in the browser; 1h in make soak-dashboards")
	return f
}

// liveQueries is bench live: live queries and answers, on each store in turn.
func liveQueries(ctx context.Context, s *session) error {
	s.saveFlag()
	f := s.liveFlags()
	if err := s.parse(0); err != nil {
		return err
	}
	// Of the data set only these two have flags.
	d := workload.Default()
	d.Hosts, d.Hours = f.Data.Hosts, f.Data.Hours
	f.Data, f.Parts = d, list(f.parts)
	f.Dashboards.Data = workload.Default()
	f.Dashboards.Data.Hosts, f.Dashboards.Data.Hours = 100, 24
	f.Dashboards.Browser = func(ctx context.Context, args ...string) ([]byte, error) {
		return e2e.Node(ctx, "integration/browser/figures.mjs", args...)
	}
	var err error
	if f.Sockets, err = numbers(f.sockets); err != nil {
		return fmt.Errorf("sockets: %w", err)
	}

	// Without the part frames, -sockets counts those of the part sockets.
	if s.given("sockets") && !slices.Contains(f.Parts, "frames") {
		f.Crowd = f.Sockets[len(f.Sockets)-1]
	}
	f.Progress = func(what string, total int64) *progress.Progress { return progress.New(s.errs, what, total) }
	r := s.report()
	f.Report = r
	r.Data = fmt.Sprintf("%s, up to now, and on: a point of a tenth of the series a second", d)
	r.Note("response counts from the moment at which a put was due, service from when it began")
	return s.finish(r, f.run(ctx, s))
}

// run measures on each store in turn.
func (f *liveFlags) run(ctx context.Context, s *session) error {
	if f.url != "" {
		server, err := s.server(ctx, f.url)
		if err != nil {
			return err
		}
		f.Server, f.Store = server, server.URL
		return live.Run(ctx, f.Config)
	}

	var failed []error
	for _, store := range list(f.stores) {
		plans, ok := f.plans[store]
		if !ok {
			return fmt.Errorf("stores: got %q, want embedded or hbase", store)
		}
		f.Tick.Plans = *plans
		on := map[string]func(context.Context, *session) error{"embedded": f.embedded, "hbase": f.hbase}[store]
		// A store that fails leaves the other one.
		if err := on(ctx, s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", store, err))
		}
	}

	return errors.Join(failed...)
}

// asked are the settings of the gateways: large answers are allowed as JSON too, and the
// result cache is off.
var asked = map[string]string{"DOWNPOUR_LIMIT_JSON": "100000000", resultCache: "off"}

// embedded measures a gateway on a new embedded store.
func (f *liveFlags) embedded(ctx context.Context, s *session) (err error) {
	if f.Server, err = peer.StartDownpour(ctx, peer.Options{Env: asked}); err != nil {
		return err
	}
	defer f.Server.Close()
	f.Report.AddPeer(f.Server.Peer)
	f.Store, f.Tick.CPU, f.Floor = live.Embedded, f.Server.Process.CPU, nil
	return live.Run(ctx, f.Config)
}

// hbase measures a gateway on an HBase that is started for it. The processor time of a
// tick is then that of gateway and region server.
func (f *liveFlags) hbase(ctx context.Context, s *session) error {
	on, err := s.use(ctx, "hbase", f.Report)
	if err != nil {
		return err
	}
	defer on.close()

	names := e2e.TablesWithPrefix("bench-live")
	made := tables.Names{Data: names.Data, UID: names.UID, Meta: names.Meta, Tree: names.Tree}
	if err := tables.Create(ctx, on.store, tables.Specs(made, encoding.DefaultSchema(), "NONE")); err != nil {
		return err
	}
	if f.Server, err = peer.StartDownpour(ctx, peer.Options{
		Quorum: on.hbase.Quorum(),
		Tables: names,
		Env:    asked,
	}); err != nil {
		return err
	}
	defer f.Server.Close()

	f.Report.AddPeer(f.Server.Peer)
	f.Store = live.HBase
	f.Tick.CPU = func() (time.Duration, error) {
		ours, err1 := f.Server.Process.CPU()
		theirs, err2 := on.hbase.CPU()
		return ours + theirs, errors.Join(err1, err2)
	}

	f.Floor = func(ctx context.Context, metric string) (*bench.Floor, error) {
		schema := encoding.DefaultSchema()
		id, err := uid.New(uid.Config{Store: on.store, Table: names.UID, Schema: schema}).
			Resolve(ctx, encoding.UIDMetric, metric)
		return &bench.Floor{Store: on.store, Schema: schema, Table: names.Data, Metric: id}, err
	}

	return live.Run(ctx, f.Config)
}
