package uid

import (
	"context"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// RefusedError is the refusal of a rename: the client's fault, in OpenTSDB's
// words.
type RefusedError struct{ Text string }

// Error is the text.
func (e *RefusedError) Error() string { return e.Text }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Rename gives the UID of one name to another that is not in use. The steps are
// OpenTSDB's, so that a UID has a name whenever a writer dies, but each is
// conditional: of several who rename at one time, here or elsewhere, one wins,
// and the others change nothing. A rename that was cut off is finished by
// asking for it again. Who writes under one of the names waits meanwhile; what
// is written after the return is written under the names as they are then. Other
// processes find it out a little later, see Watch. Errors are *RefusedError,
// *NoSuchNameError for an old name that nothing has, *NameTooLongError, or the
// store's. Source: UniqueId.rename.
func (d *Dictionary) Rename(ctx context.Context, kind encoding.UIDKind, from, to string) error {
	for _, name := range []string{from, to} {
		row, err := encoding.AppendName(nil, name)
		if err != nil || name == "" {
			return refused("Invalid name %q: it cannot be stored", name)
		}
		if name == to && len(row) > d.cfg.MaxName {
			return &NameTooLongError{kind, len(row), d.cfg.MaxName}
		}
	}
	// A client that leaves must not leave a rename half done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), assignTimeout)
	defer cancel()
	w, err := d.Withdraw(ctx, kind, from, to)
	if err != nil {
		return err
	}
	r := rename{d: d, kind: kind, from: from, to: to}
	defer func() { w.End(r.uid) }()
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if err := d.Tell(ctx); err != nil {
		d.log().Warn("other gateways could not be told of a rename: they find it out within minutes", "from", from, "to", to, "err", err)
	}
	return nil
}

// rename is one rename on its way.
type rename struct {
	d        *Dictionary
	kind     encoding.UIDKind
	from, to string
	uid      encoding.UID
}

// check reads both names from the table, not from memory.
func (r *rename) check(ctx context.Context) (err error) {
	if r.uid, err = r.forward(ctx, r.from); err != nil {
		return err
	}
	if r.uid == nil {
		return &NoSuchNameError{r.kind, r.from}
	}
	taken, err := r.forward(ctx, r.to)
	if err == nil && taken != nil && string(taken) != string(r.uid) {
		err = r.taken(taken)
	}
	return err
}

func (r *rename) taken(by encoding.UID) error {
	return refused("When trying rename(\"%s\", \"%s\") on UniqueId(%s, %s, %d): new name already assigned ID=%s",
		r.from, r.to, r.d.cfg.Table, r.kind, len(r.uid), signedBytes(by))
}

func (r *rename) forward(ctx context.Context, name string) (encoding.UID, error) {
	row, _ := encoding.AppendName(nil, name)
	return r.read(ctx, r.key(row, encoding.FamilyID))
}

// read is the value of a cell, nil if there is none.
func (r *rename) read(ctx context.Context, cell store.CellKey) ([]byte, error) {
	rows, err := r.d.cfg.Store.Get(ctx, r.d.cfg.Table, cell.Family, [][]byte{cell.Row})
	if err != nil {
		return nil, fmt.Errorf("uid: renaming %s %q: %w", r.kind, r.from, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return column(rows[0], r.kind), nil
}

// run changes the reverse mapping, adds the new forward mapping, and removes the
// old one.
func (r *rename) run(ctx context.Context) error {
	from, _ := encoding.AppendName(nil, r.from)
	to, _ := encoding.AppendName(nil, r.to)
	reverse := r.key(r.uid, encoding.FamilyName)
	if err := r.exchange(ctx, reverse, from, to); err != nil {
		return err
	}
	if err := r.exchange(ctx, r.key(to, encoding.FamilyID), nil, r.uid); err != nil {
		var lost *RefusedError
		if errors.As(err, &lost) { // the new name was given away meanwhile
			_, undo := r.d.cfg.Store.CompareAndPut(ctx, r.d.cfg.Table, reverse, to, from)
			return errors.Join(err, undo)
		}
		return err
	}
	old := store.Mutation{Kind: store.DeleteCell, Row: from, Family: encoding.FamilyID, Qualifier: r.kind.Qualifier()}
	if err := r.d.cfg.Store.Apply(ctx, r.d.cfg.Table, []store.Mutation{old}); err != nil {
		return fmt.Errorf("uid: removing the old mapping of %s %q, ask again: %w", r.kind, r.from, err)
	}
	return nil
}

func (r *rename) key(row []byte, family string) store.CellKey {
	return store.CellKey{Row: row, Family: family, Qualifier: r.kind.Qualifier()}
}

// exchange puts a value where the old one is expected, or where it is itself
// already: an earlier attempt came so far.
func (r *rename) exchange(ctx context.Context, cell store.CellKey, old, value []byte) error {
	ok, err := r.d.cfg.Store.CompareAndPut(ctx, r.d.cfg.Table, cell, old, value)
	if err != nil || ok {
		return err
	}
	now, err := r.read(ctx, cell)
	switch {
	case err != nil:
		return err
	case string(now) == string(value):
		return nil
	case cell.Family == encoding.FamilyID:
		return r.taken(now)
	}
	return refused("Ongoing rename on the same ID(\"%s\") or an identical new name(\"%s\")", signedBytes(r.uid), r.to)
}
