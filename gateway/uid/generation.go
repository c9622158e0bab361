package uid

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"downpour/encoding"
)

// nameKey is a name, or the bytes of a UID, of a kind.
type nameKey struct {
	kind encoding.UIDKind
	name string
}

// generations put reads of the UID table and changes of it in order. Each change begins
// a generation. Mappings that were read in an older generation are never cached,
// because they may be from before the change. Rows are written under a hold, which
// belongs to a generation too, so that a change can wait for all rows begun before it.
//
//	put          reads the generation ── resolves ── hold ── writes ── releases
//	uid delete   withdraws the name, begins a generation ── waits for older holds
//	             ── looks for rows ── deletes
type generations struct {
	now atomic.Uint64
	// byOthers is the last generation that began because another process changed
	// names.
	byOthers atomic.Uint64
	// withdrawals is the number of withdrawals; while it is 0 no lock is needed.
	withdrawals atomic.Int32

	mu        sync.Mutex
	withdrawn map[nameKey]chan struct{} // closed when the name can be resolved again
	held      map[uint64]int            // number of holds by generation
	released  chan struct{}             // closed at the end of the next hold; nil without waiters
}

// Generation grows whenever a name may have lost its UID or got another one. Mappings of an earlier
// generation must not be cached.
func (d *Dictionary) Generation() uint64 { return d.generations.now.Load() }

// longWrite is how long a hold may last while another process changes names. That
// process waits KnownWithin, then looks for rows once.
const longWrite = 5 * time.Second

// Hold keeps names from being deleted while rows with their UIDs are written. The UIDs
// must have been resolved in the returned generation or later; older ones must be
// resolved again. release must be called once the rows are durable or given up. Its
// only error is ErrLate: another process may have deleted the names in the meantime.
func (d *Dictionary) Hold() (generation uint64, release func() error) {
	g := &d.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	generation, began := g.now.Load(), time.Now()
	g.held[generation]++
	return generation, func() error {
		g.release(generation)
		// Another process does not wait for holds of this one.
		if g.byOthers.Load() > generation && time.Since(began) > longWrite {
			return ErrLate
		}
		return nil
	}
}

// release ends a hold and wakes those who wait for one.
func (g *generations) release(generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[generation]--; g.held[generation] == 0 {
		delete(g.held, generation)
	}
	if g.released != nil {
		close(g.released)
		g.released = nil
	}
}

// awaitHolds waits until every hold of a generation before the given one has ended.
func (g *generations) awaitHolds(ctx context.Context, before uint64) error {
	for {
		released := g.nextRelease(before)
		if released == nil {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextRelease returns a channel that is closed when the next hold ends, of whatever generation, or nil if
// there is no hold of a generation before the given one.
func (g *generations) nextRelease(before uint64) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	for generation := range g.held {
		if generation >= before { //fault:names-changed-without-waiting-for-rows TestDelete_waitsForPuts
			continue
		}
		if g.released == nil {
			g.released = make(chan struct{})
		}
		return g.released
	}
	return nil
}

// cacheIfCurrent caches mappings that were read in a generation. If there is a newer one
// they may be from before its change, and are not cached. If another name is
// cached for a UID it is dropped, so that no two names lead to one UID.
func (d *Dictionary) cacheIfCurrent(generation uint64, kind encoding.UIDKind, names map[string]encoding.UID) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	if d.Generation() != generation {
		return
	}
	for name, u := range names {
		name = strings.Clone(name) // else it may keep a whole request in memory
		uidKey := nameKey{kind, string(u)}
		if old, isNew := d.reverse.Set(uidKey, name); !isNew && old != name {
			d.forward.Invalidate(nameKey{kind, old})
			d.replaced.Store(true)
		}
		if old, isNew := d.forward.Set(nameKey{kind, name}, u); !isNew && !bytes.Equal(old, u) {
			d.replaced.Store(true)
		}
	}
}

// cacheNamesIfCurrent is cacheIfCurrent for reverse mappings alone: names by the bytes of their UIDs.
func (d *Dictionary) cacheNamesIfCurrent(generation uint64, kind encoding.UIDKind, names map[string]string) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	if d.Generation() != generation {
		return
	}
	for u, name := range names {
		uidKey := nameKey{kind, u}
		if old, isNew := d.reverse.Set(uidKey, name); !isNew && old != name {
			d.replaced.Store(true)
		}
	}
}

// beginGenerationLocked drops names and UIDs of a kind from the cache and begins a generation, which it
// returns. REQUIRES: d.generations.mu is held.
func (d *Dictionary) beginGenerationLocked(kind encoding.UIDKind, names []string, uids []encoding.UID) uint64 {
	for _, name := range names {
		d.forward.Invalidate(nameKey{kind, name})
	}
	for _, u := range uids {
		d.reverse.Invalidate(nameKey{kind, string(u)})
	}
	return d.generations.now.Add(1)
}

// Drop empties the cache and begins a generation, so that nothing that is being read gets into it.
func (d *Dictionary) Drop() {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	d.forward.InvalidateAll()
	d.reverse.InvalidateAll()
	d.generations.now.Add(1)
}

// maxBusyWait is how long BusyError.Wait waits for a name.
const maxBusyWait = KnownWithin + 5*time.Second

// Wait returns nil once the name can be resolved again, e itself if that takes
// longer than 20 s, or the context's error.
func (e *BusyError) Wait(ctx context.Context) error {
	tooLong := time.NewTimer(maxBusyWait)
	defer tooLong.Stop()
	select {
	case <-e.done:
		return nil
	case <-tooLong.C:
		return e
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkBusy returns a *BusyError for a name that is withdrawn.
func (d *Dictionary) checkBusy(kind encoding.UIDKind, name string) error {
	g := &d.generations
	if g.withdrawals.Load() == 0 {
		return nil
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	if done := g.withdrawn[nameKey{kind, name}]; done != nil {
		return &BusyError{kind, name, done}
	}
	return nil
}

// Withdrawal keeps this process from writing rows with some names while the names
// are changed in the table.
type Withdrawal struct {
	d          *Dictionary
	names      Names
	generation uint64
	done       chan struct{}
}

// Names are names by kind.
type Names [len(kinds)][]string

// Withdraw is WithdrawAll for names of one kind.
func (d *Dictionary) Withdraw(ctx context.Context, kind encoding.UIDKind, names ...string) (*Withdrawal, error) {
	var all Names
	all[kind] = names
	return d.WithdrawAll(ctx, all)
}

// WithdrawAll begins a change of names: until End is called no row can be written with them, see BusyError.
// There is one change at a time; others wait in WithdrawAll until it ends, or ctx does.
func (d *Dictionary) WithdrawAll(ctx context.Context, names Names) (*Withdrawal, error) {
	select {
	case d.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	w := &Withdrawal{d: d, names: names, done: make(chan struct{})}
	g := &d.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	for kind, some := range names {
		for _, name := range some {
			g.withdrawn[nameKey{encoding.UIDKind(kind), name}] = w.done
		}
	}
	g.withdrawals.Add(1)
	// The generation begins last: a goroutine that sees it also sees that the names are withdrawn.
	w.generation = w.beginGenerationLocked(nil)
	return w, nil
}

// beginGenerationLocked drops the names and some UIDs from the cache and begins a generation, which it returns.
// REQUIRES: the lock of the generations is held.
func (w *Withdrawal) beginGenerationLocked(uids []encoding.UID) (generation uint64) {
	for kind, some := range w.names {
		generation = w.d.beginGenerationLocked(encoding.UIDKind(kind), some, uids)
	}
	return generation
}

// AwaitHolds returns once this process no longer writes rows whose UIDs were resolved before the
// names were withdrawn.
func (w *Withdrawal) AwaitHolds(ctx context.Context) error {
	return w.d.generations.awaitHolds(ctx, w.generation)
}

// End lets the names be resolved again, as the table now has them, and the next change begin. uids, which
// they had or have, are dropped from the cache, of whatever kind they are.
func (w *Withdrawal) End(uids ...encoding.UID) {
	g := &w.d.generations
	g.mu.Lock()
	for kind, some := range w.names {
		for _, name := range some {
			delete(g.withdrawn, nameKey{encoding.UIDKind(kind), name})
		}
	}
	g.withdrawals.Add(-1)
	w.beginGenerationLocked(uids)
	g.mu.Unlock()
	close(w.done)
	<-w.d.changing
}
