package uid

import (
	"context"
	"slices"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

const (
	// preparedAtOnce bounds the names that get UIDs in one step: the embedded store accepts no
	// other write during it.
	preparedAtOnce = 256

	// prepareTimeout bounds one Prepare. Names that it has not reached by then are left to Assign,
	// which has its own timeout.
	prepareTimeout = 5 * time.Second
)

// Cached reports whether the UID of a name is in memory.
func (d *Dictionary) Cached(kind encoding.UIDKind, name string) bool {
	_, ok := d.forward.GetIfPresent(nameKey{kind, name})
	return ok
}

// Prepare gives UIDs to those of many names that have none, so that Assign finds them
// cached. One by one, each new name costs three writes, one after another; here the names
// take each step together. Numbers are counted in the order of the names.
//
// It returns no error: a skipped name is left to Assign, which returns the reason.
func (s Staged) Prepare(ctx context.Context, kind encoding.UIDKind, names []string) {
	d := s.Dictionary
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()

	claimed, claimedByOthers, release := d.preparing.claim(kind, s.assignable(kind, names))
	d.prepareAndRelease(ctx, kind, claimed, release) // before the wait for others, which may wait for these

	for _, done := range claimedByOthers {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// prepareAndRelease gives UIDs to claimed names, some at a time, until one step fails, and releases the claim.
func (d *Dictionary) prepareAndRelease(ctx context.Context, kind encoding.UIDKind, claimed []string,
	release func()) {
	defer release()
	for part := range slices.Chunk(claimed, preparedAtOnce) {
		// A single name is cheaper by Assign, which shares it with other callers.
		if len(part) == 1 || d.prepareSome(ctx, kind, part) != nil {
			return
		}
	}
}

// claims are the names that are being prepared: two that prepare the same names would count
// numbers for both. The zero value is ready for use.
type claims struct {
	mu    sync.Mutex
	names map[nameKey]chan struct{} // closed when the name is no longer being prepared
}

// claim returns those of the names that no other call has claimed, each once: they are the caller's until it calls
// release. For the rest it returns channels, which other calls close when they release them.
func (c *claims) claim(kind encoding.UIDKind,
	names []string) (claimed []string, byOthers []<-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.names == nil {
		c.names = map[nameKey]chan struct{}{}
	}
	done := make(chan struct{}) // one for all claimed names
	for _, name := range names {
		key := nameKey{kind, name}
		if other := c.names[key]; other == nil {
			c.names[key] = done
			claimed = append(claimed, name)
		} else if !slices.Contains(byOthers, (<-chan struct{})(other)) {
			byOthers = append(byOthers, other)
		}
	}

	return claimed, byOthers, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, name := range claimed {
			delete(c.names, nameKey{kind, name})
		}
		close(done)
	}
}

// assignable returns the names that are not cached, without those that are being changed and those that can
// have no UID.
func (s Staged) assignable(kind encoding.UIDKind, names []string) (out []string) {
	for _, name := range names {
		if !s.Cached(kind, name) && s.mayBeAssigned(kind, name) {
			out = append(out, name)
		}
	}
	return out
}

func (s Staged) mayBeAssigned(kind encoding.UIDKind, name string) bool {
	row, err := encoding.AppendName(nil, name)
	return err == nil && len(row) > 0 && len(row) <= s.cfg.MaxName && s.checkBusy(kind, name) == nil
}

// prepareSome gives UIDs to those of some names that have none in the table, and caches the UIDs of all. It
// expects that none is cached. After an error no more should be prepared now.
func (d *Dictionary) prepareSome(ctx context.Context, kind encoding.UIDKind, names []string) error {
	generation := d.Generation()
	found, err := d.ResolveMany(ctx, kind, names)
	if err != nil {
		return err
	}
	var without []string // not in the memory of names, which are the caller's
	for _, name := range names {
		if found[name] == nil {
			without = append(without, name)
		}
	}
	if len(without) == 0 {
		return nil
	}

	uids, err := d.nextUIDs(ctx, kind, without)
	if err != nil {
		return err
	}
	without = without[:len(uids)] // the counter has no numbers for the rest, as Assign will find
	assigned, err := d.writeManyMappings(ctx, kind, without, uids)
	d.leaked.Add(int64(len(uids) - len(assigned)))
	d.assigned.Add(int64(len(assigned)))

	d.cacheIfCurrent(generation, kind, assigned)
	if d.cfg.Assigned != nil {
		for _, name := range without {
			if u, ok := assigned[name]; ok {
				d.cfg.Assigned(kind, name, u)
			}
		}
	}
	return err
}

// nextUIDs increments the counter of a kind by the number of names and returns the values
// as UIDs. There are fewer than names if the counter has reached the last UID.
func (d *Dictionary) nextUIDs(ctx context.Context, kind encoding.UIDKind, names []string) ([]encoding.UID, error) {
	n := int64(len(names))
	last, err := d.incrementCounter(ctx, kind, n, names[0])
	if err != nil {
		return nil, err
	}

	width := d.cfg.Schema.UIDWidth(kind)
	uids := make([]encoding.UID, 0, n)
	for number := last - n + 1; number <= last; number++ {
		u, err := encoding.AppendUID(nil, uint64(number), width)
		if err != nil { // the number is too large for a UID
			break
		}
		uids = append(uids, u)
	}
	d.warnNearlyFull(kind, last, width)
	return uids, nil
}

// writeManyMappings writes the mappings of names in the order of writeMappings: all
// reverse ones, then the forward ones. It returns the names whose mappings were both
// written. A name that another writer has given a UID is left out, and so is one whose
// number is in use without the counter.
func (d *Dictionary) writeManyMappings(ctx context.Context, kind encoding.UIDKind, names []string,
	uids []encoding.UID) (map[string]encoding.UID, error) {
	reverse, rows := make([]store.CellKey, len(names)), make([][]byte, len(names))
	for i, name := range names {
		row, err := encoding.AppendName(nil, name)
		if err != nil {
			return nil, err
		}
		rows[i] = row
		reverse[i] = store.CellKey{Row: uids[i], Family: encoding.FamilyName, Qualifier: kind.Qualifier()}
	}
	wrote, err := d.putAbsent(ctx, reverse, rows)
	if err != nil {
		return nil, err
	}

	// The forward mappings of those names whose reverse mappings were written.
	var forward []store.CellKey
	var values [][]byte
	var named []string
	for i, name := range names {
		if wrote[i] {
			named, values = append(named, name), append(values, uids[i])
			forward = append(forward,
				store.CellKey{Row: rows[i], Family: encoding.FamilyID, Qualifier: kind.Qualifier()})
		}
	}
	if wrote, err = d.putAbsent(ctx, forward, values); err != nil {
		return nil, err
	}

	assigned := make(map[string]encoding.UID, len(named))
	for i, name := range named {
		if wrote[i] {
			assigned[name] = values[i]
		}
	}
	return assigned, nil
}
