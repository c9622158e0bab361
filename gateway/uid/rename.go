package uid

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// refused makes a *RefusedError.
func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Rename gives the UID of one name to another name that is not in use. The steps are
// OpenTSDB's, so that the UID has a name at every moment, but each step is conditional:
// of several concurrent renames, here or in other processes, one wins and the others
// change nothing. A rename that was cut off is completed by repeating it.
//
// Puts with one of the names wait for the rename; rows written after it have the UIDs
// that the names have then. Other processes see it a little later, see Watch. Errors
// are *RefusedError, *NoSuchNameError if the old name has no UID, *NameTooLongError, or
// the store's.
// Source: UniqueId.rename.
func (d *Dictionary) Rename(ctx context.Context, kind encoding.UIDKind, from, to string) error {
	for _, name := range []string{from, to} {
		row, err := encoding.AppendName(nil, name)
		if err != nil || name == "" {
			return refused("Invalid name %q: it cannot be stored", name)
		}
		// MaxName does not bound the old name: it may have been higher when that got its UID.
		if name == to && len(row) > d.cfg.MaxName {
			return &NameTooLongError{kind, len(row), d.cfg.MaxName}
		}
	}

	// A client that disconnects must not leave a partial rename.
	done := make(chan error, 1)
	go func() { done <- d.withdrawAndRename(context.WithoutCancel(ctx), kind, from, to) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdrawAndRename renames within changeTimeout, while both names, which can be stored, are withdrawn.
func (d *Dictionary) withdrawAndRename(ctx context.Context, kind encoding.UIDKind, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	w, err := d.Withdraw(ctx, kind, from, to)
	if err != nil {
		return err
	}

	r := rename{d: d, kind: kind, from: from, to: to}
	defer func() { w.End(r.uid) }() // r.uid is set by then
	if err := r.readUID(ctx); err != nil {
		return err
	}
	if err := r.checkNewName(ctx); err != nil {
		return err
	}
	if err := r.changeMappings(ctx); err != nil {
		return err
	}
	// The rename is done, even if it could not be announced.
	if err := d.Tell(ctx); err != nil {
		d.log().Warn("cannot notify other gateways of a rename: they notice it within minutes", "from", from, "to", to,
			"err", err)
	}
	return nil
}

// rename is one rename in progress.
type rename struct {
	d        *Dictionary
	kind     encoding.UIDKind
	from, to string
	uid      encoding.UID // set by readUID; nil if the old name has none
}

// readUID reads the UID of the old name from the table, not from the cache.
func (r *rename) readUID(ctx context.Context) (err error) {
	r.uid, err = r.readForward(ctx, r.from)
	if err == nil && r.uid == nil {
		err = &NoSuchNameError{r.kind, r.from}
	}
	return err
}

// checkNewName refuses the rename if the new name has a UID. It may have the UID of the old name: then
// an earlier rename was cut off, and this one completes it. But a name that is renamed to itself is refused:
// it would lose its UID in the last step.
func (r *rename) checkNewName(ctx context.Context) error {
	used, err := r.readForward(ctx, r.to)
	if err != nil || used == nil {
		return err
	}
	if r.from == r.to || string(used) != string(r.uid) {
		return r.nameInUse(used)
	}
	return nil
}

// nameInUse refuses a new name that has a UID, in OpenTSDB's words.
func (r *rename) nameInUse(by encoding.UID) error {
	return refused("When trying rename(\"%s\", \"%s\") on UniqueId(%s, %s, %d): new name already assigned ID=%s",
		r.from, r.to, r.d.cfg.Table, r.kind, len(r.uid), signedBytes(by))
}

// readForward reads the UID of a name, nil if it has none.
func (r *rename) readForward(ctx context.Context, name string) (encoding.UID, error) {
	row, _ := encoding.AppendName(nil, name) // Rename has checked it
	return r.read(ctx, r.cell(row, encoding.FamilyID))
}

// read reads the value of a cell, nil if there is none.
func (r *rename) read(ctx context.Context, cell store.CellKey) ([]byte, error) {
	rows, err := r.d.cfg.Store.Get(ctx, r.d.cfg.Table, cell.Family, [][]byte{cell.Row})
	if err != nil {
		return nil, fmt.Errorf("uid: cannot rename %s %q: %w", r.kind, r.from, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return column(rows[0], r.kind), nil
}

// changeMappings changes the reverse mapping, adds the new forward mapping and deletes the old
// one: in this order the UID has a name at every moment. It refuses the rename, and changes nothing,
// if another one is faster; after any other error a repetition completes it.
func (r *rename) changeMappings(ctx context.Context) error {
	from, _ := encoding.AppendName(nil, r.from) // Rename has checked both names
	to, _ := encoding.AppendName(nil, r.to)

	reverse := r.cell(r.uid, encoding.FamilyName)
	if r.d.cfg.MappingTimes {
		if err := r.keepCreated(ctx); err != nil {
			return err
		}
	}
	if err := r.exchange(ctx, reverse, from, to); err != nil {
		return err
	}
	if err := r.exchange(ctx, r.cell(to, encoding.FamilyID), nil, r.uid); err != nil {
		var refusal *RefusedError
		if errors.As(err, &refusal) { // the new name has another UID since checkNewName: undo the first step
			_, undoErr := r.d.cfg.Store.CompareAndPut(ctx, r.d.cfg.Table, reverse, to, from)
			return errors.Join(err, undoErr)
		}
		return err
	}

	old := store.Mutation{Kind: store.DeleteCell, Row: from, Family: encoding.FamilyID, Qualifier: r.kind.Qualifier()}
	if err := r.d.cfg.Store.Apply(ctx, r.d.cfg.Table, []store.Mutation{old}); err != nil {
		return fmt.Errorf("uid: cannot delete the old mapping of %s %q, ask again: %w", r.kind, r.from, err)
	}
	return nil
}

// keepCreated writes a UIDMeta with the time at which the UID was assigned, unless there is a UIDMeta: the mapping
// that has this time is about to be replaced.
func (r *rename) keepCreated(ctx context.Context) error {
	rows, err := r.d.cfg.Store.Get(ctx, r.d.cfg.Table, encoding.FamilyName, [][]byte{r.uid})
	if err != nil {
		return fmt.Errorf("uid: cannot rename %s %q: %w", r.kind, r.from, err)
	}
	if len(rows) == 0 {
		return nil
	}
	at := slices.IndexFunc(rows[0].Cells, func(c store.Cell) bool {
		return string(c.Qualifier) == r.kind.String()
	})
	if at < 0 {
		return nil // the mapping is lost, and exchange refuses the rename
	}

	cell := store.CellKey{Row: r.uid, Family: encoding.FamilyName, Qualifier: r.kind.MetaQualifier()}
	created := encoding.UIDMeta{Type: r.kind.MetaType(), Created: rows[0].Cells[at].Timestamp / 1000}
	_, err = r.d.cfg.Store.CompareAndPut(ctx, r.d.cfg.Table, cell, nil, encoding.AppendUIDMeta(nil, created))
	if err != nil {
		return fmt.Errorf("uid: cannot rename %s %q: %w", r.kind, r.from, err)
	}
	return nil
}

// cell returns the cell of a mapping: of the name or UID that is the row key.
func (r *rename) cell(row []byte, family string) store.CellKey {
	return store.CellKey{Row: row, Family: family, Qualifier: r.kind.Qualifier()}
}

// exchange replaces the old value of a cell, nil for none, by a new one. It succeeds too if the cell
// has the new value already: an earlier attempt reached this step. With any other value in the cell it
// refuses the rename.
func (r *rename) exchange(ctx context.Context, cell store.CellKey, old, value []byte) error {
	exchanged, err := r.d.cfg.Store.CompareAndPut(ctx, r.d.cfg.Table, cell, old, value)
	if err != nil || exchanged {
		return err
	}
	current, err := r.read(ctx, cell)
	switch {
	case err != nil:
		return err
	case string(current) == string(value):
		return nil
	case cell.Family == encoding.FamilyID: // the forward mapping of the new name
		return r.nameInUse(current)
	}
	return refused("Ongoing rename on the same ID(\"%s\") or an identical new name(\"%s\")", signedBytes(r.uid), r.to)
}
