package speed

import (
	"context"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// hbasePut measures puts by telnet into HBase, in time order: a TSD, Downpour
// with a cell a point, and Downpour with a cell a row and commit window; each
// into new tables, in which the names have their UIDs already.
func hbasePut(ctx context.Context, s *stage, g group) error {
	d := s.cfg.dataAt(g.scale)
	d.Hours = 1
	s.cfg.Progress.Sayf("putting into HBase: %s", d)
	payload := s.sending(nil, d, workload.Telnet).Spell()
	kinds := []putter{
		{name: "OpenTSDB", start: peer.StartOpenTSDB},
		{name: "Downpour, single cells", start: peer.StartDownpour},
		{name: "Downpour, DOWNPOUR_PUT_CELLS=multi", start: peer.StartDownpour, multi: true},
	}

	// Some points of the hour before are put first: names get their UIDs, and a JVM
	// compiles its code.
	names := d
	names.Start, names.Step = d.Start-3600, max(d.Step, 60)
	for round := range 2 {
		if err := s.putRound(ctx, kinds, names, d, payload, d.Whole("sum:1m-avg:%s{region=*}")); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}

	s.addPutters("put into HBase", kinds, d)
	s.aim(s.rate("hbaseput", g, "put by telnet into HBase, in time order, single cells", 4, kinds[1].figure, kinds[0].figure, "OpenTSDB, same HBase"))
	s.aim(s.rate("hbaseput", g, "the same with DOWNPOUR_PUT_CELLS=multi", 12, kinds[2].figure, kinds[0].figure, "OpenTSDB, same HBase"))
	return nil
}

// putter is one way to put into HBase.
type putter struct {
	name   string
	start  func(context.Context, peer.Options) (*peer.Server, error)
	multi  bool
	figure report.Figure
}

// newSeriesHBase measures how series that are all new are put by telnet into HBase: a TSD and
// Downpour, each into new tables, once. The tables of UIDs know other names than theirs.
func newSeriesHBase(ctx context.Context, s *stage, g group) error {
	d := workload.Pods{Count: s.cfg.HBasePods, Start: s.cfg.Data.Start, Hours: podHours, PerHour: podPerHour, Seed: s.cfg.Data.Seed}
	s.cfg.Progress.Sayf("putting into HBase: %s", d)
	payload := s.sending(nil, d, workload.Telnet).Spell()
	kinds := []putter{{name: "OpenTSDB", start: peer.StartOpenTSDB}, {name: "Downpour", start: peer.StartDownpour}}

	// They make a JVM compile its code; no name of theirs is one of the pods'.
	others := workload.Default()
	others.Hosts, others.Hours, others.Step = 100, 1, 60
	if err := s.putRound(ctx, kinds, others, d, payload, d.Whole("sum:5m-avg:%s{zone=*}")); err != nil {
		return err
	}

	s.addPutters("new series put into HBase", kinds, d)
	what := fmt.Sprintf("%s new series of 3 tags put by telnet into HBase, %d points each", report.Thousands(float64(d.Series())), podHours*podPerHour)
	s.aim(s.rate("newseries-hbase", g, what, 10, kinds[1].figure, kinds[0].figure, "OpenTSDB, same HBase"))
	return nil
}

// addPutters names the figures of putters and adds them to the report, each as a multiple of
// the first.
func (s *stage) addPutters(what string, kinds []putter, d workload.Data) {
	for i := range kinds {
		f := &kinds[i].figure
		f.Name, f.Work, f.Unit = what+", "+kinds[i].name, int64(d.Points()), "points"
		if i > 0 {
			f.Of = kinds[0].figure.Name
		}
		s.cfg.Report.Figures = append(s.cfg.Report.Figures, *f)
	}
}

// putRound measures each kind once and compares what the tables then answer to a query. names
// is put first, and not measured.
func (s *stage) putRound(ctx context.Context, kinds []putter, names, d workload.Data, payload bench.Payload, compared workload.Query) error {
	var servers []*peer.Server
	for i := range kinds {
		server, tables, took, err := s.putOnce(ctx, &kinds[i], names, d, payload)
		// All servers and tables stay until their answers are compared.
		defer s.dropTables(tables.All())
		defer server.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", kinds[i].name, err)
		}
		kinds[i].figure.Runs = append(kinds[i].figure.Runs, took)
		servers = append(servers, server)
	}

	for _, ours := range servers[1:] {
		if err := peer.AgreeInValues(ctx, servers[0], ours, compared); err != nil {
			return err
		}
	}
	return nil
}

// putOnce puts names and then the data set through one server into new tables. The time
// begins with the data set and ends when the tables hold all points: a TSD closes the connection before. With multi cells it
// ends with the connection, see holds.
func (s *stage) putOnce(ctx context.Context, k *putter, names, d workload.Data, payload bench.Payload) (server *peer.Server, tables e2e.Tables, took time.Duration, err error) {
	if tables, err = s.newTables(ctx); err != nil {
		return nil, tables, 0, err
	}
	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: tables}
	if k.multi {
		o.Env = map[string]string{"DOWNPOUR_PUT_CELLS": "multi"}
	}

	if server, err = s.started(k.start(ctx, o)); err != nil {
		return nil, tables, 0, err
	}
	c := s.sending(server, names, workload.Telnet)
	if _, err := c.Send(ctx, c.Stream()); err != nil {
		return server, tables, 0, err
	}

	if err := s.holds(ctx, tables, names.Points(), k.multi); err != nil {
		return server, tables, 0, err
	}
	start := time.Now()
	if _, err := s.sending(server, d, workload.Telnet).Send(ctx, payload); err != nil {
		return server, tables, 0, err
	}

	if err := s.holds(ctx, tables, names.Points()+d.Points(), k.multi); err != nil {
		return server, tables, 0, err
	}
	return server, tables, time.Since(start), nil
}

// holds waits until a table has so many points. Cells that hold several are not
// counted: there the close of the connection is the acknowledgement, and the
// answers are compared afterwards.
func (s *stage) holds(ctx context.Context, tables e2e.Tables, points int, multi bool) error {
	if multi {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		stats, err := bench.BareScan(ctx, s.store, store.Scan{Table: tables.Data, Family: "t"})
		if err == nil && stats.Cells != int64(points) {
			err = fmt.Errorf("the table holds %d points, want %d", stats.Cells, points)
		}
		return err
	})
}
