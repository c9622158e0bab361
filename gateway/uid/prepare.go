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

	claimed, others, release := d.preparing.claim(kind, s.assignable(kind, names))
	func() {
		defer release() // before it waits for others, which may wait for these
		for part := range slices.Chunk(claimed, preparedAtOnce) {
			// A single name is cheaper by Assign, which shares it with other callers.
			if len(part) == 1 || d.prepare(ctx, kind, part) != nil {
				return
			}
		}
	}()

	for _, done := range others {
		select {
		case <-done:
		case <-ctx.Done():
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

// claim returns the names that no other call prepares, which are the caller's until it calls release, and
// for the rest the channels that other calls close when they have prepared them.
func (c *claims) claim(kind encoding.UIDKind,
	names []string) (claimed []string, others []<-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.names == nil {
		c.names = map[nameKey]chan struct{}{}
	}
	done := make(chan struct{}) // one for all of them
	for _, name := range names {
		key := nameKey{kind, name}
		if other := c.names[key]; other == nil {
			c.names[key] = done
			claimed = append(claimed, name)
		} else if !slices.Contains(others, (<-chan struct{})(other)) {
			others = append(others, other)
		}
	}

	return claimed, others, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, name := range claimed {
			delete(c.names, nameKey{kind, name})
		}
		close(done)
	}
}

// assignable returns the names that are not cached, each once, without those that are
// being changed and those that can have no UID.
func (s Staged) assignable(kind encoding.UIDKind, names []string) (out []string) {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] || s.Cached(kind, name) {
			continue
		}
		seen[name] = true
		row, err := encoding.AppendName(nil, name)
		if err == nil && len(row) > 0 && len(row) <= s.cfg.MaxName && s.busy(kind, name) == nil {
			out = append(out, name)
		}
	}
	return out
}

// prepare gives UIDs to those of some names that have none. They are not cached. After an error no
// more should be prepared now.
func (d *Dictionary) prepare(ctx context.Context, kind encoding.UIDKind, names []string) error {
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

	d.cache(generation, kind, assigned)
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
	last, err := d.count(ctx, kind, n, names[0])
	if err != nil {
		return nil, err
	}

	width := d.cfg.Schema.UIDWidth(kind)
	uids := make([]encoding.UID, 0, n)
	for number := last - n + 1; number <= last; number++ {
		u, err := encoding.AppendUID(nil, uint64(number), width)
		if err != nil {
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

	var forward []store.CellKey
	var values [][]byte
	var named []string
	for i, name := range names {
		if wrote[i] { //fault:uid-of-another-given-again TestPrepare_numberInUse
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
		if wrote[i] { //fault:uid-lost-to-another-writer-taken TestPrepare_eightDictionaries
			assigned[name] = values[i]
		}
	}
	return assigned, nil
}
