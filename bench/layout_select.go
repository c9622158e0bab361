package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"downpour/bench/report"
	"downpour/pushdown/store"
)

// selection is some of the points, and how each design is asked for them. wants
// is what the points themselves must fulfil; it is always checked, so a scan may
// bring more.
type selection struct {
	name  string
	wants func(t, v int64) bool
	scan  func(d *design) store.Scan
	// by names the means, by design; others read everything and look here.
	by map[string]string
	// families doubles the points of the table with two of them, when both are
	// read.
	families bool
}

func everything(int64, int64) bool { return true }

// selections of a data set from start, so many hours long, of so many hosts.
func (cfg LayoutConfig) selections() []selection {
	d := cfg.Data
	last := d.End() - 3600
	host := d.Hosts / 2
	inLast := func(t, _ int64) bool { return t >= last }
	pattern := func(head int) store.RowFilter {
		return store.RowFilter{Pattern: &store.KeyPattern{Head: head, NameLen: 3, ValueLen: 3, Wants: []store.Want{{Name: layoutHost, Values: [][]byte{hostPair(host)[3:]}}}}}
	}
	from := func(t int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(t)) }
	qualifiers := []store.KeyRange{{Start: from(last), Stop: from(last + 3600)}}
	flatRow := join(layoutMetric, hostPair(host))
	hourRow := join(timeKey(last), hostPair(host))
	after := func(key []byte) []byte { return append(append([]byte{}, key...), 0) }
	// Seconds 600 to 1199 of an hour: qualifiers from 600<<4 on.
	minutes := []store.KeyRange{{Start: binary.BigEndian.AppendUint16(nil, 600<<4), Stop: binary.BigEndian.AppendUint16(nil, 1200<<4)}}
	return []selection{
		{name: "everything", wants: everything, scan: func(*design) store.Scan { return store.Scan{Family: "t"} }},
		{name: "one hour of all series", wants: inLast, by: map[string]string{"flat": "qualifier range", "": "row range"}, scan: func(d *design) store.Scan {
			if d.name == "flat" {
				return store.Scan{Family: "t", Columns: qualifiers}
			}
			return store.Scan{Family: "t", Start: timeKey(last), Stop: timeKey(last + 3600)}
		}},
		{name: "one series, all the time", wants: everything, by: map[string]string{"flat": "row range", "": "row filter"}, scan: func(d *design) store.Scan {
			if d.name == "flat" {
				return store.Scan{Family: "t", Start: flatRow, Stop: after(flatRow)}
			}
			return store.Scan{Family: "t", Filter: pattern(7)}
		}},
		{name: "one series, one hour", wants: inLast, by: map[string]string{"flat": "row range and qualifier range", "tall": "row range and row filter", "": "row range"}, scan: func(d *design) store.Scan {
			switch d.name {
			case "flat":
				return store.Scan{Family: "t", Start: flatRow, Stop: after(flatRow), Columns: qualifiers}
			case "tall":
				return store.Scan{Family: "t", Start: timeKey(last), Stop: timeKey(last + 3600), Filter: pattern(7)}
			}
			return store.Scan{Family: "t", Start: hourRow, Stop: after(hourRow)}
		}},
		{name: "ten minutes of every hour", wants: func(t, _ int64) bool { return t%3600 >= 600 && t%3600 < 1200 },
			by: map[string]string{"hour-rows": "qualifier range", "hour-rows-two-families": "qualifier range"}, scan: func(d *design) store.Scan {
				if strings.HasPrefix(d.name, "hour-rows") {
					return store.Scan{Family: "t", Columns: minutes}
				}
				return store.Scan{Family: "t"}
			}},
		{name: "written in the last hour", wants: inLast, by: map[string]string{"": "timestamp"}, scan: func(*design) store.Scan {
			return store.Scan{Family: "t", Since: last * 1000}
		}},
		{name: "values of 95 and more", wants: func(_, v int64) bool { return v >= 95 }, scan: func(*design) store.Scan { return store.Scan{Family: "t"} }},
		{name: "both families", families: true, wants: everything, by: map[string]string{"hour-rows-two-families": "no family named"}, scan: func(*design) store.Scan { return store.Scan{} }},
	}
}

// how is by what means a design selects.
func (s selection) how(d *design) string {
	if how, ok := s.by[d.name]; ok {
		return how
	}
	if how, ok := s.by[""]; ok {
		return how
	}
	if s.name == "everything" {
		return "row range"
	}
	return "all is read"
}

// measure checks that all designs agree on every selection, then times them.
func (cfg LayoutConfig) measure(ctx context.Context, all []*design, r *report.Report) error {
	for _, s := range cfg.selections() {
		var want sum
		var steps []Step
		for i, d := range all {
			if s.families && len(d.families) == 1 {
				continue
			}
			got, stats, err := d.run(ctx, cfg.Store, s)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, d.name, err)
			}
			if i == 0 {
				want = got
			}
			if !s.families && got != want || got.points == 0 {
				return fmt.Errorf("%s: %s gives %d points with the sum %d, %s gives %d with %d", s.name, all[0].name, want.points, want.values, d.name, got.points, got.values)
			}
			name := fmt.Sprintf("%s: %s, by %s", s.name, d.name, s.how(d))
			r.Note("%s: %d points in %d cells of %d rows, %d bytes on the wire", name, got.points, stats.Cells, stats.Rows, stats.Bytes)
			steps = append(steps, Step{Name: name, Work: got.points, Unit: "points", Run: Timed(func(ctx context.Context, _ int) error {
				_, _, err := d.run(ctx, cfg.Store, s)
				return err
			})})
		}
		for i := range steps {
			if i > 0 {
				steps[i].Of = steps[0].Name
			}
		}
		figures, err := Interleave(ctx, steps, 1, cfg.Rounds, nil)
		if err != nil {
			return err
		}
		r.Figures = append(r.Figures, figures...)
	}
	return nil
}
