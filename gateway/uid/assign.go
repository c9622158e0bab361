package uid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

const (
	// assignTimeout bounds one assignment, which several callers may share. It is that of a write of
	// points: a line of telnet with a new name waits no less for a region than one with a known name.
	assignTimeout = 2 * time.Minute
	// changeTimeout bounds a change of names.
	changeTimeout = 30 * time.Second
)

// Assign returns the UID of a name, and assigns one if the name has none. The UID is
// durable when it returns. While this process changes the name it waits, up to maxBusyWait: then the error is
// a *BusyError.
func (d *Dictionary) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	for {
		u, err := Staged{d}.Assign(ctx, kind, name)
		var busy *BusyError
		if errors.As(err, &busy) {
			if err := busy.Wait(ctx); err != nil {
				return nil, err
			}
			continue
		}

		if err == nil {
			err = d.Sync(ctx)
		}
		return u, err
	}
}

// Sync returns once every UID that was assigned before is durable.
func (d *Dictionary) Sync(ctx context.Context) error {
	if s := d.cfg.Store.Features().Staged; s != nil {
		return s.Sync(ctx)
	}
	return nil // each step of an assignment was durable when it returned
}

// Staged is a dictionary for writers of rows. If the store can order its writes
// (store.Staged), an assignment does not wait for the disk; it is durable before
// any row that is written later. Otherwise a thousand new series would cost three
// thousand waits. The error of a name that is being changed is a *BusyError.
type Staged struct{ *Dictionary }

// Assign is Dictionary.Assign, but the UID is durable only with the next write.
func (s Staged) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if err := s.checkBusy(kind, name); err != nil {
		return nil, err
	}
	return s.assignShared(ctx, kind, name)
}

// Resolve is Dictionary.Resolve for a row that will be written.
func (s Staged) Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if err := s.checkBusy(kind, name); err != nil {
		return nil, err
	}
	return s.Dictionary.Resolve(ctx, kind, name)
}

// assignShared returns the UID of a name, and assigns one if the name has none; it is durable as Staged
// says. Concurrent callers with one name share one assignment, which has its own timeout.
func (d *Dictionary) assignShared(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if u, ok := d.forward.GetIfPresent(nameKey{kind, name}); ok {
		return u, nil
	}

	// Callers of different generations share none: the UID that one of an older generation has found may
	// have been deleted since.
	generation := strconv.FormatUint(d.Generation(), 36)
	ch := d.flight.DoChan(generation+" "+kind.String()+" "+name, func() (any, error) {
		// The first caller may leave while others wait for the same name.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), assignTimeout)
		defer cancel()
		return d.assignRetrying(shared, kind, name)
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

// Back-off between attempts while the store is unavailable.
const (
	firstBackOff = 10 * time.Millisecond
	maxBackOff   = time.Second
)

// assignRetrying reads the UID of a name, or takes the steps of an assignment, and caches the UID. It tries
// again while the store is unavailable and after a lost race, until ctx ends.
func (d *Dictionary) assignRetrying(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	for wait := firstBackOff; ; wait = min(2*wait, maxBackOff) {
		generation := d.Generation()
		u, err := d.Resolve(ctx, kind, name)
		if isNoName(err) {
			u, err = d.assignOnce(ctx, kind, name)
		}
		if err == nil {
			d.cacheIfCurrent(generation, kind, map[string]encoding.UID{name: u})
			return u, nil
		}

		// After a lost race the winner's UID can be read, or the next number is free.
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, errLostRace)
		if !again || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return nil, err // the last failure, which is more informative than the end of ctx
		}
	}
}

// assignOnce takes the three steps of an assignment once: a number, the reverse
// mapping, the forward mapping. If a later step fails, the number is lost; it fails with errLostRace if another
// writer has been faster.
func (d *Dictionary) assignOnce(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	row, err := encoding.AppendName(nil, name)
	if err != nil {
		return nil, err
	}
	if len(row) > d.cfg.MaxName {
		return nil, &NameTooLongError{kind, len(row), d.cfg.MaxName}
	}

	u, err := d.nextUID(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	if err := d.writeMappings(ctx, kind, name, row, u); err != nil {
		d.leaked.Add(1)
		return nil, err
	}

	d.assigned.Add(1)
	if d.cfg.Assigned != nil {
		d.cfg.Assigned(kind, name, u)
	}
	return u, nil
}

// incrementCounter increments the counter of a kind by n and returns its new value: the numbers up to it,
// n of them, are the caller's. name is one of those that get them, for errors.
func (d *Dictionary) incrementCounter(ctx context.Context, kind encoding.UIDKind, n int64, name string) (int64, error) {
	counter := store.CellKey{Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}
	last, err := d.atomic().Increment(ctx, d.cfg.Table, counter, n)
	if err != nil {
		return 0, fmt.Errorf("uid: cannot increment the counter for %s %q: %w", kind, name, err)
	}
	if last < n {
		return 0, fmt.Errorf("uid: the counter of %s is %d, want %d or more", kind, last, n)
	}
	return last, nil
}

// nextUID increments the counter of a kind and returns its value as a UID, or a *FullError if that has more
// bytes than a UID.
func (d *Dictionary) nextUID(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	n, err := d.incrementCounter(ctx, kind, 1, name)
	if err != nil {
		return nil, err
	}

	width := d.cfg.Schema.UIDWidth(kind)
	u, err := encoding.AppendUID(nil, uint64(n), width)
	if err != nil {
		return nil, &FullError{kind, width}
	}
	d.warnNearlyFull(kind, n, width)
	return u, nil
}

// writeMappings writes both mappings, the reverse one first: so every UID that a
// writer can find has a name. It fails with errLostRace if one of them exists already.
func (d *Dictionary) writeMappings(ctx context.Context, kind encoding.UIDKind, name string, row []byte,
	u encoding.UID) error {
	s, table := d.atomic(), d.cfg.Table
	reverse := store.CellKey{Row: u, Family: encoding.FamilyName, Qualifier: kind.Qualifier()}
	written, err := s.CompareAndPut(ctx, table, reverse, nil, row)
	if err != nil {
		return fmt.Errorf("uid: cannot write the reverse mapping of %s %q: %w", kind, name, err)
	}
	if !written {
		// No other process can have this number, so another program has written the table without
		// the counter. It keeps the UID.
		return fmt.Errorf("%w: %s %s is in use already", errLostRace, kind, u)
	}

	forward := store.CellKey{Row: row, Family: encoding.FamilyID, Qualifier: kind.Qualifier()}
	written, err = s.CompareAndPut(ctx, table, forward, nil, u)
	if err != nil {
		return fmt.Errorf("uid: cannot write the forward mapping of %s %q: %w", kind, name, err)
	}
	if !written {
		return errLostRace
	}
	return nil
}

// atomic returns the operations that assign UIDs. A store that can stage writes keeps
// the three steps in the order of its log, so that after a crash a step exists only if
// those before it do.
func (d *Dictionary) atomic() store.Atomic {
	if s := d.cfg.Store.Features().Staged; s != nil {
		return s
	}
	return d.cfg.Store
}

// putAbsent writes those of many cells that do not exist, by the operations that atomic chooses, and reports
// which it has written.
func (d *Dictionary) putAbsent(ctx context.Context, cells []store.CellKey,
	values [][]byte) (written []bool, err error) {
	if s := d.cfg.Store.Features().Staged; s != nil {
		return s.PutAbsent(ctx, d.cfg.Table, cells, values)
	}
	return store.PutAbsent(ctx, d.cfg.Store, d.cfg.Table, cells, values)
}

// warnNearlyFull warns, once for each kind, if n is four fifths of the kind's UIDs or more. After
// the last one only wider UIDs help, and these need new tables.
func (d *Dictionary) warnNearlyFull(kind encoding.UIDKind, n int64, width int) {
	if isNearlyFull := float64(n) >= 0.8*math.Ldexp(1, 8*width); isNearlyFull && !d.warned[kind].Swap(true) {
		d.log().Warn("UIDs run short", "kind", kind.String(), "given", n, "bytes", width)
	}
}
