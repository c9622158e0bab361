package uid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Resolve returns the UID of a name. The error is a *NoSuchNameError if the name has
// none, which is never cached, or a *ConflictError if the UID is another name's.
func (d *Dictionary) Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if u, ok := d.forward.GetIfPresent(nameKey{kind, name}); ok {
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

// ResolveMany returns the UIDs of those names that have one. It reads those that are not cached from the
// store, namesPerRead at a time, and caches them. The error is as that of Resolve, if it is not ctx's.
func (d *Dictionary) ResolveMany(ctx context.Context, kind encoding.UIDKind,
	names []string) (map[string]encoding.UID, error) {
	// Taken before anything is read: after a change in between, what was read is not cached.
	generation := d.Generation()
	found := make(map[string]encoding.UID, len(names))
	var uncached []string
	for i, name := range names {
		// If all names are cached, no read notices the end of ctx.
		if i%namesPerRead == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if u, ok := d.forward.GetIfPresent(nameKey{kind, name}); ok {
			found[name] = u
		} else {
			uncached = append(uncached, name)
		}
	}

	for part := range slices.Chunk(rowsOf(uncached), namesPerRead) {
		read, err := d.readUIDs(ctx, kind, part)
		if err != nil {
			return nil, err
		}
		d.cacheIfCurrent(generation, kind, read)
		maps.Copy(found, read)
	}
	return found, nil
}

// Fresh is Resolve without the cache: it always reads the table, and caches nothing.
func (d *Dictionary) Fresh(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	rows := rowsOf([]string{name})
	if len(rows) == 0 { // the name cannot be a row key
		return nil, &NoSuchNameError{kind, name}
	}
	read, err := d.readUIDs(ctx, kind, rows)
	if err != nil {
		return nil, err
	}
	if u, ok := read[name]; ok {
		return u, nil
	}
	return nil, &NoSuchNameError{kind, name}
}

// rowsOf returns the row keys of names, sorted, and each once, because the result of
// Get for a key that is given twice is undefined. Names that cannot be row keys are
// left out: those with characters outside ISO-8859-1 and those longer than a key.
func rowsOf(names []string) (rows [][]byte) {
	for _, name := range names {
		if row, err := encoding.AppendName(nil, name); err == nil && len(row) > 0 && len(row) <= MostName {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	return slices.CompactFunc(rows, bytes.Equal)
}

// A name that seems to have another name's UID is read again before that counts as
// a conflict, because a rename by another process changes one mapping after the
// other.
const (
	conflictReads = 3
	conflictPause = 25 * time.Millisecond
)

// readUIDs reads the forward mappings of names, given as row keys, and checks by the reverse ones that no
// UID is another name's. Names without a mapping are left out. It reads a conflict again, because a
// rename in progress looks like one, and returns and reports a *ConflictError for one that stays.
func (d *Dictionary) readUIDs(ctx context.Context, kind encoding.UIDKind,
	rows [][]byte) (map[string]encoding.UID, error) {
	for attempt := 1; ; attempt++ {
		read, err := d.readForward(ctx, kind, rows)
		if len(read) > 0 { // nothing after an error
			err = d.checkOwners(ctx, kind, read)
		}

		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			return read, err
		}
		if attempt == conflictReads {
			return nil, d.reportConflict(conflict)
		}

		select {
		case <-time.After(conflictPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readForward reads forward mappings, by the names as row keys, without checking that the UIDs lead back
// to the names. It fails if a UID has the wrong width.
func (d *Dictionary) readForward(ctx context.Context, kind encoding.UIDKind,
	keys [][]byte) (map[string]encoding.UID, error) {
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyID, keys)
	if err != nil {
		return nil, fmt.Errorf("uid: cannot read the UIDs of %s %.100q and others: %w", kind, keys[0], err)
	}

	read := make(map[string]encoding.UID, len(rows))
	for _, r := range rows {
		u := column(r, kind)
		if u == nil {
			continue
		}
		name := encoding.ParseName(r.Key)
		if want := d.cfg.Schema.UIDWidth(kind); len(u) != want {
			return nil, fmt.Errorf("uid: %s %q has UID % X of %d bytes, want %d: is the UID width right?", kind, name,
				u, len(u), want)
		}
		read[name] = u
	}
	return read, nil
}

// checkOwners returns a *ConflictError unless UIDs that were read for names lead back to
// these names. A UID without a reverse mapping passes: it has no other owner, and gets
// its name back when the table is repaired.
func (d *Dictionary) checkOwners(ctx context.Context, kind encoding.UIDKind, uids map[string]encoding.UID) error {
	names := make(map[string]string, len(uids)) // by the bytes of their UIDs
	keys := make([][]byte, 0, len(uids))
	for name, u := range uids {
		if other, ok := names[string(u)]; ok {
			return &ConflictError{kind, u, name, other} // two of these names lead to one UID
		}
		names[string(u)] = name
		keys = append(keys, u)
	}

	slices.SortFunc(keys, bytes.Compare)
	rows, err := d.cfg.Store.Get(ctx, d.cfg.Table, encoding.FamilyName, keys)
	if err != nil {
		return fmt.Errorf("uid: cannot read the reverse mappings of %d %s: %w", len(keys), kind, err)
	}
	for _, r := range rows {
		value := column(r, kind)
		if owner := encoding.ParseName(value); value != nil && owner != names[string(r.Key)] {
			return &ConflictError{kind, bytes.Clone(r.Key), names[string(r.Key)], owner}
		}
	}
	return nil
}

// reportConflict counts and logs a conflict and returns it.
func (d *Dictionary) reportConflict(e *ConflictError) error {
	d.conflicts.Add(1)
	d.log().Error("two names for one UID: refused until the UID table is repaired",
		"kind", e.Kind.String(), "uid", e.UID.String(), "name", e.Name, "owner", e.Owner)
	return e
}

// column returns a copy of the value that a row has for a kind, nil if none.
func column(r store.Row, kind encoding.UIDKind) []byte {
	for _, c := range r.Cells {
		if string(c.Qualifier) == kind.String() {
			return bytes.Clone(c.Value)
		}
	}
	return nil
}

// isNoName reports whether err is a *NoSuchNameError.
func isNoName(err error) bool {
	var e *NoSuchNameError
	return errors.As(err, &e)
}
