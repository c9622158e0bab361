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

// Rows are counted in groups: those whose keys agree in all of the first
// Options.Head bytes but the last four, and in these four as a number divided by
// groupStep. With a head of metric and base time a group is one hour of one
// metric.
const (
	groupStep = 3600
	headUsual = 7 // metric and base time
)

// Bounds of what is remembered and of what one mark looks up.
const (
	mostGroups = 64 << 10
	mostLooked = 16 << 10
)

// openings numbers the stores of the process, so that no mark of one is a mark
// of another.
var openings atomic.Uint64

// changes numbers the changes of groups of rows, in memory: all writes of an
// embedded database pass through one process. A batch is under way from before
// it becomes visible until after that; while one is, its groups have no mark.
//
// Nothing is counted before the first mark is asked for.
type changes struct {
	head    int
	opening uint64
	on      atomic.Bool // set while no batch becomes visible

	mu      sync.Mutex
	last    uint64 // number of the last change of all
	groups  map[string]*group
	crowded uint64 // last when groups were last forgotten
	running int    // batches under way
}

type group struct {
	last    uint64 // number of its last change
	running int
}

func newChanges(head int) *changes {
	return &changes{head: head, opening: openings.Add(1), groups: map[string]*group{}}
}

// begin notes that a batch is about to become visible. The keys are read now:
// pebble may take a large batch's memory for itself. end must be called when it
// is visible, or has failed.
func (c *changes) begin(b *pebble.Batch) (end func()) {
	if !c.on.Load() {
		return func() {}
	}
	names := c.names(b)
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
		g.last = c.last
		g.running++
		touched[i] = g
	}
	return func() { c.end(touched) }
}

// end notes that a batch is visible, and forgets groups when there are many: all
// of them count as changed then.
func (c *changes) end(touched []*group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	for _, g := range touched {
		g.running--
	}
	if len(c.groups) <= mostGroups {
		return
	}
	c.last++
	c.crowded = c.last
	for name, g := range c.groups {
		if g.running == 0 {
			delete(c.groups, name)
		}
	}
}

// names are the groups of a batch's rows, each once.
func (c *changes) names(b *pebble.Batch) (names []string) {
	reader := b.Reader()
	known := map[string]struct{}{}
	var name, last []byte
	for {
		_, key, _, ok, err := reader.Next()
		if !ok || err != nil {
			return names // a batch of our own making has no faults
		}
		head := key[:split(key)]
		if bytes.Equal(head, last) {
			continue // another cell of the same row
		}
		last = head
		table, row, _ := bytes.Cut(head, []byte{0})
		name = c.appendName(name[:0], table, row[:len(row)-1])
		if _, ok := known[string(name)]; !ok {
			known[string(name)] = struct{}{}
			names = append(names, string(name))
		}
	}
}

// appendName names the group of a row. Rows shorter than a head are one group.
func (c *changes) appendName(dst, table, row []byte) []byte {
	dst = append(append(dst, table...), 0)
	if len(row) < c.head {
		return dst
	}
	return c.appendNumber(append(dst, row[:c.head-4]...), binary.BigEndian.Uint32(row[c.head-4:])/groupStep)
}

func (c *changes) appendNumber(dst []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, n)
}

// mark names the state of a range, "" while it changes. Numbers ascend, so the
// largest one of the range's groups tells of any change among them.
func (c *changes) mark(table string, r store.KeyRange) string {
	first, last, ok := c.numbers(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	at, running := c.last, c.running > 0
	if ok {
		name := append([]byte(table), 0)
		at, running = c.look(name, c.crowded, false)
		name = append(name, r.Start[:c.head-4]...)
		for n := uint64(first); n <= uint64(last); n++ {
			at, running = c.look(c.appendNumber(name, uint32(n)), at, running)
		}
	}
	if running {
		return ""
	}
	return fmt.Sprintf("%d:%d", c.opening, at)
}

// look takes one group into account.
func (c *changes) look(name []byte, at uint64, running bool) (uint64, bool) {
	g := c.groups[string(name)]
	if g == nil {
		return at, running
	}
	return max(at, g.last), running || g.running > 0
}

// numbers are those of the groups that a range touches, false if they are not
// few or differ in more than their numbers: then all changes count.
func (c *changes) numbers(r store.KeyRange) (first, last uint32, ok bool) {
	at := c.head - 4
	if len(r.Start) < c.head || len(r.Stop) < c.head || !bytes.Equal(r.Start[:at], r.Stop[:at]) {
		return 0, 0, false
	}
	from, to := binary.BigEndian.Uint32(r.Start[at:]), binary.BigEndian.Uint32(r.Stop[at:])
	if len(r.Stop) == c.head && to > from {
		to-- // rows that begin with to are not in the range
	}
	first, last = from/groupStep, to/groupStep
	return first, last, first <= last && last-first < mostLooked
}

var _ store.Versioner = (*Store)(nil)

// Version names a state by the number of the last change; see store.Marker. Marks
// do not outlive the process.
func (s *Store) Version(ctx context.Context, table, _ string, r store.KeyRange) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, ""); err != nil {
		return "", err
	}
	if !s.changes.on.Load() {
		s.change.Lock()
		s.changes.on.Store(true)
		s.change.Unlock()
	}
	return s.changes.mark(table, r), nil
}
