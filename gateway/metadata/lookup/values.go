package lookup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Values are values of a tag key, each once and by name.
type Values struct {
	Values []string
	More   bool // there are more, or there may be
	// Since is 0 if the values are those of the meta table, else the time, in seconds, from which on rows were
	// read: the meta table knows no series of the metric.
	Since int64
}

// recent are how many hours of rows are read where the meta table knows no series of a metric: the fewest in which it
// has a row.
var recent = []int64{2, 24, 30 * 24}

// recentRows bounds the rows that are read then.
const recentRows = 1_000_000

// errEnough ends a reading of rows.
var errEnough = errors.New("enough values")

// Values returns the values that a tag key has in the series that match, at most limit of them, which is positive.
// It reads the meta table as far as it must; which ones of more it returns is left open. If that has no series of the
// metric, because puts do not record them, it reads the keys of recent rows. Errors are those of Find.
func (f *Finder) Values(ctx context.Context, q Query, key string, limit int) (found Values, err error) {
	keyUID, err := f.cfg.Names.Resolve(ctx, encoding.UIDTagK, key)
	if err != nil {
		return found, err
	}
	if !slices.ContainsFunc(q.Tags, func(t Tag) bool { return t.Key != nil && *t.Key == key }) {
		q.Tags = append(slices.Clone(q.Tags), Tag{Key: &key})
	}
	w, err := f.resolve(ctx, q)
	if err != nil {
		return found, err
	}

	scans, meta := f.scans(w, true), true
	if w.metric != nil { // else all rows of the table would be read
		recorded, err := f.anyRow(ctx, scans)
		if errors.Is(err, store.ErrNoTable) { // nobody has to make it who does not record series
			err = nil
		}
		if err == nil && !recorded {
			scans, found.Since, err = f.recentScans(ctx, w)
			meta = false
		}
		if err != nil {
			return found, err
		}
	}
	v := &valueSet{finder: f, wanted: w, key: keyUID, limit: limit, seen: map[string]bool{}}
	if err = v.read(ctx, scans, meta); err != nil && !errors.Is(err, errEnough) {
		return found, err
	}

	found.More = err != nil
	found.Values, err = f.cfg.Names.Names(ctx, encoding.UIDTagV, v.uids)
	slices.Sort(found.Values)
	return found, err
}

// recentScans returns the scans of a metric's rows of the last hours, the fewest of recent in which it has one, and
// when they begin, in seconds; none and 0 if it has none.
func (f *Finder) recentScans(ctx context.Context, w *wanted) ([]store.Scan, int64, error) {
	for _, hours := range recent {
		scans, since := f.scans(w, false), encoding.Hour(f.cfg.Now().Unix())-(hours-1)*encoding.RowSeconds
		for i := range scans {
			scans[i].Start = binary.BigEndian.AppendUint32(scans[i].Start, encoding.KeyTime(since))
		}
		if any, err := f.anyRow(ctx, scans); any || err != nil {
			return scans, since, err
		}
	}
	return nil, 0, nil
}

// anyRow reports whether there is a row in the ranges of scans, whatever their filters.
func (f *Finder) anyRow(ctx context.Context, scans []store.Scan) (bool, error) {
	for _, s := range scans {
		s.Filter, s.BlockBytes = store.RowFilter{}, 1
		for _, err := range store.Rows(ctx, f.cfg.Store, s) {
			return err == nil, err
		}
	}
	return false, nil
}

// valueSet collects the values of a key.
type valueSet struct {
	finder *Finder
	wanted *wanted
	key    encoding.UID
	limit  int

	seen  map[string]bool
	uids  []encoding.UID
	pairs []encoding.TagPair
	rows  int // of the data table
}

// read adds the values in the rows of some scans. It returns errEnough if it left some out.
func (v *valueSet) read(ctx context.Context, scans []store.Scan, meta bool) error {
	for _, s := range scans {
		for tsuid, err := range v.finder.admitted(ctx, s, v.wanted, meta) {
			if err != nil {
				return err
			}
			if !meta {
				v.rows++
			}
			if v.rows > recentRows {
				return errEnough
			}
			if err := v.add(ctx, tsuid); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the value of a series.
func (v *valueSet) add(ctx context.Context, tsuid encoding.UID) error {
	schema := v.finder.cfg.Schema
	_, tags, _ := schema.SplitTSUID(tsuid) // it was checked when it was read
	v.pairs = schema.AppendPairs(v.pairs[:0], tags)
	at := slices.IndexFunc(v.pairs, func(p encoding.TagPair) bool { return bytes.Equal(p.K, v.key) })
	if at < 0 || v.seen[string(v.pairs[at].V)] {
		return nil
	}
	if len(v.uids) == v.limit {
		return errEnough
	}
	if err := memory.Reserve(ctx, tagBytes+tsuidBytes); err != nil {
		return err
	}
	v.seen[string(v.pairs[at].V)] = true
	v.uids = append(v.uids, bytes.Clone(v.pairs[at].V))
	return nil
}
