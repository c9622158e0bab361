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

// Other processes change names, too: gateways and tools, and OpenTSDB's. Ours
// count each change in a cell of the UID table,
//
//	00  id:downpour_changes  8-byte counter
//
// which every gateway reads each second. Where it has moved, and every few
// minutes in any case, the gateway reads again what it remembers, some thousand
// mappings at a time, and forgets what the table has no more. So most of what
// was remembered stays, however much that is.
const (
	askEvery   = time.Second
	checkEvery = 5 * time.Minute
	// KnownWithin is after which time of a change the others know it, if they
	// can read the table.
	KnownWithin = 15 * time.Second
)

// Tell lets other processes know that names have changed in the table.
func (d *Dictionary) Tell(ctx context.Context) error {
	if !d.cfg.Shared {
		return nil
	}
	if _, err := d.cfg.Store.Increment(ctx, d.cfg.Table, changes, 1); err != nil {
		return fmt.Errorf("uid: telling others of a change: %w", err)
	}
	return nil
}

var changes = store.CellKey{Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: []byte(encoding.ChangesQualifier)}

// Watch finds out what other processes change, until ctx ends.
func (d *Dictionary) Watch(ctx context.Context) {
	if !d.cfg.Shared {
		return
	}
	w := watcher{d: d, seen: -1}
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := w.look(ctx)
		if err != nil && w.fine && ctx.Err() == nil {
			d.log().Warn("changes of names by others are not found out", "err", err)
		}
		w.fine = err == nil
	}
}

// watcher is what Watch has seen.
type watcher struct {
	d       *Dictionary
	seen    int64 // changes, -1 for none yet
	checked time.Time
	fine    bool
}

// look checks all that is remembered if there is a reason to.
func (w *watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, assignTimeout)
	defer cancel()
	n, err := w.d.changes(ctx)
	if err != nil || n == w.seen && time.Since(w.checked) < checkEvery {
		return err
	}
	began := time.Now()
	if err := w.d.Check(ctx); err != nil {
		return err
	}
	w.seen, w.checked = n, began
	return nil
}

// changes is how many have been told so far.
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
	return 0, nil
}

// Check reads again what is remembered and forgets what the table has no more.
func (d *Dictionary) Check(ctx context.Context) error {
	return errors.Join(inParts(ctx, d.forward.All(), d.compareForward), inParts(ctx, d.reverse.All(), d.compareReverse))
}

// inParts passes what is remembered on, kind by kind, as much as is read at a
// time.
func inParts[V any](ctx context.Context, all iter.Seq2[nameKey, V], compare func(context.Context, encoding.UIDKind, map[string]V) error) error {
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

// compareForward forgets those names that have no UID any more, or another one.
func (d *Dictionary) compareForward(ctx context.Context, kind encoding.UIDKind, remembered map[string]encoding.UID) error {
	names := make([]string, 0, len(remembered))
	for name := range remembered {
		names = append(names, name)
	}
	now, err := d.readForward(ctx, kind, rowsOf(names))
	if err != nil {
		return err
	}
	var gone []string
	var uids []encoding.UID
	for name, u := range remembered {
		if string(now[name]) != string(u) {
			gone, uids = append(gone, name), append(uids, u)
		}
	}
	d.changedElsewhere(kind, gone, uids)
	return nil
}

// compareReverse forgets those UIDs that have no name any more, or another one.
func (d *Dictionary) compareReverse(ctx context.Context, kind encoding.UIDKind, remembered map[string]string) error {
	keys := make([][]byte, 0, len(remembered))
	for u := range remembered {
		keys = append(keys, []byte(u))
	}
	slices.SortFunc(keys, bytes.Compare)
	now, err := d.readNames(ctx, kind, keys)
	if err != nil {
		return err
	}
	var uids []encoding.UID
	for u, name := range remembered {
		if other, ok := now[u]; !ok || other != name {
			uids = append(uids, encoding.UID(u))
		}
	}
	d.changedElsewhere(kind, nil, uids)
	return nil
}

// changedElsewhere forgets what another process has changed.
func (d *Dictionary) changedElsewhere(kind encoding.UIDKind, names []string, uids []encoding.UID) {
	if len(names) == 0 && len(uids) == 0 {
		return
	}
	generation := d.forget(kind, names, uids)
	d.generations.told.Store(generation)
	d.log().Info("names were changed by another process", "kind", kind.String(), "names", len(names), "uids", len(uids))
}
