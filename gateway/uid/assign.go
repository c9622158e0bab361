package uid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// assignTimeout bounds one assignment, which callers share.
const assignTimeout = 30 * time.Second

// Assign returns the UID of a name and gives it one if it has none. It is durable
// then.
func (d *Dictionary) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	u, err := Staged{d}.Assign(ctx, kind, name)
	for busy := (*BusyError)(nil); errors.As(err, &busy); u, err = (Staged{d}).Assign(ctx, kind, name) {
		if err := busy.Wait(ctx); err != nil {
			return nil, err
		}
	}
	if s, ok := d.cfg.Store.(store.Stager); ok && err == nil {
		err = s.Sync(ctx)
	}
	return u, err
}

// Staged is a dictionary for who writes rows with the UIDs that it gives: where
// the store can, no assignment waits for the disk. It is durable before any row
// that is written later. A thousand new series would else cost three thousand
// waits. A name that is being changed is a *BusyError.
type Staged struct{ *Dictionary }

// Assign is Dictionary.Assign, durable with the next write at the latest.
func (s Staged) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if err := s.busy(kind, name); err != nil {
		return nil, err
	}
	return s.assignStaged(ctx, kind, name)
}

// Resolve is Dictionary.Resolve, for a name to be written under.
func (s Staged) Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if err := s.busy(kind, name); err != nil {
		return nil, err
	}
	return s.Dictionary.Resolve(ctx, kind, name)
}

// assignStaged gives a UID. Callers of one name at one time share one
// assignment.
func (d *Dictionary) assignStaged(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if u, ok := d.forward.GetIfPresent(nameKey{kind, name}); ok {
		return u, nil
	}
	// What an older generation has begun to look up may be gone since.
	generation := strconv.FormatUint(d.Generation(), 36)
	ch := d.flight.DoChan(generation+" "+kind.String()+" "+name, func() (any, error) {
		// The first caller may go away while others wait for the same name.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), assignTimeout)
		defer cancel()
		return d.assign(shared, kind, name)
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(encoding.UID), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Back-off between attempts that the store refused.
const (
	firstBackOff = 10 * time.Millisecond
	maxBackOff   = time.Second
)

// assign tries until the store has taken or refused the name for good.
func (d *Dictionary) assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	row, err := encoding.AppendName(nil, name)
	if err != nil {
		return nil, err
	}
	for wait := firstBackOff; ; wait = min(2*wait, maxBackOff) {
		generation := d.Generation()
		u, err := d.Resolve(ctx, kind, name)
		if isNoName(err) {
			u, err = d.allocate(ctx, kind, name, row)
		}
		if err == nil {
			d.remember(generation, kind, map[string]encoding.UID{name: u})
			return u, nil
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errLostRace) || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errLostRace tells that another writer gave the name its UID: read it.
var errLostRace = errors.New("uid: another writer has assigned the name")

// allocate takes the three steps once: a number, the reverse mapping, the forward
// one. A number that did not become a UID is lost.
func (d *Dictionary) allocate(ctx context.Context, kind encoding.UIDKind, name string, row []byte) (encoding.UID, error) {
	if len(row) > d.cfg.MaxName {
		return nil, &NameTooLongError{kind, len(row), d.cfg.MaxName}
	}
	u, err := d.count(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	if err := d.give(ctx, kind, name, row, u); err != nil {
		d.leaked.Add(1)
		return nil, err
	}
	d.assigned.Add(1)
	if d.cfg.Assigned != nil {
		d.cfg.Assigned(kind, name, u)
	}
	return u, nil
}

// count takes the next number of a kind.
func (d *Dictionary) count(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	counter := store.CellKey{Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}
	n, err := d.atomic().Increment(ctx, d.cfg.Table, counter, 1)
	if err != nil {
		return nil, fmt.Errorf("uid: counting for %s %q: %w", kind, name, err)
	}
	if n <= 0 {
		return nil, fmt.Errorf("uid: the counter of %s is %d, want more than 0", kind, n)
	}
	width := d.cfg.Schema.UIDWidth(kind)
	u, err := encoding.AppendUID(nil, uint64(n), width)
	if err != nil {
		return nil, &FullError{kind, width}
	}
	d.warnShort(kind, n, width)
	return u, nil
}

// give writes both mappings, the reverse one first: a UID that a writer can find
// has a name.
func (d *Dictionary) give(ctx context.Context, kind encoding.UIDKind, name string, row []byte, u encoding.UID) error {
	s, table := d.atomic(), d.cfg.Table
	reverse := store.CellKey{Row: u, Family: encoding.FamilyName, Qualifier: kind.Qualifier()}
	ok, err := s.CompareAndPut(ctx, table, reverse, nil, row)
	if err != nil {
		return fmt.Errorf("uid: reverse mapping of %s %q: %w", kind, name, err)
	}
	if !ok {
		// The number was counted for us alone: somebody wrote the table by
		// other means. It is left to them.
		return fmt.Errorf("%w: %s %s is in use already", errLostRace, kind, u)
	}
	forward := store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}
	ok, err = s.CompareAndPut(ctx, table, forward, nil, u)
	if err != nil {
		return fmt.Errorf("uid: forward mapping of %s %q: %w", kind, name, err)
	}
	if !ok {
		return errLostRace
	}
	return nil
}

// atomic is by what UIDs are assigned. A store's log keeps the order of the three
// steps, so that what a crash leaves of them is their beginning.
func (d *Dictionary) atomic() store.Atomic {
	if s, ok := d.cfg.Store.(store.Stager); ok {
		return s.Staged()
	}
	return d.cfg.Store
}

// warnShort tells once when four fifths of a kind's UIDs are given: beyond the
// last there is no way back but wider UIDs, which means new tables.
func (d *Dictionary) warnShort(kind encoding.UIDKind, n int64, width int) {
	if width >= 8 || float64(n) < 0.8*float64(uint64(1)<<(8*width)) || d.warned[kind].Swap(true) {
		return
	}
	d.log().Warn("UIDs run short", "kind", kind.String(), "given", n, "bytes", width)
}
