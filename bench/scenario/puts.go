package scenario

import (
	"context"
	"fmt"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// puts is the step that puts a data set into each side, on new storage of its own each round. The text of the points is
// made beforehand. After each round all sides must give the same answer.
type puts struct {
	sides  []string // rates are compared with that of the first
	format workload.Format
	rounds int // at most
	data   func(s *stage) workload.Data
	// names is put first, and not measured: names get their UIDs, and a JVM compiles its code. nil is nothing.
	names         func(s *stage) workload.Data
	figures, what string
	compared      func(s *stage) workload.Query
	aims          []aim
}

func (p puts) run(ctx context.Context, s *stage) error {
	all := make([]report.Figure, len(p.sides))
	var payload bench.Payload
	rounds := min(p.rounds, s.cfg.Rounds)
	for round := range rounds {
		if err := p.empty(ctx, s); err != nil {
			return err
		}
		if round == 0 {
			d := p.data(s)
			s.cfg.Progress.Sayf("putting %s, %d rounds, %s", d, rounds, p.format)
			payload = s.sending(nil, d, p.format).Spell()
		}
		if err := p.round(ctx, s, round, all, payload); err != nil {
			s.dropSet() // it has not all points
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}

	byName := map[string]report.Figure{}
	for i, name := range p.sides {
		f := &all[i]
		f.Name, f.Unit, f.Work = s.text(p.figures)+reported(name), "points", int64(p.data(s).Points())
		if i > 0 {
			f.Of = all[0].Name
			s.keepAs(f.Name, p.again(s, name, payload))
		}
		byName[name] = *f
	}
	if p.wants(s.group) {
		s.cfg.Report.Figures = append(s.cfg.Report.Figures, all...)
	}
	for _, one := range p.aims {
		by := one.of
		if by == "" {
			by = p.sides[len(p.sides)-1]
		}
		s.judge(one, s.text(p.what), byName[by], byName[one.than])
	}
	return nil
}

// wants reports whether an aim of the step is wanted. Without one the step only fills the storage.
func (p puts) wants(g group) bool {
	for _, one := range p.aims {
		if g.has(one.row) {
			return true
		}
	}
	return false
}

// empty makes new storage: that of the group's data set, which stays for its questions, or none yet.
func (p puts) empty(ctx context.Context, s *stage) error {
	if s.group.on == nil {
		s.dropSet()
		return s.maker.StartHBase(ctx)
	}
	return s.empty(ctx)
}

// again profiles the puts into a side with embedded storage; it is nil for one on HBase.
func (p puts) again(s *stage, name string, payload bench.Payload) profiler {
	if s.set == nil {
		return nil
	}
	var at *place.Place
	return s.timed(repeatable{
		server: func(ctx context.Context) (server *peer.Server, err error) {
			if at, err = s.maker.Embedded(); err != nil {
				return nil, err
			}
			return s.sideAt(ctx, at, name)
		},
		run: func(ctx context.Context, server *peer.Server, _ int) error {
			_, err := s.sending(server, p.data(s), p.format).Send(ctx, payload)
			return err
		},
		end: func() { at.Drop() },
	})
}

// round puts into each side once; each round begins with another one.
func (p puts) round(ctx context.Context, s *stage, round int, all []report.Figure, payload bench.Payload) error {
	servers := make([]*peer.Server, len(p.sides))
	for n := range p.sides {
		i := (n + round) % len(p.sides)
		name := p.sides[i]
		at, err := p.place(ctx, s, name)
		if s.set == nil { // all stay until their answers are compared
			defer at.Drop()
		}
		if err != nil {
			return err
		}
		if servers[i], err = s.sideAt(ctx, at, name); err != nil {
			return fmt.Errorf("%s: %w", reported(name), err)
		}
		took, err := p.once(ctx, s, at, servers[i], name, payload)
		if err != nil {
			return fmt.Errorf("%s: %w", reported(name), err)
		}
		all[i].Runs = append(all[i].Runs, took)
	}
	return s.untilEqual(ctx, 3*time.Minute, p.compared(s), servers)
}

// place is that of a side: of the data set of the group, or new tables.
func (p puts) place(ctx context.Context, s *stage, name string) (*place.Place, error) {
	if s.set != nil {
		return s.set.of(name), nil
	}
	return s.maker.OnHBase(ctx, nil)
}

// once puts into a side. On HBase the time ends when the tables hold all points: a TSD closes the connection before.
func (p puts) once(
	ctx context.Context, s *stage, at *place.Place, server *peer.Server, name string, payload bench.Payload,
) (time.Duration, error) {
	points := 0
	if p.names != nil {
		d := p.names(s)
		c := s.sending(server, d, workload.Telnet)
		if _, err := c.Send(ctx, c.Stream()); err != nil {
			return 0, err
		}
		points = d.Points()
		if err := s.holds(ctx, at, name, points); err != nil {
			return 0, err
		}
	}

	d := p.data(s)
	began := time.Now()
	if _, err := s.sending(server, d, p.format).Send(ctx, payload); err != nil {
		return 0, err
	}
	err := s.holds(ctx, at, name, points+d.Points())
	return time.Since(began), err
}

// holds waits until tables have so many points. Cells that hold several are not
// counted: there, and in an embedded store, the acknowledgement says it, and the
// answers are compared afterwards.
func (s *stage) holds(ctx context.Context, at *place.Place, name string, points int) error {
	if name == multi || !at.OnHBase() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		stats, err := cellsIn(ctx, at)
		if err == nil && stats.Cells != int64(points) {
			err = fmt.Errorf("the table holds %d points, want %d", stats.Cells, points)
		}
		return err
	})
}

// cellsIn counts the cells of the data table.
func cellsIn(ctx context.Context, at *place.Place) (store.ScanStats, error) {
	return bench.BareScan(ctx, at.Store(), store.Scan{Table: at.Tables.Data, Family: encoding.FamilyData})
}

// untilEqual waits until all servers give the same answer as the first, value by value: VictoriaMetrics shows a point
// only a second or two after its put.
func (s *stage) untilEqual(
	ctx context.Context, patience time.Duration, q workload.Query, servers []*peer.Server,
) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e2e.Until(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		for _, other := range servers[1:] {
			if err := peer.AgreeInValues(ctx, servers[0], other, q); err != nil {
				return err
			}
		}
		return nil
	})
}
