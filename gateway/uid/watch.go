package uid

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

	w := watcher{d: d, counter: -1}
	failing := false
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
		if err != nil && !failing && ctx.Err() == nil {
			d.log().Warn("cannot see changes of names by other processes", "err", err)
		}
		failing = err != nil
	}
}

// watcher is the state of Watch.
type watcher struct {
	d       *Dictionary
	counter int64     // of changes, before the last check; -1 before the first
	checked time.Time // when the last check began
	renewed time.Time // when a generation was begun because of mappings that were not compared
}

// poll checks the cache if the counter of changes has changed, or if the last check is long
// ago. After an error the next poll does the same.
func (w *watcher) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	now, err := w.d.Counters(ctx)
	if err != nil {
		return err
	}
	counter := now.Changes
	// The first poll finds a change, too: earlier ones may concern this process's UIDs.
	changed := counter != w.counter
	if !changed && time.Since(w.checked) < checkEvery {
		return nil
	}

	began := time.Now()
	announced := changed && w.counter >= 0 // since this process watches
	// The change may concern mappings that have left the cache. They are renewed before the check, which
	// takes long because it reads the whole cache: a process that deletes a name waits only KnownWithin.
	if announced && w.d.evicted.Load() {
		w.renew(changedByOthers)
	}
	if err := w.d.Check(ctx); err != nil {
		return err
	}
	w.renewChecked(announced)

	// As they were before the check: changes during it are found by the next poll.
	w.counter, w.checked = counter, began
	if changed && w.d.cfg.OnChange != nil {
		w.d.cfg.OnChange()
	}
	return nil
}

// renewChecked begins a generation after a check if mappings that may have changed have left the cache
// before they were compared. announced says that a process has announced a change.
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

// renew begins a generation, so that those who hold mappings that have left the cache resolve them again.
func (w *watcher) renew(why reason) {
	if w.d.evicted.Swap(false) {
		w.renewed = time.Now()
	}

	g := &w.d.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	generation := w.d.beginGenerationLocked(0, nil, nil)
	if why == changedByOthers {
		g.byOthers.Store(generation) // holds of older generations that last long now end in ErrLate
	}
}

// reason is why a generation begins.
type reason bool

const (
	changedByOthers  reason = true
	perhapsUnchanged reason = false // no change was announced or seen
)

// Check reads everything that is cached again and drops what has changed.
func (d *Dictionary) Check(ctx context.Context) error {
	return errors.Join(inParts(ctx, d.forward.All(), d.dropChangedNames),
		inParts(ctx, d.reverse.All(), d.dropChangedUIDs))
}

// inParts calls f with all mappings, of one kind and at most namesPerRead at a
// time, until it fails.
func inParts[V any](ctx context.Context, all iter.Seq2[nameKey, V],
	f func(context.Context, encoding.UIDKind, map[string]V) error) error {
	parts := [3]map[string]V{{}, {}, {}}
	for k, v := range all {
		part := parts[k.kind]
		if part[k.name] = v; len(part) < namesPerRead {
			continue
		}
		if err := f(ctx, k.kind, part); err != nil {
			return err
		}
		clear(part)
	}

	for kind, part := range parts {
		if len(part) == 0 {
			continue
		}
		if err := f(ctx, encoding.UIDKind(kind), part); err != nil {
			return err
		}
	}
	return nil
}

// dropChangedNames reads the UIDs of cached names again, and drops the names that have none in the table, or
// another one.
func (d *Dictionary) dropChangedNames(ctx context.Context, kind encoding.UIDKind,
	cached map[string]encoding.UID) error {
	names := make([]string, 0, len(cached))
	for name := range cached {
		names = append(names, name)
	}
	inTable, err := d.readForward(ctx, kind, rowsOf(names))
	if err != nil {
		return err
	}

	var gone []string
	var uids []encoding.UID
	for name, u := range cached {
		if string(inTable[name]) != string(u) {
			gone, uids = append(gone, name), append(uids, u)
		}
	}
	d.dropChangedElsewhere(kind, gone, uids)
	return nil
}

// dropChangedUIDs reads the names of cached UIDs again, and drops the UIDs that have none in the table, or
// another one.
func (d *Dictionary) dropChangedUIDs(ctx context.Context, kind encoding.UIDKind, cached map[string]string) error {
	keys := make([][]byte, 0, len(cached))
	for u := range cached {
		keys = append(keys, []byte(u))
	}
	inTable, err := d.readNames(ctx, kind, keys)
	if err != nil {
		return err
	}
	var uids []encoding.UID
	for u, name := range cached {
		if other, ok := inTable[u]; !ok || other != name {
			uids = append(uids, encoding.UID(u))
		}
	}
	d.dropChangedElsewhere(kind, nil, uids)
	return nil
}

// dropChangedElsewhere drops from the cache what another process has changed, begins a generation and logs
// it, unless there is nothing.
func (d *Dictionary) dropChangedElsewhere(kind encoding.UIDKind, names []string, uids []encoding.UID) {
	if len(names) == 0 && len(uids) == 0 {
		return
	}
	g := &d.generations
	g.mu.Lock()
	g.byOthers.Store(d.beginGenerationLocked(kind, names, uids)) // as in renew
	g.mu.Unlock()
	d.log().Info("names were changed by another process", "kind", kind.String(), "names", len(names), "uids", len(uids))
}
