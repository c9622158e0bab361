package metasync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
)

// work makes what the series of the chunk lack, unless these are fewer than least: then the
// chunk waits for more.
func (y *syncer) work(ctx context.Context, least int) error {
	if len(y.chunk) < least {
		return nil
	}
	// Series with a UID without a name are left out, so names are looked up first.
	if err := y.learn(ctx); err != nil {
		return err
	}

	hours := map[string]int64{}
	for _, f := range y.chunk {
		if y.nameless(f.tsuid) {
			y.report.Skipped++
			continue
		}
		// A series may lie under two salts, if their number was changed.
		if was, ok := hours[string(f.tsuid)]; !ok || f.hour < was {
			hours[string(f.tsuid)] = f.hour
		}
	}
	y.chunk = y.chunk[:0]

	rows := slices.Sorted(maps.Keys(hours))
	cells, err := y.read(ctx, y.Meta, rows)
	if err != nil {
		return err
	}
	var changes [][]change
	for _, tsuid := range rows {
		if of := y.judgeRow(tsuid, hours[tsuid], cells); len(of) > 0 {
			changes = append(changes, of)
		}
	}
	if err := y.make(ctx, changes); err != nil {
		return err
	}

	if y.uidBytes > y.Bytes {
		return y.flush(ctx)
	}
	return nil
}

// judgeRow returns what is to be changed in the row of a series. The TSMeta goes first: a
// gateway takes a series with a counter for one that has both, and would never make it.
func (y *syncer) judgeRow(tsuid string, hour int64, cells wholetable.Cells) (changes []change) {
	text := cells.Value(tsuid, encoding.TSMetaQualifier)
	value, err := judgeSeries(encoding.UID(tsuid), hour, text)
	if err != nil {
		y.leave(err)
	}
	if value != nil {
		changes = append(changes, change{y.Meta, tsuid, encoding.TSMetaQualifier, text, value,
			counterOf(text, &y.report.MadeTSMeta, &y.report.ChangedTSMeta)})
	}
	if cells.Value(tsuid, encoding.MetaCounterQualifier) == nil {
		changes = append(changes, change{y.Meta, tsuid, encoding.MetaCounterQualifier, nil,
			encoding.AppendCounter(nil, 1), &y.report.Counters})
	}
	return changes
}

// counterOf returns what counts a change of an object, by whether there was one.
func counterOf(old []byte, made, changed *int64) *int64 {
	if old == nil {
		return made
	}
	return changed
}

// leave reports an object that cannot be read, and stays.
func (y *syncer) leave(err error) {
	y.report.Unreadable++
	y.Say("left as it is: " + err.Error())
}

// eachUID calls f with the UIDs of a series.
func (y *syncer) eachUID(tsuid encoding.UID, f func(key)) {
	width := y.Schema.MetricWidth
	f(key{encoding.UIDMetric, string(tsuid[:width])})
	for _, p := range y.Schema.AppendPairs(nil, tsuid[width:]) {
		f(key{encoding.UIDTagK, string(p.K)})
		f(key{encoding.UIDTagV, string(p.V)})
	}
}

// learn finds out which UIDs of the chunk have names, and notes the first hour of each.
func (y *syncer) learn(ctx context.Context) error {
	var fresh []key
	for _, f := range y.chunk {
		y.eachUID(f.tsuid, func(k key) {
			u := y.uids[k]
			if u == nil {
				u = &known{hour: f.hour}
				y.uids[k] = u
				y.uidBytes += 2*entryBytes + len(k.uid)
				fresh = append(fresh, k)
			}
			// The first row of a UID may be of a series that comes later in the table.
			u.hour = min(u.hour, f.hour)
		})
	}

	cells, err := y.read(ctx, y.UID, uidsOf(fresh))
	if err != nil {
		return err
	}
	for _, k := range fresh {
		if cells.Value(k.uid, k.kind.String()) != nil {
			continue
		}
		y.uids[k].nameless = true
		y.report.Nameless++
		y.Say(fmt.Sprintf("%s %s has no name: series with it are left out (uid fsck may know more)", k.kind,
			encoding.UID(k.uid)))
	}
	return nil
}

// nameless reports whether a UID of a series has no name. A list of objects that contains such
// a series would fail.
func (y *syncer) nameless(tsuid encoding.UID) (none bool) {
	y.eachUID(tsuid, func(k key) { none = none || y.uids[k].nameless })
	return none
}

// flush makes what the UIDs lack, and forgets them.
func (y *syncer) flush(ctx context.Context) error {
	// In the order of UIDs, because the names of all kinds of a UID are one row.
	keys := slices.SortedFunc(maps.Keys(y.uids), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.uid, b.uid), cmp.Compare(a.kind, b.kind))
	})
	done := 0
	for part := range slices.Chunk(keys, perChunk) {
		cells, err := y.read(ctx, y.UID, uidsOf(part))
		if err != nil {
			return err
		}

		var changes [][]change
		for _, k := range part {
			// A name may have been deleted since it was looked up.
			if cells.Value(k.uid, k.kind.String()) == nil {
				continue
			}
			qualifier := string(k.kind.MetaQualifier())
			text := cells.Value(k.uid, qualifier)
			value, err := judgeUID(k.kind, encoding.UID(k.uid), y.uids[k].hour, text)
			if err != nil {
				y.leave(err)
			}
			if value != nil {
				changes = append(changes, []change{
					{y.UID, k.uid, qualifier, text, value,
						counterOf(text, &y.report.MadeUIDMeta, &y.report.ChangedUIDMeta)}})
			}
		}
		if err := y.make(ctx, changes); err != nil {
			return err
		}
		done += len(part)
		y.Progress(fmt.Sprintf("%s: %d of %d UIDs done", y.UID, done, len(keys)))
	}

	clear(y.uids)
	y.uidBytes = 0
	return nil
}

// uidsOf returns the UIDs of keys, which are the rows of their names.
func uidsOf(keys []key) []string {
	rows := make([]string, len(keys))
	for i, k := range keys {
		rows[i] = k.uid
	}
	return rows
}

// read returns the cells of rows of the family "name". Rows may repeat.
func (y *syncer) read(ctx context.Context, table string, rows []string) (wholetable.Cells, error) {
	return wholetable.Lookup(ctx, y.Store, table, encoding.FamilyName, rows)
}

// parallel is how many cells are written at a time: they share the syncs of the store to disk.
const parallel = 16

// make makes changes, those of a row one after the other.
func (y *syncer) make(ctx context.Context, changes [][]change) error {
	// An embedded store that can stage writes is synced once, for all of them.
	to, staged := store.Atomic(y.Store), y.Store.Features().Staged
	if staged != nil {
		to = staged
	}

	work, during := errgroup.WithContext(ctx)
	work.SetLimit(parallel)
	for _, row := range changes {
		work.Go(func() error { return y.makeRow(during, to, row) })
	}
	if err := work.Wait(); err != nil || staged == nil {
		return err
	}
	return staged.Sync(ctx)
}

// makeRow makes the changes of a row. One whose cell has changed since it was read is left
// out: what another writer has put there stays.
func (y *syncer) makeRow(ctx context.Context, to store.Atomic, changes []change) error {
	for _, c := range changes {
		at := store.CellKey{Row: []byte(c.row), Family: encoding.FamilyName, Qualifier: []byte(c.qualifier)}
		ok, err := to.CompareAndPut(ctx, c.table, at, c.old, c.value)
		if err != nil {
			return err
		}
		if ok {
			atomic.AddInt64(c.count, 1)
		}
	}
	return nil
}
