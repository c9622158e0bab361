// Package last answers which point of a series is its newest, without a scan of
// its history: by the hour in which its counter in the meta table was last
// written, or by looking back hour by hour from now.
// Source: TSUIDQuery, QueryRpc.handleLastDataPointQuery.
package last

import (
	"context"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/metadata/lookup"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Config says where points and counters are kept.
type Config struct {
	Store     store.Reader
	DataTable string
	MetaTable string
	Schema    encoding.Schema
	Find      *lookup.Finder
	// Counted tells that puts record series in the meta table. Without it a
	// series given by its TSUID is looked for in the current hour.
	Counted bool
	// FixDuplicates lets the newest of two values of one time win.
	// Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Points finds newest points. It is for many goroutines.
type Points struct{ cfg Config }

// New returns a finder of newest points.
func New(cfg Config) *Points {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Points{cfg}
}

// Sub asks for series: by TSUID, or else by metric and tags.
type Sub struct {
	TSUIDs []encoding.UID
	Metric string
	Tags   map[string]string
}

// MaxBack bounds how many hours are looked back.
const MaxBack = 24 * 366

// Query asks for the newest points of series.
type Query struct {
	Subs []Sub
	// Back is how many hours before the current one are looked at. With 0 the
	// series' counters say which hour to read; metric and tags are then any
	// series that has these tags, otherwise exactly one.
	Back int
}

// Point is the newest point of a series.
type Point struct {
	TSUID encoding.UID
	Time  int64 // ms
	Value encoding.Value
}

// pointBytes is what a point takes in the list and in the answer, with its series'
// names, about.
const pointBytes = 600

// RefusedError is the refusal of a query, in OpenTSDB's words.
type RefusedError struct{ Text string }

// Error is the text.
func (e *RefusedError) Error() string { return e.Text }

// Find returns the newest points of those series that have one where it is
// looked for, in the order of the query. Errors are *RefusedError,
// *uid.NoSuchNameError, what a corrupt row gives, or the store's.
func (p *Points) Find(ctx context.Context, q Query) ([]Point, error) {
	if q.Back < 0 {
		return nil, &RefusedError{"Backscan must be zero or a positive number"}
	}
	if q.Back > MaxBack {
		return nil, &RefusedError{fmt.Sprintf("back_scan of %d hours, at most %d", q.Back, MaxBack)}
	}
	var out []Point
	for _, s := range q.Subs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := p.sub(ctx, s, q.Back)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > MaxSeries {
			return nil, tooMany()
		}
	}
	return out, nil
}

func (p *Points) sub(ctx context.Context, s Sub, back int) ([]Point, error) {
	switch {
	case len(s.TSUIDs) > 0:
		return p.series(ctx, s.TSUIDs, back)
	case s.Metric == "":
		return nil, &RefusedError{"Metric cannot be null or empty"}
	case back > 0 && len(s.Tags) == 0:
		return nil, &RefusedError{"Tags cannot be null or empty when getting a TSUID"}
	case back > 0:
		tsuid, err := p.cfg.Find.TSUID(ctx, s.Metric, s.Tags)
		if err != nil {
			return nil, err
		}
		return p.series(ctx, []encoding.UID{tsuid}, back)
	}
	return p.counted(ctx, s)
}

// series finds the newest points of series known by TSUID.
func (p *Points) series(ctx context.Context, tsuids []encoding.UID, back int) ([]Point, error) {
	var out []Point
	for _, u := range tsuids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, _, err := p.cfg.Schema.SplitTSUID(u); err != nil {
			return nil, &RefusedError{"TSUID must not be null and must have a metric and at least one tag pair"}
		}
		point, err := p.oneSeries(ctx, u, back)
		if err != nil {
			return nil, err
		}
		if point == nil {
			continue
		}
		if err := memory.Reserve(ctx, pointBytes); err != nil {
			return nil, err
		}
		out = append(out, *point)
	}
	return out, nil
}

func (p *Points) oneSeries(ctx context.Context, tsuid encoding.UID, back int) (*Point, error) {
	if back > 0 || !p.cfg.Counted {
		return p.newest(ctx, tsuid, p.cfg.Now().Unix(), back)
	}
	rows, err := p.cfg.Store.Get(ctx, p.cfg.MetaTable, encoding.FamilyName, [][]byte{tsuid})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	written, ok := counterTime(rows[0])
	if !ok {
		return nil, nil
	}
	return p.byCounter(ctx, tsuid, written)
}

// byCounter reads the hour in which a counter was written, and the one before
// when that is empty: counters are written some time after the points, perhaps
// in the next hour. OpenTSDB, which reads one hour, then finds nothing.
func (p *Points) byCounter(ctx context.Context, tsuid encoding.UID, written int64) (*Point, error) {
	return p.newest(ctx, tsuid, written, 1)
}

// counterTime is when a series' counter was written, in seconds.
func counterTime(r store.Row) (int64, bool) {
	for _, c := range r.Cells {
		if string(c.Qualifier) == encoding.MetaCounterQualifier {
			return c.Timestamp / 1000, true
		}
	}
	return 0, false
}

// MaxSeries bounds the series that the newest points of one query are found for.
const MaxSeries = 100_000

func tooMany() error {
	return &RefusedError{fmt.Sprintf("More than %d series match: name some tags", MaxSeries)}
}

// counted finds the series of a metric by their counters.
func (p *Points) counted(ctx context.Context, s Sub) ([]Point, error) {
	series, err := p.counters(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []Point
	for _, c := range series {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		point, err := p.byCounter(ctx, c.tsuid, c.written)
		if err != nil {
			return nil, err
		}
		if point == nil {
			continue
		}
		if err := memory.Reserve(ctx, pointBytes); err != nil {
			return nil, err
		}
		out = append(out, *point)
	}
	return out, nil
}

// counter is a series and when it was last counted, in seconds.
type counter struct {
	tsuid   encoding.UID
	written int64
}

func (p *Points) counters(ctx context.Context, s Sub) (out []counter, err error) {
	keys, filter, err := p.cfg.Find.MetaRows(ctx, s.Metric, s.Tags)
	if err != nil {
		return nil, err
	}
	column := []byte(encoding.MetaCounterQualifier)
	scan := store.Scan{Table: p.cfg.MetaTable, Family: encoding.FamilyName, Start: keys.Start, Stop: keys.Stop,
		Filter: filter, Columns: []store.KeyRange{{Start: column, Stop: append(column, 0)}}}
	for r, err := range store.Rows(ctx, p.cfg.Store, scan) {
		if err != nil {
			return nil, err
		}
		if written, ok := counterTime(r); ok && filter.Matches(r.Key) {
			out = append(out, counter{append(encoding.UID{}, r.Key...), written})
		}
		if len(out) > MaxSeries {
			return nil, tooMany()
		}
	}
	return out, nil
}

// rowsPerRead is how many hours are read at a time when looking back.
const rowsPerRead = 24

// newest reads the hour that holds a time, in seconds, and back hours before it,
// until one has a point.
func (p *Points) newest(ctx context.Context, tsuid encoding.UID, from int64, back int) (*Point, error) {
	metric, tags, err := p.cfg.Schema.SplitTSUID(tsuid)
	if err != nil {
		return nil, err
	}
	hour := int64(encoding.BaseTime(from))
	for left := back + 1; left > 0 && hour >= 0; left -= rowsPerRead {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var keys [][]byte
		for range min(left, rowsPerRead) {
			if hour >= 0 {
				keys = append(keys, p.cfg.Schema.AppendRowKey(nil, metric, uint32(hour), tags))
			}
			hour -= encoding.RowSeconds
		}
		rows, err := p.cfg.Store.Get(ctx, p.cfg.DataTable, encoding.FamilyData, keys)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if point, err := p.lastOf(r, tsuid); point != nil || err != nil {
				return point, err
			}
		}
	}
	return nil, nil
}

// lastOf is the last point of a row, nil if it holds only notes.
func (p *Points) lastOf(r store.Row, tsuid encoding.UID) (*Point, error) {
	k, err := p.cfg.Schema.ParseRowKey(r.Key)
	if err != nil {
		return nil, err
	}
	d := encoding.RowDecoder{FixDuplicates: p.cfg.FixDuplicates}
	d.Reset(k.BaseTime)
	for _, c := range r.Cells {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return nil, fmt.Errorf("row % X: %w", r.Key, err)
		}
	}
	var points encoding.Points
	if err := d.Finish(&points); err != nil {
		return nil, fmt.Errorf("row % X: %w", r.Key, err)
	}
	if points.Len() == 0 {
		return nil, nil
	}
	at, v := points.At(points.Len() - 1)
	return &Point{TSUID: tsuid, Time: at, Value: v}, nil
}
