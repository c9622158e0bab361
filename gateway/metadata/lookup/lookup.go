// Package lookup finds series by metric and tags, without reading their points: in the
// meta table, which has a row for each series, or in the data table, which has a row
// for each series and hour. The values of a tag come from recent rows where the meta table
// knows none.
// Source: TimeSeriesLookup, TSUIDQuery.
package lookup

import (
	"context"
	"fmt"
	"iter"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Names is the dictionary of names, which gateway/uid implements.
type Names interface {
	// Resolve returns the UID of a name, or a *uid.NoSuchNameError.
	Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error)
	// Names returns the names of UIDs, or a *uid.NoSuchIDError.
	Names(ctx context.Context, kind encoding.UIDKind, uids []encoding.UID) ([]string, error)
}

// Config says where series are found.
type Config struct {
	Store     store.Reader
	DataTable string
	MetaTable string
	Schema    encoding.Schema
	Names     Names
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Finder finds series. It may be used by several goroutines.
type Finder struct{ cfg Config }

// New returns a finder over the configured tables.
func New(cfg Config) *Finder {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Finder{cfg}
}

// Any is the key or value that matches all.
const Any = "*"

// Tag is a wanted tag. A key or value that is nil or Any matches all.
type Tag struct {
	Key   *string `json:"key" jackson:"strict"`
	Value *string `json:"value"`
}

// open reports whether a key or value matches all.
func open(s *string) bool { return s == nil || *s == Any }

// Query selects series.
type Query struct {
	Metric *string // nil, "" and Any match all metrics
	Tags   []Tag
	// Limit bounds the series found. With 0 or less all are found, at most MaxSeries.
	Limit int
	// Meta selects the meta table instead of the data table.
	Meta bool
}

// MaxSeries and MaxBytes bound what one lookup returns: the number of series, and the
// memory that they take with their names.
const (
	MaxSeries = 1_000_000
	MaxBytes  = 256 << 20
)

// TooManyError is returned for a lookup that finds more than MaxSeries or MaxBytes.
type TooManyError struct{}

// Error names both bounds.
func (TooManyError) Error() string {
	return fmt.Sprintf("more than %d series match, or %d MiB of them: set a limit", MaxSeries, MaxBytes>>20)
}

// Series is a series that was found.
type Series struct {
	TSUID  encoding.UID      `json:"tsuid"`
	Metric string            `json:"metric"`
	Tags   map[string]string `json:"tags"`
}

// Find returns the series that match, in the order of their rows. In the data table, as
// in OpenTSDB, a series is found once for each of its hours, and with salted keys each
// bucket of a metric has its share of the limit. Errors are
// *uid.NoSuchNameError for a name of the query, *uid.NoSuchIDError for a UID
// found, TooManyError, or the store's.
func (f *Finder) Find(ctx context.Context, q Query) ([]Series, error) {
	w, err := f.resolve(ctx, q)
	if err != nil {
		return nil, err
	}

	var tsuids []encoding.UID
	for _, s := range f.scans(w, q.Meta) {
		found, err := f.scan(ctx, s, w, f.limit(q, w), q.Meta)
		if err != nil {
			return nil, err
		}
		if tsuids = append(tsuids, found...); len(tsuids) > MaxSeries {
			return nil, TooManyError{}
		}
	}

	return f.nameAll(ctx, tsuids)
}

// limit returns the limit of one scan, 0 for none. Source:
// TimeSeriesLookup.lookupAsync.
func (f *Finder) limit(q Query, w *wanted) int {
	switch {
	case q.Limit <= 0:
		return 0
	case q.Meta || f.cfg.Schema.SaltWidth == 0 || w.metric == nil: // one scan has it all
		return q.Limit
	}
	return max(1, q.Limit/f.cfg.Schema.Buckets())
}

// scans returns the scans of a lookup: one for each salt bucket if a metric is looked up
// in the data table, otherwise one.
func (f *Finder) scans(w *wanted, meta bool) []store.Scan {
	s := store.Scan{Table: f.cfg.MetaTable, Family: encoding.FamilyName, KeysOnly: true}
	head := f.cfg.Schema.MetricWidth
	if !meta {
		s.Table, s.Family = f.cfg.DataTable, encoding.FamilyData
		head = f.cfg.Schema.HeadWidth()
	}
	s.Filter.Pattern = w.pattern(f.cfg.Schema, head)

	// One scan finds the series of all metrics, whatever their salt.
	if w.metric == nil {
		return []store.Scan{s}
	}
	if meta {
		s.Start, s.Stop = w.metric, encoding.PrefixEnd(w.metric)
		return []store.Scan{s}
	}

	var out []store.Scan
	for b := range f.cfg.Schema.Buckets() {
		s.Start = append(f.cfg.Schema.AppendSalt(nil, b), w.metric...)
		s.Stop = encoding.PrefixEnd(s.Start)
		out = append(out, s)
	}
	return out
}

// scan returns the TSUIDs of the rows that w admits, up to limit (0 for none), or one
// more than MaxSeries, so that Find sees that there are too many.
func (f *Finder) scan(
	ctx context.Context, s store.Scan, w *wanted, limit int, meta bool,
) (out []encoding.UID, err error) {
	for tsuid, err := range f.admitted(ctx, s, w, meta) {
		if err != nil {
			return nil, err
		}
		if err := memory.Reserve(ctx, int64(tsuidBytes+cap(tsuid))); err != nil {
			return nil, err
		}
		if out = append(out, tsuid); len(out) == limit || len(out) > MaxSeries {
			return out, nil
		}
	}
	return out, nil
}

// admitted yields the TSUID of each row that w admits. The slice is the caller's.
func (f *Finder) admitted(ctx context.Context, s store.Scan, w *wanted, meta bool) iter.Seq2[encoding.UID, error] {
	return func(yield func(encoding.UID, error) bool) {
		for r, err := range store.Rows(ctx, f.cfg.Store, s) {
			if err != nil {
				yield(nil, fmt.Errorf("lookup in table %s: %w", s.Table, err))
				return
			}
			tsuid, ok := f.tsuid(r.Key, meta)
			// The store's filter does not know wanted values under any key, and may let other rows pass.
			if ok && w.admits(f.cfg.Schema, tsuid) && !yield(tsuid, nil) {
				return
			}
		}
	}
}

// tsuid returns the TSUID of a row. ok is false for a row of no series, such as that of
// a global annotation.
func (f *Finder) tsuid(key []byte, meta bool) (encoding.UID, bool) {
	s := f.cfg.Schema
	if meta {
		_, _, err := s.SplitTSUID(key)
		return append(encoding.UID{}, key...), err == nil
	}
	k, err := s.ParseRowKey(key)
	if err != nil || len(k.Tags) == 0 {
		return nil, false
	}
	return s.AppendTSUID(nil, key), true
}

// Name returns a series with its names.
func (f *Finder) Name(ctx context.Context, tsuid encoding.UID) (Series, error) {
	if _, _, err := f.cfg.Schema.SplitTSUID(tsuid); err != nil {
		return Series{}, err
	}

	series := make([]Series, 1)
	err := f.nameTogether(ctx, []encoding.UID{tsuid}, series)
	return series[0], err
}

// namedAtOnce is how many series nameAll looks up together.
const namedAtOnce = 1000

// Estimates of memory.
const (
	seriesBytes = 150 // a series without its TSUID and names
	tagBytes    = 80  // a tag without its names
	tsuidBytes  = 48  // a TSUID without its bytes, in a list that grows by doubling
)

// copiesInMemory is how often a series is in memory: as it was found, and in the answer.
const copiesInMemory = 2

// nameAll returns series with their names. It looks up namedAtOnce of them at a time.
func (f *Finder) nameAll(ctx context.Context, tsuids []encoding.UID) ([]Series, error) {
	out := make([]Series, len(tsuids))
	bytes := 0
	for from := 0; from < len(out); from += namedAtOnce {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		part := out[from:min(from+namedAtOnce, len(out))]
		if err := f.nameTogether(ctx, tsuids[from:from+len(part)], part); err != nil {
			return nil, err
		}

		// Reserved for each part, so that a request that finds too much ends early.
		before := bytes
		for i := range part {
			bytes += part[i].bytes()
		}
		if err := memory.Reserve(ctx, int64(copiesInMemory*(bytes-before))); err != nil {
			return nil, err
		}
		if bytes > MaxBytes {
			return nil, TooManyError{}
		}
	}
	return out, nil
}

// bytes estimates the memory that a series takes.
func (s *Series) bytes() int {
	n := seriesBytes + len(s.TSUID) + len(s.Metric)
	for k, v := range s.Tags {
		n += tagBytes + len(k) + len(v)
	}
	return n
}

// nameTogether fills in the names of series with one look-up of each kind.
func (f *Finder) nameTogether(ctx context.Context, tsuids []encoding.UID, out []Series) error {
	var uids [3][]encoding.UID
	for i, u := range tsuids {
		// All callers have checked that these are TSUIDs.
		metric, tags, _ := f.cfg.Schema.SplitTSUID(u)
		out[i].TSUID = u
		uids[encoding.UIDMetric] = append(uids[encoding.UIDMetric], metric)
		for _, p := range f.cfg.Schema.AppendPairs(nil, tags) {
			uids[encoding.UIDTagK] = append(uids[encoding.UIDTagK], p.K)
			uids[encoding.UIDTagV] = append(uids[encoding.UIDTagV], p.V)
		}
	}

	var names [3][]string
	for kind := range uids {
		var err error
		if names[kind], err = f.cfg.Names.Names(ctx, encoding.UIDKind(kind), uids[kind]); err != nil {
			return err
		}
	}

	// The names of tags stand in the order in which the tags were collected above.
	next := 0
	for i, u := range tsuids {
		out[i].Metric, out[i].Tags = names[encoding.UIDMetric][i], map[string]string{}
		for range (len(u) - f.cfg.Schema.MetricWidth) / f.cfg.Schema.TagWidth() {
			out[i].Tags[names[encoding.UIDTagK][next]] = names[encoding.UIDTagV][next]
			next++
		}
	}
	return nil
}
