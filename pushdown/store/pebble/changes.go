package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// Bounds of the groups that are kept, and of those that one version token looks up.
const (
	maxGroups = 64 << 10
	maxLookup = 16 << 10
)

// openings numbers the stores that this process has opened, so that no version
// token of one equals a token of another.
var openings atomic.Uint64

// changes numbers the changes of groups of rows (see Grouping). It lives in memory,
// which is enough: all writes of an embedded database pass through one process. A
// batch is in progress from before it becomes visible until after that; a group
// that a batch in progress writes to has no version token.
//
// Nothing is counted before somebody wants the first version token.
type changes struct {
	grouping Grouping
	opening  uint64      // number of this store in the process
	on       atomic.Bool // set while no batch becomes visible

	mu      sync.Mutex
	last    uint64            // number of the last change of all
	groups  map[string]*group // by name; groups that are not kept have not changed since dropped
	dropped uint64            // last, when groups were last dropped
	running int               // batches in progress

	deletions  map[string]*deletion // deletions of ranges, by table, 00 and prefix
	everywhere int                  // such in progress whose groups are not known
}

// group is what is known of the changes of one group of rows.
type group struct {
	last    uint64 // number of its last change
	running int    // batches in progress that write to it
}

func newChanges(grouping Grouping) *changes {
	return &changes{
		grouping:  grouping,
		opening:   openings.Add(1),
		groups:    map[string]*group{},
		deletions: map[string]*deletion{},
	}
}

// begin notes that a batch with changes of groups is about to become visible. end must be
// called when it is visible, or when that has failed.
func (c *changes) begin(names []string) (end func()) {
	// Nobody has wanted a version token yet.
	if !c.on.Load() {
		return func() {}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	touched := make([]*group, len(names))
	for i, name := range names {
		g := c.groups[name]
		if g == nil {
			g = &group{}
			c.groups[name] = g
		}
		c.last++
		g.last = c.last //fault:change-not-counted TestLaw_embedded
		g.running++
		touched[i] = g
	}

	return func() { c.end(touched) }
}

// end notes that a batch is visible. It drops all groups when there are too many;
// a dropped group counts as changed.
func (c *changes) end(touched []*group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	for _, g := range touched {
		g.running--
	}
	if len(c.groups) <= maxGroups {
		return
	}

	// A token of a dropped group that was given before has this number at most, and only if nothing
	// has changed since.
	c.dropped = c.last
	for name, g := range c.groups {
		// A batch in progress would go unnoticed without its groups.
		if g.running == 0 {
			delete(c.groups, name)
		}
	}
}

// groupNames returns the names of the groups of a batch's rows, each once.
func (c *changes) groupNames(b *pebble.Batch) (names []string) {
	reader := b.Reader()
	known := map[string]struct{}{}
	var name, last []byte
	for {
		kind, key, value, ok, err := reader.Next()
		if !ok || err != nil {
			return names // err is nil: this process has just made the batch
		}

		prefix := key[:split(key)]
		table, row, _ := bytes.Cut(prefix, []byte{0})
		switch {
		// A deletion of several rows, whose end is its value: it counts as one of a row that
		// may be anywhere in the table.
		case kind == pebble.InternalKeyKindRangeDelete && !bytes.Equal(prefix, value[:split(value)]):
			name, last = append(append(name[:0], table...), 0), nil
		case bytes.Equal(prefix, last):
			continue // another cell of the same row
		default:
			last = prefix
			name = c.appendName(name[:0], table, row[:len(row)-1]) // without the 00 that ends the row
		}
		if _, ok := known[string(name)]; !ok {
			known[string(name)] = struct{}{}
			names = append(names, string(name))
		}
	}
}

// appendName appends the name of a row's group: the table, 00, and the group's
// prefix and number. The rows of a table that have no group share the name that
// ends with 00.
func (c *changes) appendName(dst, table, row []byte) []byte {
	dst = append(append(dst, table...), 0)
	prefix, number, ok := c.grouping.Group(row)
	if !ok {
		return dst
	}
	return binary.BigEndian.AppendUint32(append(dst, prefix...), number)
}

// version returns the version token of a range, "" while a batch writes to it.
// Changes have ascending numbers, so the largest number among the range's groups
// is new whenever one of them has changed.
func (c *changes) version(table string, r store.KeyRange) string {
	prefix, first, last, ok := c.grouping.Groups(r.Start, r.Stop)
	// A range that ends before it begins has no groups; a very wide one has too many to look up.
	if first > last || last-first >= maxLookup {
		ok = false
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	// Without groups of its own, a range counts all changes of the store.
	at, running := c.last, c.running > 0
	if ok {
		name := append([]byte(table), 0)
		// A group that is not kept has not changed since groups were last dropped.
		at, running = c.dropped, false
		// The group of the rows without one: they may be anywhere in the table. addGroup makes
		// no group, it adds what is known of one.
		at, running = c.addGroup(name, at, running)
		name = append(name, prefix...)
		at, running = c.addDeletion(name, first, last, at, running || c.everywhere > 0)
		for n := uint64(first); n <= uint64(last); n++ {
			at, running = c.addGroup(binary.BigEndian.AppendUint32(name, uint32(n)), at, running)
		}
	}

	if running {
		return ""
	}
	return fmt.Sprintf("%d:%d", c.opening, at)
}

// addGroup adds the group of a name to what is known of a range: the number of its
// last change, and whether a batch in progress writes to it.
func (c *changes) addGroup(name []byte, at uint64, running bool) (uint64, bool) {
	g := c.groups[string(name)]
	if g == nil {
		return at, running
	}
	return max(at, g.last), running || g.running > 0
}

// Version returns a version token: the number of this opening of the store and the
// number of the last change in the range, such as "1:5027"; see store.Versioner.
// Tokens do not outlive the process. Families are not distinguished.
func (s *Store) Version(ctx context.Context, table, _ string, r store.KeyRange) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, ""); err != nil {
		return "", err
	}

	// Counting begins between two batches: one that is half visible would go
	// unnoticed.
	if !s.changes.on.Load() {
		s.change.Lock()
		s.changes.on.Store(true)
		s.change.Unlock()
	}
	return s.changes.version(table, r), nil
}
