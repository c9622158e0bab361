package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Resolve returns the UID of a name, or a *NoSuchNameError. That a name has
// none is never remembered. A *ConflictError if the UID is another name's.
func (d *Dictionary) Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if u, ok := d.forward[kind].GetIfPresent(name); ok {
		return u, nil
	}
	found, err := d.ResolveMany(ctx, kind, []string{name})
	if err != nil {
		return nil, err
	}
	if u, ok := found[name]; ok {
		return u, nil
	}
	return nil, &NoSuchNameError{kind, name}
}

// ResolveMany returns the UIDs of those names that have one, read from the
// store some hundred at a time.
func (d *Dictionary) ResolveMany(ctx context.Context, kind encoding.UIDKind, names []string) (map[string]encoding.UID, error) {
	found := make(map[string]encoding.UID, len(names))
	var rows [][]byte
	for _, name := range names {
		if u, ok := d.forward[kind].GetIfPresent(name); ok {
			found[name] = u
			continue
		}
		// No row can hold a name outside ISO-8859-1.
		if row, err := encoding.AppendName(nil, name); err == nil && len(row) > 0 {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	rows = slices.CompactFunc(rows, bytes.Equal)
	for part := range slices.Chunk(rows, namesPerRead) {
		if err := d.readUIDs(ctx, kind, part, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readUIDs reads forward mappings and adds them to found.
func (d *Dictionary) readUIDs(ctx context.Context, kind encoding.UIDKind, names [][]byte, found map[string]encoding.UID) error {
	read, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyID, names)
	if err != nil {
		return fmt.Errorf("uid: %s %q: %w", kind, names[0], err)
	}
	fresh := map[string]encoding.UID{}
	for _, r := range read {
		u := column(r, kind)
		if u == nil {
			continue
		}
		name := encoding.ParseName(r.Key)
		if want := d.cfg.Schema.UIDWidth(kind); len(u) != want {
			return fmt.Errorf("uid: %s %q has UID % X of %d bytes, want %d: is the UID width right?", kind, name, u, len(u), want)
		}
		fresh[name] = u
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := d.checkOwners(ctx, kind, fresh); err != nil {
		return err
	}
	for name, u := range fresh {
		d.remember(kind, name, u)
		found[name] = u
	}
	return nil
}

// checkOwners makes sure that UIDs just read are those of their names, by the
// reverse mappings. A UID without one has no other owner; it gets its name back
// when the table is repaired.
func (d *Dictionary) checkOwners(ctx context.Context, kind encoding.UIDKind, fresh map[string]encoding.UID) error {
	names := make(map[string]string, len(fresh))
	keys := make([][]byte, 0, len(fresh))
	for name, u := range fresh {
		if other, ok := names[string(u)]; ok {
			return d.alarm(&ConflictError{kind, u, name, other})
		}
		names[string(u)] = name
		keys = append(keys, u)
	}
	slices.SortFunc(keys, bytes.Compare)
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, keys)
	if err != nil {
		return fmt.Errorf("uid: reverse mappings of %d %s: %w", len(keys), kind, err)
	}
	for _, r := range rows {
		value := column(r, kind)
		if owner := encoding.ParseName(value); value != nil && owner != names[string(r.Key)] {
			return d.alarm(&ConflictError{kind, bytes.Clone(r.Key), names[string(r.Key)], owner})
		}
	}
	return nil
}

// alarm counts and logs a conflict.
func (d *Dictionary) alarm(e *ConflictError) error {
	d.conflicts.Add(1)
	d.log().Error("two names for one UID: refused until the UID table is repaired",
		"kind", e.Kind.String(), "uid", e.UID.String(), "name", e.Name, "owner", e.Owner)
	return e
}

// remember keeps a mapping that the store holds. A name that had the UID before
// it was renamed is forgotten, lest two names lead to one UID.
func (d *Dictionary) remember(kind encoding.UIDKind, name string, u encoding.UID) {
	if old, ok := d.reverse[kind].GetIfPresent(string(u)); ok && old != name {
		d.forward[kind].Invalidate(old)
	}
	d.forward[kind].Set(name, u)
	d.reverse[kind].Set(string(u), name)
}

// column is the value that a row has for a kind; nil if none.
func column(r store.Row, kind encoding.UIDKind) []byte {
	for _, c := range r.Cells {
		if string(c.Qualifier) == kind.String() {
			return bytes.Clone(c.Value)
		}
	}
	return nil
}

// isNoName tells whether err says that a name has no UID.
func isNoName(err error) bool {
	var e *NoSuchNameError
	return errors.As(err, &e)
}
