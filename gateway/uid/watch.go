package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Other processes change names too: gateways and tools, and OpenTSDB. Downpour's processes count
// each change in a cell of the UID table,
//
//	00  id:downpour_changes  8-byte counter
//
// which every gateway reads each second. When the counter has changed, and every few
// minutes in any case, a gateway reads everything that it has cached again, a thousand
// mappings at a time, and drops what has changed. So most of the cache is kept, even if
// it is large.
//
// The series of puts, and live queries, may still hold mappings that are no longer in the cache.
// They compare the generation. So if mappings have left the cache uncompared, a generation begins
// as soon as a process has announced a change, and now and then in any case, because OpenTSDB
// announces nothing.
const (
	pollEvery  = time.Second
	checkEvery = 5 * time.Minute
	// renewEvery is the time between two generations for the sake of mappings that did
	// not fit the cache. All series of puts are resolved again, in a large system much
	// of them from the table.
	renewEvery = time.Hour
	// KnownWithin is the time after which the other processes know of a change, if
	// they can read the table.
	KnownWithin = 15 * time.Second
)

// Tell announces to other processes that names have changed in the table.
func (d *Dictionary) Tell(ctx context.Context) error {
	if !d.cfg.Shared {
		return nil
	}
	if _, err := d.cfg.Store.Increment(ctx, d.cfg.Table, changes, 1); err != nil {
		return fmt.Errorf("uid: cannot announce a change to other processes: %w", err)
	}
	return nil
}

var changes = store.CellKey{
	Row:       encoding.CounterRow,
	Family:    encoding.FamilyID,
	Qualifier: []byte(encoding.ChangesQualifier),
}

// Watch finds changes of other processes, until ctx ends.
func (d *Dictionary) Watch(ctx context.Context) {
	if !d.cfg.Shared {
		return
	}

	w := watcher{d: d, seen: -1, fine: true}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}

		// Only the first of several failures in a row is logged.
		err := w.poll(ctx)
		if err != nil && w.fine && ctx.Err() == nil {
			d.log().Warn("cannot see changes of names by other processes", "err", err)
		}
		w.fine = err == nil
	}
}

// watcher is the state of Watch.
type watcher struct {
	d       *Dictionary
	seen    int64     // the counter's value at the last check; -1 before the first
	checked time.Time // when the last check began
	renewed time.Time // when a generation was begun because of mappings that were not compared
	fine    bool      // whether the last poll succeeded; at first, to log a failure from the start
}

// poll checks the cache if the counter has changed, or if the last check is long
// ago.
func (w *watcher) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	n, err := w.d.changes(ctx)
	if err != nil || n == w.seen && time.Since(w.checked) < checkEvery {
		return err
	}

	began := time.Now()
	announced := w.seen >= 0 && n != w.seen
	// A change may concern mappings that have left the cache. Before the check, which reads the
	// whole cache: a process that deletes a name waits only KnownWithin.
	if announced && w.d.evicted.Load() {
		w.renew(changedByOthers)
	}
	if err := w.d.Check(ctx); err != nil {
		return err
	}
	w.renewChecked(announced)

	// The first read counts, too: earlier changes may concern this process's UIDs.
	tell := n != w.seen
	// As they were before the check: changes during it are found by the next poll.
	w.seen, w.checked = n, began
	if tell && w.d.cfg.OnChange != nil {
		w.d.cfg.OnChange()
	}
	return nil
}

// renewChecked begins a generation after a check if mappings have left the cache that may have changed
// before.
func (w *watcher) renewChecked(announced bool) {
	d := w.d
	switch {
	// A name got another UID, or a UID another name, and this process has not done that.
	case d.replaced.Swap(false):
		w.renew(changedByOthers)
	// Mappings that were cached when the change was announced, and left before they were checked.
	case announced && d.evicted.Load():
		w.renew(changedByOthers)
	// Mappings that OpenTSDB may have changed without announcement.
	case d.evicted.Load() && time.Since(w.renewed) >= renewEvery:
		w.renew(perhapsUnchanged)
	}
}

// renew begins a generation, in which all mappings that have left the cache are resolved again.
func (w *watcher) renew(why reason) {
	if w.d.evicted.Swap(false) {
		w.renewed = time.Now()
	}
	w.d.outdate(why)
}

// reason is why a generation begins.
type reason bool

const (
	changedByOthers  reason = true
	perhapsUnchanged reason = false // no change was announced or seen
)

// outdate begins a generation: holders of older mappings resolve them again.
func (d *Dictionary) outdate(why reason) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	now := d.generations.now.Add(1)
	// Holds of older generations that last long now end in ErrLate, see Hold.
	if why == changedByOthers {
		d.generations.external.Store(now)
	}
}

// changes returns the counter of changes.
func (d *Dictionary) changes(ctx context.Context) (int64, error) {
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, changes.Family, [][]byte{changes.Row})
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) == encoding.ChangesQualifier {
				return encoding.ParseCounter(c.Value)
			}
		}
	}
	return 0, nil // no change was announced yet
}

// Check reads everything that is cached again and drops what has changed.
func (d *Dictionary) Check(ctx context.Context) error {
	return errors.Join(inParts(ctx, d.forward.All(), d.compareForward), inParts(ctx, d.reverse.All(), d.compareReverse))
}

// inParts calls compare with all mappings, of one kind and at most namesPerRead at a
// time.
func inParts[V any](ctx context.Context, all iter.Seq2[nameKey, V],
	compare func(context.Context, encoding.UIDKind, map[string]V) error) error {
	parts := [3]map[string]V{{}, {}, {}}
	for k, v := range all {
		part := parts[k.kind]
		if part[k.name] = v; len(part) < namesPerRead {
			continue
		}
		if err := compare(ctx, k.kind, part); err != nil {
			return err
		}
		clear(part)
	}

	for kind, part := range parts {
		if len(part) == 0 {
			continue
		}
		if err := compare(ctx, encoding.UIDKind(kind), part); err != nil {
			return err
		}
	}
	return nil
}

// compareForward drops names that no longer have a UID, or have another one.
func (d *Dictionary) compareForward(ctx context.Context, kind encoding.UIDKind, cached map[string]encoding.UID) error {
	names := make([]string, 0, len(cached))
	for name := range cached {
		names = append(names, name)
	}
	now, err := d.readForward(ctx, kind, rowsOf(names))
	if err != nil {
		return err
	}

	var gone []string
	var uids []encoding.UID
	for name, u := range cached {
		if string(now[name]) != string(u) {
			gone, uids = append(gone, name), append(uids, u)
		}
	}
	d.changedElsewhere(kind, gone, uids)
	return nil
}

// compareReverse drops UIDs that no longer have a name, or have another one.
func (d *Dictionary) compareReverse(ctx context.Context, kind encoding.UIDKind, cached map[string]string) error {
	keys := make([][]byte, 0, len(cached))
	for u := range cached {
		keys = append(keys, []byte(u))
	}
	slices.SortFunc(keys, bytes.Compare)
	now, err := d.readNames(ctx, kind, keys)
	if err != nil {
		return err
	}
	var uids []encoding.UID
	for u, name := range cached {
		if other, ok := now[u]; !ok || other != name {
			uids = append(uids, encoding.UID(u))
		}
	}
	d.changedElsewhere(kind, nil, uids)
	return nil
}

// changedElsewhere drops what another process has changed.
func (d *Dictionary) changedElsewhere(kind encoding.UIDKind, names []string, uids []encoding.UID) {
	if len(names) == 0 && len(uids) == 0 {
		return
	}
	generation := d.invalidate(kind, names, uids)
	// Holds of older generations that last long now end in ErrLate, see Hold.
	d.generations.external.Store(generation)
	d.log().Info("names were changed by another process", "kind", kind.String(), "names", len(names), "uids", len(uids))
}
