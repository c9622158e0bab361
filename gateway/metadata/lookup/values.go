package lookup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/gateway/uid"
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

// recentTime bounds how long they are read: a filter may let none of very many pass.
const recentTime = 5 * time.Second

// What ends a reading of rows: there are more values than the limit, or none can follow.
var errEnough, errAll = errors.New("enough values"), errors.New("all wanted values")

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
	if found.More, err = v.readAll(ctx, scans, meta); err != nil {
		return found, err
	}
	found.Values, err = f.valueNames(ctx, v.uids)
	slices.Sort(found.Values)
	return found, err
}

// valueNames returns the names of values. It leaves out those whose names were deleted while rows have them.
func (f *Finder) valueNames(ctx context.Context, uids []encoding.UID) ([]string, error) {
	names, err := f.cfg.Names.Names(ctx, encoding.UIDTagV, uids)
	if nameless := (*uid.NoSuchIDError)(nil); !errors.As(err, &nameless) {
		return names, err
	}
	if len(uids) == 1 {
		return nil, nil
	}

	// Halves, because few of very many have no name.
	half := len(uids) / 2
	names, err = f.valueNames(ctx, uids[:half])
	if err != nil {
		return nil, err
	}
	more, err := f.valueNames(ctx, uids[half:])
	return append(names, more...), err
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
}

// readAll adds the values in the rows of some scans, and reports whether there may be more.
func (v *valueSet) readAll(ctx context.Context, scans []store.Scan, meta bool) (more bool, err error) {
	reading := ctx
	if !meta {
		var cancel context.CancelFunc
		reading, cancel = context.WithTimeout(ctx, recentTime)
		defer cancel()
	}
	err = v.read(reading, scans, meta)
	switch {
	case err == nil || errors.Is(err, errAll):
		return false, nil
	case errors.Is(err, errEnough) || reading.Err() != nil && ctx.Err() == nil:
		return true, nil
	}
	return false, err
}

// read adds the values in the rows of some scans. It may end with errEnough or errAll.
func (v *valueSet) read(ctx context.Context, scans []store.Scan, meta bool) error {
	for _, s := range scans {
		for tsuid, err := range v.finder.admitted(ctx, s, v.wanted, meta) {
			if err != nil {
				return err
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
	for _, want := range v.wanted.wants {
		if bytes.Equal(want.Name, v.key) && len(want.Values) == len(v.uids) {
			return errAll
		}
	}
	return nil
}
