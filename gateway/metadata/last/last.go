// Package last finds the newest point of a series without a scan of its history: in
// the hour in which its counter in the meta table was last written, or by reading hour
// by hour back from now.
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
	// Counted is set if puts record series in the meta table. Without it a series that
	// is given by its TSUID is read in the current hour.
	Counted bool
	// FixDuplicates makes the newer of two values of one time count.
	// Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Points finds newest points. It may be used by several goroutines.
type Points struct{ cfg Config }

// New returns a finder of newest points.
func New(cfg Config) *Points {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Points{cfg}
}

// Sub selects series: by TSUID, or by metric and tags if there is none.
type Sub struct {
	TSUIDs []encoding.UID
	Metric string
	Tags   map[string]string
}

// MaxBack bounds Query.Back.
const MaxBack = 24 * 366

// Query asks for the newest points of series.
type Query struct {
	Subs []Sub
	// Back is how many hours before the current one are read. With 0 the counters of
	// the series say which hour to read. Metric and tags then select all series that
	// have these tags; otherwise they are all tags of one series.
	Back int
}

// Point is the newest point of a series.
type Point struct {
	TSUID encoding.UID
	Time  int64 // ms
	Value encoding.Value
}

// pointBytes is about what a point takes in the list and in the answer, with the names
// of its series.
const pointBytes = 600

// RefusedError is returned for a query that cannot be answered, with OpenTSDB's text.
type RefusedError struct{ Text string }

// Error returns the text.
func (e *RefusedError) Error() string { return e.Text }

// Find returns the newest points of the series, in the order of the query, without the
// series that have none in the hours read. Errors are *RefusedError,
// *uid.NoSuchNameError, that of a corrupt row, or the store's.
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

		found, err := p.findSub(ctx, s, q.Back)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > MaxSeries {
			return nil, tooMany()
		}
	}
	return out, nil
}

// findSub finds the newest points of one sub-query: by reading back from now if back is
// above 0, otherwise by the counters of the meta table or, if there are none and TSUIDs are
// given, in the current hour.
func (p *Points) findSub(ctx context.Context, s Sub, back int) ([]Point, error) {
	switch {
	case len(s.TSUIDs) > 0:
		return p.findTSUIDs(ctx, s.TSUIDs, back)
	case s.Metric == "":
		return nil, &RefusedError{"Metric cannot be null or empty"}
	// Reading back needs the key of a single series.
	case back > 0 && len(s.Tags) == 0:
		return nil, &RefusedError{"Tags cannot be null or empty when getting a TSUID"}
	case back > 0:
		tsuid, err := p.cfg.Find.TSUID(ctx, s.Metric, s.Tags)
		if err != nil {
			return nil, err
		}
		return p.findTSUIDs(ctx, []encoding.UID{tsuid}, back)
	}
	return p.findCounted(ctx, s)
}

// findTSUIDs finds the newest points of series by their TSUIDs.
func (p *Points) findTSUIDs(ctx context.Context, tsuids []encoding.UID, back int) ([]Point, error) {
	var out []Point
	for _, u := range tsuids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, _, err := p.cfg.Schema.SplitTSUID(u); err != nil {
			return nil, &RefusedError{"TSUID must not be null and must have a metric and at least one tag pair"}
		}

		point, err := p.findTSUID(ctx, u, back)
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

// findTSUID finds the newest point of a series, or returns nil.
func (p *Points) findTSUID(ctx context.Context, tsuid encoding.UID, back int) (*Point, error) {
	// With back 0 and no counters, the current hour alone is read.
	if back > 0 || !p.cfg.Counted {
		return p.readBack(ctx, tsuid, p.cfg.Now().Unix(), back)
	}

	rows, err := p.cfg.Store.Get(ctx, p.cfg.MetaTable, encoding.FamilyName, [][]byte{tsuid})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	written, ok := counterTime(rows[0])
	// Only the time of the counter gives the hour to read.
	if !ok {
		return nil, nil
	}
	return p.byCounter(ctx, tsuid, written)
}

// byCounter reads the hour in which a counter was written, and the hour before if that
// one is empty: a counter is written some time after its point, perhaps in the next
// hour. OpenTSDB reads only one hour and then finds nothing.
func (p *Points) byCounter(ctx context.Context, tsuid encoding.UID, written int64) (*Point, error) {
	return p.readBack(ctx, tsuid, written, 1)
}

// counterTime returns the time at which the counter of a series was written, in
// seconds.
func counterTime(r store.Row) (int64, bool) {
	for _, c := range r.Cells {
		if string(c.Qualifier) == encoding.MetaCounterQualifier {
			return c.Timestamp / 1000, true
		}
	}
	return 0, false
}

// MaxSeries bounds the series of one query.
const MaxSeries = 100_000

func tooMany() error {
	return &RefusedError{fmt.Sprintf("More than %d series match: name some tags", MaxSeries)}
}

// findCounted finds the newest points of the series of a metric by their counters.
func (p *Points) findCounted(ctx context.Context, s Sub) ([]Point, error) {
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

// counter is a series and the time at which its counter was written, in seconds.
type counter struct {
	tsuid   encoding.UID
	written int64
}

// counters reads the counters of the series that a sub-query selects.
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

		// A store may return rows that its filter does not admit.
		if written, ok := counterTime(r); ok && filter.Matches(r.Key) {
			out = append(out, counter{append(encoding.UID{}, r.Key...), written})
		}
		if len(out) > MaxSeries {
			return nil, tooMany()
		}
	}
	return out, nil
}

// rowsPerRead is how many hours readBack reads at a time.
const rowsPerRead = 24

// readBack reads the hour of a time in seconds, and up to back hours before it, until
// one has a point. It returns nil if none has.
func (p *Points) readBack(ctx context.Context, tsuid encoding.UID, from int64, back int) (*Point, error) {
	metric, tags, err := p.cfg.Schema.SplitTSUID(tsuid)
	if err != nil {
		return nil, err
	}

	if from < 0 || from > encoding.MaxTime {
		return nil, nil // no row holds such a time, and so no key names it
	}
	hour := encoding.Hour(from)
	for left := back + 1; left > 0 && hour >= 0; left -= rowsPerRead {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		var keys [][]byte
		for range min(left, rowsPerRead) {
			// The first hours of 1970 have none before them.
			if hour >= 0 {
				keys = append(keys, p.cfg.Schema.AppendRowKey(nil, metric, encoding.KeyTime(hour), tags))
			}
			hour -= encoding.RowSeconds
		}

		rows, err := p.cfg.Store.Get(ctx, p.cfg.DataTable, encoding.FamilyData, keys)
		if err != nil {
			return nil, err
		}

		// The rows come in the order of the keys, the newest hour first.
		for _, r := range rows {
			if point, err := p.lastOf(r, tsuid); point != nil || err != nil {
				return point, err
			}
		}
	}
	return nil, nil
}

// lastOf returns the last point of a row, nil if the row has no points, only annotations
// or histograms.
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
