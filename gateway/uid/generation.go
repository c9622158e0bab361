package uid

import (
	"context"
	"errors"
	"fmt"
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

// generations order what is read of the UID table and what changes in it. A
// change counts a generation; what was read under an older one is never
// remembered, for it may be from before the change. Rows are written under a
// hold, which is of a generation, too: who changes a name can wait for all that
// were begun before.
//
//	put          reads the generation ── resolves ── hold ── writes ── releases
//	uid delete   withdraws the name, counts ── waits for older holds ── looks ── deletes
type generations struct {
	now atomic.Uint64
	// told is the last generation that began because of another process.
	told atomic.Uint64
	// away is how many names are withdrawn; 0 spares the lock.
	away atomic.Int32

	mu        sync.Mutex
	withdrawn map[nameKey]chan struct{} // closed when the name is back
	held      map[uint64]int            // holds by generation
	freed     chan struct{}             // closed at the end of a hold; nil while nobody waits
}

// Generation is counted whenever a name may have lost its UID or got another
// one. What was resolved before it was counted must not be kept.
func (d *Dictionary) Generation() uint64 { return d.generations.now.Load() }

// longWrite is how long a hold may last while another process changes names:
// that one waits KnownWithin, and looks at rows only once.
const longWrite = 5 * time.Second

// ErrLate is returned by a hold's release: while the rows were written another
// process has changed names, so long ago that it may have looked for rows
// before these were there. What was resolved in the hold's generation must be
// resolved and written again.
var ErrLate = errors.New("names have been changed by another process during a long write: send the points again")

// Hold is for who is about to write rows with UIDs of the generation that it
// returns, or later ones; older ones must be resolved anew. release must be
// called when the rows are durable or given up. Until then a name that was
// resolved is not deleted. The error is ErrLate.
func (d *Dictionary) Hold() (generation uint64, release func() error) {
	g := &d.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	generation, began := g.now.Load(), time.Now()
	g.held[generation]++
	return generation, func() error {
		g.release(generation)
		if g.told.Load() > generation && time.Since(began) > longWrite {
			return ErrLate
		}
		return nil
	}
}

func (g *generations) release(generation uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[generation]--; g.held[generation] == 0 {
		delete(g.held, generation)
	}
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}

// awaitReaders waits until every hold of a generation before this one has ended.
func (g *generations) awaitReaders(ctx context.Context, before uint64) error {
	for {
		freed := g.older(before)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// older returns what is closed when a hold ends, nil if there is none before a
// generation.
func (g *generations) older(before uint64) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	for generation := range g.held {
		if generation >= before {
			continue
		}
		if g.freed == nil {
			g.freed = make(chan struct{})
		}
		return g.freed
	}
	return nil
}

// remember keeps mappings that the store has held since a generation. If there
// is a newer one they may be from before its change, and are not kept. A name
// that had the UID before is forgotten, lest two names lead to one UID.
func (d *Dictionary) remember(generation uint64, kind encoding.UIDKind, names map[string]encoding.UID) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	if d.Generation() != generation {
		return
	}
	for name, u := range names {
		name = strings.Clone(name) // which may be a part of a request
		at := nameKey{kind, string(u)}
		if old, ok := d.reverse.GetIfPresent(at); ok && old != name {
			d.forward.Invalidate(nameKey{kind, old})
		}
		d.forward.Set(nameKey{kind, name}, u)
		d.reverse.Set(at, name)
	}
}

// rememberNames keeps reverse mappings alone, as remember does.
func (d *Dictionary) rememberNames(generation uint64, kind encoding.UIDKind, names map[string]string) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	if d.Generation() != generation {
		return
	}
	for u, name := range names {
		d.reverse.Set(nameKey{kind, u}, name)
	}
}

// forget counts a generation, in which names and UIDs of a kind are looked up
// anew.
func (d *Dictionary) forget(kind encoding.UIDKind, names []string, uids []encoding.UID) (generation uint64) {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	return d.forgetLocked(kind, names, uids)
}

func (d *Dictionary) forgetLocked(kind encoding.UIDKind, names []string, uids []encoding.UID) uint64 {
	for _, name := range names {
		d.forward.Invalidate(nameKey{kind, name})
	}
	for _, u := range uids {
		d.reverse.Invalidate(nameKey{kind, string(u)})
	}
	return d.generations.now.Add(1)
}

// Drop forgets everything remembered, and counts a generation.
func (d *Dictionary) Drop() {
	d.generations.mu.Lock()
	defer d.generations.mu.Unlock()
	d.forward.InvalidateAll()
	d.reverse.InvalidateAll()
	d.generations.now.Add(1)
}

// BusyError tells that a name is being deleted or renamed by this process:
// nothing can be written under it until that is done.
type BusyError struct {
	Kind encoding.UIDKind
	Name string
	done <-chan struct{}
}

// Error names it.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s %q is being deleted or renamed: send the point again", e.Kind, e.Name)
}

// busyFor is how long somebody waits for a name.
const busyFor = KnownWithin + 5*time.Second

// Wait returns nil once the name can be resolved again, the error itself if
// that takes long, or the context's error.
func (e *BusyError) Wait(ctx context.Context) error {
	late := time.NewTimer(busyFor)
	defer late.Stop()
	select {
	case <-e.done:
		return nil
	case <-late.C:
		return e
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busy returns a *BusyError for a name that is withdrawn.
func (d *Dictionary) busy(kind encoding.UIDKind, name string) error {
	g := &d.generations
	if g.away.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if done := g.withdrawn[nameKey{kind, name}]; done != nil {
		return &BusyError{kind, name, done}
	}
	return nil
}

// Withdrawal keeps names from being written under by this process, while they
// are changed in the table.
type Withdrawal struct {
	d          *Dictionary
	kind       encoding.UIDKind
	names      []string
	generation uint64
	done       chan struct{}
}

// Withdraw begins a change of names. One change is made at a time, and others
// wait for it. End must be called.
func (d *Dictionary) Withdraw(ctx context.Context, kind encoding.UIDKind, names ...string) (*Withdrawal, error) {
	select {
	case d.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w := &Withdrawal{d: d, kind: kind, names: names, done: make(chan struct{})}
	g := &d.generations
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		g.withdrawn[nameKey{kind, name}] = w.done
	}
	g.away.Add(1)
	// Counted last: who sees the new generation sees that the names are away.
	w.generation = d.forgetLocked(kind, names, nil)
	return w, nil
}

// Settle returns once no row is being written, by this process, whose UIDs were
// resolved before the names were withdrawn.
func (w *Withdrawal) Settle(ctx context.Context) error {
	return w.d.generations.awaitReaders(ctx, w.generation)
}

// End lets the names be resolved again, as the table has them now. What is
// remembered of the UIDs is forgotten.
func (w *Withdrawal) End(uids ...encoding.UID) {
	g := &w.d.generations
	g.mu.Lock()
	for _, name := range w.names {
		delete(g.withdrawn, nameKey{w.kind, name})
	}
	g.away.Add(-1)
	w.d.forgetLocked(w.kind, w.names, uids)
	g.mu.Unlock()
	close(w.done)
	<-w.d.changing
}
