package meta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/store"
)

const (
	// parallelCounters is how many counters are incremented at a time: they share the
	// syncs of the store to disk.
	parallelCounters = 16
	// cellsPerWrite bounds the cells of one write, and newPerWrite those that are written
	// only if they are not there: the embedded store takes no other write in between.
	cellsPerWrite, newPerWrite = 1000, 256
)

// known is a set of series that have a TSMeta, bounded by memory and time: others may delete a
// TSMeta, as gateway retention run -meta does of series that have no points any more.
type known struct {
	most, bytes int
	set         map[string]struct{}
	since       time.Time // when it was emptied
}

// forgetKnown empties the set. Where points are counted there is none: a counter says itself whether it is new.
func (t *Tracker) forgetKnown() {
	if t.cfg.Flags.RealtimeTS && !t.cfg.Flags.Incrementing {
		t.known = newKnown(t.cfg.Bytes)
	}
}

func newKnown(most int) *known { return &known{most: most, set: map[string]struct{}{}} }

// knownFor is how long a series is known to have a TSMeta.
const knownFor = time.Hour

// forget empties a set that is too old.
func (k *known) forget(now time.Time) {
	if age := now.Sub(k.since); age < 0 || age >= knownFor {
		clear(k.set)
		k.bytes, k.since = 0, now
	}
}

func (k *known) has(tsuid string) bool { _, ok := k.set[tsuid]; return ok }

// add adds a series. A full set is emptied first; then each series costs one compare-and-set
// of its TSMeta again.
func (k *known) add(tsuid string) {
	cost := knownBytes + len(tsuid)
	if k.bytes+cost > k.most {
		clear(k.set)
		k.bytes = 0
	}
	k.set[tsuid] = struct{}{}
	k.bytes += cost
}

// knownBytes is about what a series takes on top of its TSUID.
const knownBytes = 64

// write records what was collected. It returns what could not be written. Only one call
// runs at a time.
func (t *Tracker) write(ctx context.Context, work *collected) (*collected, error) {
	if t.forget.Swap(false) {
		t.forgetKnown()
	}
	rest := &collected{}
	var errs []error
	// Each of the three is tried, also where another one fails.
	if err := t.writeUIDs(ctx, work.uids); err != nil {
		rest.uids = work.uids
		errs = append(errs, fmt.Errorf("UIDMeta of %d UIDs: %w", len(work.uids), err))
	}

	record := t.writeOnes
	switch {
	case t.cfg.Flags.RealtimeTS && t.cfg.Flags.Incrementing:
		record = t.countSeries
	case t.cfg.Flags.RealtimeTS:
		record = t.writeNewSeries
	}
	var err error
	if rest.series, err = record(ctx, work.series); err != nil {
		errs = append(errs, fmt.Errorf("%d of %d series: %w", len(rest.series), len(work.series), err))
	}

	if err := t.describe(ctx); err != nil {
		errs = append(errs, fmt.Errorf("trees, of which %d series wait: %w", len(t.described), err))
	}
	return rest, errors.Join(errs...)
}

// describeWithin bounds the time in which one write passes on described series: the counts of
// other series are not to wait for them.
const describeWithin = 10 * time.Second

// describe passes the series that got a TSMeta to Described, and keeps those that it has to
// get again.
func (t *Tracker) describe(ctx context.Context) (err error) {
	if t.untold > 0 {
		t.cfg.Log.Warn("more new series than can wait for trees; uid treesync puts them there", "series", t.untold)
		t.untold = 0
	}
	if len(t.described) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	t.described, err = t.cfg.Described(ctx, t.described)
	return err
}

// writeUIDs stores a new UIDMeta for each UID. Source: UIDMeta.storeNew.
func (t *Tracker) writeUIDs(ctx context.Context, uids []givenUID) error {
	mutations := make([]store.Mutation, len(uids))
	for i, u := range uids {
		m := encoding.UIDMeta{Type: u.kind.MetaType(), Created: u.created}
		mutations[i] = store.Mutation{
			Row:       u.uid,
			Family:    encoding.FamilyName,
			Qualifier: u.kind.MetaQualifier(),
			Value:     encoding.AppendUIDMeta(nil, m),
		}
	}
	return t.apply(ctx, t.cfg.UIDTable, mutations)
}

// apply writes cells, cellsPerWrite at a time.
func (t *Tracker) apply(ctx context.Context, table string, mutations []store.Mutation) error {
	for len(mutations) > 0 {
		n := min(len(mutations), cellsPerWrite)
		if err := t.cfg.Store.Apply(ctx, table, mutations[:n]); err != nil {
			return err
		}
		mutations = mutations[n:]
	}
	return nil
}

// writeOnes writes 1 into the counters of series. The counter says that the series
// exists, and the time of its cell says when the last point came.
func (t *Tracker) writeOnes(ctx context.Context, series []seen) ([]seen, error) {
	one := encoding.AppendCounter(nil, 1)
	mutations := make([]store.Mutation, len(series))
	for i, s := range series {
		mutations[i] = store.Mutation{
			Row:       []byte(s.tsuid),
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.MetaCounterQualifier),
			Value:     one,
		}
	}
	if err := t.apply(ctx, t.cfg.MetaTable, mutations); err != nil {
		return series, err
	}
	return nil, nil
}

// writeNewSeries makes a TSMeta for each series that has none. It returns the series that
// could not be written, and the first error.
func (t *Tracker) writeNewSeries(ctx context.Context, series []seen) (rest []seen, first error) {
	t.known.forget(t.cfg.Now())
	// A series that is not known counts as new: if it has a TSMeta, nothing is written.
	return t.makeTSMetas(ctx, slices.DeleteFunc(series, func(s seen) bool { return t.known.has(s.tsuid) }))
}

// makeTSMetas makes a TSMeta for each of some series, unless it has one. It returns the
// series that could not be written, and the first error.
func (t *Tracker) makeTSMetas(ctx context.Context, series []seen) (rest []seen, first error) {
	sortSeries(series)
	for part := range slices.Chunk(series, newPerWrite) {
		cells, values := make([]store.CellKey, len(part)), make([][]byte, len(part))
		for i, s := range part {
			cells[i] = store.CellKey{
				Row:       []byte(s.tsuid),
				Family:    encoding.FamilyName,
				Qualifier: []byte(encoding.TSMetaQualifier),
			}
			values[i] = encoding.AppendTSMeta(nil, newTSMeta(cells[i].Row, t.cfg.Now().Unix()))
		}

		made, err := store.PutAbsent(ctx, t.cfg.Store, t.cfg.MetaTable, cells, values)
		if err != nil {
			// A part that fails is no reason to leave the others.
			rest = append(rest, part...)
			first = cmp.Or(first, err)
			continue
		}
		for i := range part {
			t.addKnown(&part[i], made[i])
		}
	}
	return rest, first
}

// addKnown notes that a series has a TSMeta, and passes it to Described if this process has
// made it.
func (t *Tracker) addKnown(s *seen, made bool) {
	if t.known != nil {
		t.known.add(s.tsuid)
	}
	// Another process that made it updates its own trees. An earlier attempt may have made it and then failed.
	if t.cfg.Described != nil && (made || s.again) {
		t.tell(s.tsuid)
	}
}

// countSeries counts the points of series, and makes a TSMeta for the new ones. It returns
// the series that could not be written, and the first error.
func (t *Tracker) countSeries(ctx context.Context, series []seen) (rest []seen, first error) {
	sortSeries(series)
	for part := range slices.Chunk(series, newPerWrite) {
		created, uncounted, err := t.count(ctx, part)
		rest, first = append(rest, uncounted...), cmp.Or(first, err)

		undescribed, err := t.makeTSMetas(ctx, created)
		rest, first = append(rest, undescribed...), cmp.Or(first, err)
	}
	return rest, first
}

// sortSeries puts series into the order of their rows. A store finds the rows of one write the
// faster the closer they lie.
func sortSeries(series []seen) {
	slices.SortFunc(series, func(a, b seen) int { return cmp.Compare(a.tsuid, b.tsuid) })
}

// count adds the points of series to their counters. It returns the series that are new,
// without points because these are counted, those that could not be counted, and the first
// error.
func (t *Tracker) count(ctx context.Context, series []seen) (created, rest []seen, first error) {
	sums, errs := t.increment(ctx, series)
	for i, s := range series {
		if errs[i] != nil {
			rest, first = append(rest, s), cmp.Or(first, errs[i])
			continue
		}

		// If the counter was there before, its maker makes the TSMeta, too. An earlier
		// attempt of this process may have made it and then failed.
		isNew := sums[i] == s.points || s.again
		if s.points = 0; isNew {
			created = append(created, s)
		}
	}
	return created, rest, first
}

// increment adds the points of each series to its counter, and returns the new value or an
// error of each.
func (t *Tracker) increment(ctx context.Context, series []seen) ([]int64, []error) {
	cells, points, errs := make([]store.CellKey, len(series)), make([]int64, len(series)), make([]error, len(series))
	for i, s := range series {
		cells[i] = store.CellKey{
			Row:       []byte(s.tsuid),
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.MetaCounterQualifier),
		}
		points[i] = s.points
	}

	if all := t.cfg.Store.Features().IncrementAll; all != nil {
		if sums, err := all(ctx, t.cfg.MetaTable, cells, points); err == nil {
			return sums, errs
		}
		// Nothing has changed. One counter may be damaged; the others are incremented one by one.
	}

	sums := make([]int64, len(series))
	var work errgroup.Group
	work.SetLimit(parallelCounters)
	for i := range cells {
		work.Go(func() error {
			sums[i], errs[i] = t.cfg.Store.Increment(ctx, t.cfg.MetaTable, cells[i], points[i])
			return nil // a series that fails is no reason to leave the others
		})
	}
	_ = work.Wait()
	return sums, errs
}

// tell adds a series to those that Described gets.
func (t *Tracker) tell(tsuid string) {
	if (len(t.described)+1)*(seenBytes+len(tsuid)) > t.cfg.Bytes {
		t.untold++
		return
	}
	t.described = append(t.described, tsuid)
}
