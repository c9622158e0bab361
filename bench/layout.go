package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"downpour/bench/progress"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/pushdown/store"
)

// LayoutConfig says what Layout measures. A real HBase is the point of it; the
// embedded store keeps rows in the same order but has no filters to speak of.
type LayoutConfig struct {
	Store    Store
	Data     workload.Devops
	Rounds   int
	Settle   func(context.Context) error // brings the store to rest after loading
	Progress *progress.Progress
}

// design is one way to lay out the same points as rows.
//
//	tall       000001 654f7d0a 000001 000011         a row a point, no qualifier
//	hour rows  000001 654f7c00 000001 000011  00a7   OpenTSDB's: a cell a point
//	compacted  the same, all points of the hour in one cell
//	flat       000001 000001 000011           654f7d0a  a row a series, a cell a point
type design struct {
	name     string
	families []string
	// add writes the points of one series and hour.
	add func(d *design, h workload.Hour, step int) []store.Mutation
	// points calls f with time and value of every point of a cell.
	points func(key []byte, c store.Cell, f func(t, v int64)) error
}

func (d *design) table() string { return "bench-" + d.name }

var layoutMetric, layoutHost = []byte{0, 0, 1}, []byte{0, 0, 1}

// hostPair is the tag pair of host i.
func hostPair(i int) []byte {
	return append(append([]byte{}, layoutHost...), byte((i+1)>>16), byte((i+1)>>8), byte(i+1))
}

func timeKey(t int64) []byte {
	return binary.BigEndian.AppendUint32(append([]byte{}, layoutMetric...), uint32(t))
}

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// layoutValue is how all designs store a value.
func layoutValue(v int64) []byte { return encoding.AppendInt(nil, v) }

func readInt(b []byte) (int64, error) {
	v, err := encoding.ParseValue(encoding.Qualifier{Width: len(b)}, b)
	return v.Int(), err
}

func designs() []*design {
	return []*design{
		{name: "tall", families: []string{"t"}, add: addTall, points: pointsTall},
		{name: "hour-rows", families: []string{"t"}, add: addHours, points: pointsHours},
		{name: "hour-rows-two-families", families: []string{"t", "u"}, add: addHours, points: pointsHours},
		{name: "compacted", families: []string{"t"}, add: addCompacted, points: pointsHours},
		{name: "flat", families: []string{"t"}, add: addFlat, points: pointsFlat},
	}
}

func addTall(d *design, h workload.Hour, step int) (all []store.Mutation) {
	for i, v := range h.Values {
		t := h.Base + int64(i*step)
		all = append(all, store.Mutation{Row: join(timeKey(t), hostPair(h.Host)), Family: "t", Value: layoutValue(v), Timestamp: t * 1000})
	}
	return all
}

func addHours(d *design, h workload.Hour, step int) (all []store.Mutation) {
	row := join(timeKey(h.Base), hostPair(h.Host))
	for _, family := range d.families {
		for i, v := range h.Values {
			value := layoutValue(v)
			q := encoding.AppendQualifier(nil, encoding.Qualifier{OffsetMS: int32(i * step * 1000), Width: len(value)})
			all = append(all, store.Mutation{Row: row, Family: family, Qualifier: q, Value: value, Timestamp: (h.Base + int64(i*step)) * 1000})
		}
	}
	return all
}

func addCompacted(d *design, h workload.Hour, step int) []store.Mutation {
	var cell encoding.CellBuilder
	for i, v := range h.Values {
		value := layoutValue(v)
		cell.Add(encoding.Qualifier{OffsetMS: int32(i * step * 1000), Width: len(value)}, value)
	}
	q, value := cell.Cell()
	return []store.Mutation{{Row: join(timeKey(h.Base), hostPair(h.Host)), Family: "t", Qualifier: q, Value: value, Timestamp: h.Base * 1000}}
}

func addFlat(d *design, h workload.Hour, step int) (all []store.Mutation) {
	row := join(layoutMetric, hostPair(h.Host))
	for i, v := range h.Values {
		t := h.Base + int64(i*step)
		all = append(all, store.Mutation{Row: row, Family: "t", Qualifier: binary.BigEndian.AppendUint32(nil, uint32(t)), Value: layoutValue(v), Timestamp: t * 1000})
	}
	return all
}

func pointsTall(key []byte, c store.Cell, f func(t, v int64)) error {
	v, err := readInt(c.Value)
	f(int64(binary.BigEndian.Uint32(key[3:])), v)
	return err
}

func pointsFlat(_ []byte, c store.Cell, f func(t, v int64)) error {
	v, err := readInt(c.Value)
	f(int64(binary.BigEndian.Uint32(c.Qualifier)), v)
	return err
}

func pointsHours(key []byte, c store.Cell, f func(t, v int64)) error {
	base, rest, value := int64(binary.BigEndian.Uint32(key[3:])), c.Qualifier, c.Value
	for len(rest) > 0 {
		q, next, err := encoding.ParseQualifier(rest)
		if err != nil {
			return err
		}
		if len(value) < q.Width {
			return fmt.Errorf("row %x: a value of %d bytes, %d are left", key, q.Width, len(value))
		}
		v, err := readInt(value[:q.Width])
		if err != nil {
			return err
		}
		f(base+int64(q.OffsetMS)/1000, v)
		rest, value = next, value[q.Width:]
	}
	return nil
}

// Layout writes the same points in several designs and measures what it costs
// to select by row range, family, timestamp, qualifier and value. Every design
// must give the same points for a selection before any is timed.
func Layout(ctx context.Context, cfg LayoutConfig, r *report.Report) error {
	cfg.Data.MetricCount = 1
	if err := cfg.Data.Validate(); err != nil {
		return err
	}
	r.Data, r.Cache = cfg.Data.String(), "block cache warm"
	all := designs()
	for _, d := range all {
		if err := cfg.load(ctx, d); err != nil {
			return fmt.Errorf("layout %s: %w", d.name, err)
		}
	}
	if cfg.Settle != nil {
		if err := cfg.Settle(ctx); err != nil {
			return err
		}
	}
	return cfg.measure(ctx, all, r)
}

func (cfg LayoutConfig) load(ctx context.Context, d *design) error {
	spec := store.TableSpec{Name: d.table()}
	for _, f := range d.families {
		spec.Families = append(spec.Families, store.FamilySpec{Name: f, Attributes: map[string]string{"BLOOMFILTER": "ROW", "VERSIONS": "1", "DATA_BLOCK_ENCODING": "DIFF"}})
	}
	if err := cfg.Store.CreateTable(ctx, spec); err != nil {
		return err
	}
	var batch []store.Mutation
	for h := range cfg.Data.Hourly() {
		batch = append(batch, d.add(d, h, cfg.Data.Step)...)
		if len(batch) >= 2000 {
			if err := cfg.Store.Apply(ctx, d.table(), batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		cfg.Progress.Add(int64(len(h.Values)))
	}
	return cfg.Store.Apply(ctx, d.table(), batch)
}

// sum is what a selection came to: the same for every design.
type sum struct{ points, values int64 }

// run selects: what the store cannot choose is chosen here.
func (d *design) run(ctx context.Context, st store.Reader, s selection) (sum, store.ScanStats, error) {
	scan := s.scan(d)
	scan.Table = d.table()
	sc, err := st.Scan(ctx, scan)
	if err != nil {
		return sum{}, store.ScanStats{}, err
	}
	defer sc.Close()
	var total sum
	for {
		rows, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return total, sc.Stats(), nil
		}
		if err != nil {
			return total, sc.Stats(), err
		}
		for _, row := range rows {
			if !scan.Filter.Matches(row.Key) {
				continue // a store may return more than the filter admits
			}
			for _, c := range row.Cells {
				err := d.points(row.Key, c, func(t, v int64) {
					if s.wants(t, v) {
						total.points++
						total.values += v
					}
				})
				if err != nil {
					return total, sc.Stats(), err
				}
			}
		}
	}
}
