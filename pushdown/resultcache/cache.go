package resultcache

import (
	"container/list"
	"log/slog"
	"sync"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
)

// Cache holds answers within a bound. It is for many goroutines; a nil cache
// holds nothing.
type Cache struct {
	limit int64
	log   *slog.Logger

	mu      sync.Mutex
	bytes   int64
	entries map[ID]*list.Element // of *entry
	order   list.List            // the least recently used at the back
	counts  Counts
	logged  map[string]bool // reasons that have been written to the log
}

// Counts tell how a cache has done.
type Counts struct {
	Hits      int64 // parts, and plans whole, answered from memory
	PlanHits  int64 // plans whole, among the hits
	New       int64 // parts not asked for before
	Kept      int64 // answers kept
	Changed   int64 // parts whose rows may have changed since the last ask
	Unproven  int64 // parts of which nothing can be proven
	Evictions int64 // entries given up for others

	Entries, Bytes int64 // there are now
}

// entry is a part or a plan that was asked for, and its answer if it was kept.
type entry struct {
	id      ID
	version string // "" of a plan that was asked for once
	answer  Answer
	bytes   int64
}

// Answer is what is kept: of a part an *answer, of a plan whatever its asker has
// made of the parts. It is given to many askers and must not change.
type Answer interface {
	// Bytes is the memory that it takes, about.
	Bytes() int64
}

// answer is what a part returned.
type answer struct {
	batches [][]byte
	stats   operator.Stats
}

// Costs beside the batches, about; and what of the bound one answer may take.
const (
	entryBytes  = 256
	batchBytes  = 64
	answerShare = 8
)

// maxLogged bounds the reasons written to the log.
const maxLogged = 20

// New returns a cache of up to so many bytes, nil for none.
func New(limit int64, log *slog.Logger) *Cache {
	if limit <= 0 {
		return nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Cache{limit: limit, log: log, entries: map[ID]*list.Element{}, logged: map[string]bool{}}
}

// outcome says what to do with a part.
type outcome uint8

const (
	read    outcome = iota // read the rows
	keep                   // read the rows and keep the answer
	changed                // read the rows, which may be others than at the last ask
	hit                    // the answer is there
)

// lookupPart looks for a part over rows whose state is mark, and takes the mark down.
func (c *Cache) lookupPart(id ID, mark string) (outcome, *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark == "" {
		c.counts.Unproven++
		return read, nil
	}
	el := c.entries[id]
	if el == nil {
		c.addEntry(id, mark)
		return read, nil
	}
	c.order.MoveToFront(el)
	e := el.Value.(*entry)
	switch {
	case e.version != mark:
		c.counts.Changed++
		c.resetEntry(e, mark)
		return changed, nil
	case e.answer == nil:
		return keep, nil
	}
	c.counts.Hits++
	a, _ := e.answer.(*answer)
	return hit, a
}

// addEntry takes down what was not asked for before.
func (c *Cache) addEntry(id ID, mark string) {
	c.counts.New++
	c.entries[id] = c.order.PushFront(&entry{id: id, version: mark, bytes: entryBytes})
	c.addBytes(entryBytes)
}

// resetEntry forgets the answer of rows that may have changed.
func (c *Cache) resetEntry(e *entry, mark string) {
	c.bytes -= e.bytes - entryBytes
	e.version, e.answer, e.bytes = mark, nil, entryBytes
}

// store keeps an answer, if the last mark is still the one that the rows had before
// they were read. It tells whether the answer is kept.
func (c *Cache) store(id ID, mark string, a Answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[id]
	if el == nil || !c.fits(a.Bytes()) {
		return false
	}
	e := el.Value.(*entry)
	if e.version != mark || e.answer != nil {
		return false
	}
	c.counts.Kept++
	e.answer, e.bytes = a, entryBytes+a.Bytes()
	c.addBytes(a.Bytes())
	return true
}

// Drop forgets everything: the next ask of each part reads its rows.
func (c *Cache) Drop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.order.Init()
	c.bytes = 0
}

// fits tells whether an answer of so many bytes may be kept.
func (c *Cache) fits(bytes int64) bool { return bytes <= c.limit/answerShare }

// addBytes adds bytes and gives up entries from the back until all fit.
func (c *Cache) addBytes(bytes int64) {
	c.bytes += bytes
	for c.bytes > c.limit && c.order.Len() > 0 {
		e := c.order.Remove(c.order.Back()).(*entry)
		delete(c.entries, e.id)
		c.bytes -= e.bytes
		c.counts.Evictions++
	}
}

// Bytes counts the batches.
func (a *answer) Bytes() int64 {
	var n int64
	for _, b := range a.batches {
		n += int64(cap(b)) + batchBytes
	}
	return n
}

// Counts returns the counts so far.
func (c *Cache) Counts() Counts {
	if c == nil {
		return Counts{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Entries, counts.Bytes = int64(len(c.entries)), c.bytes
	return counts
}

// Holds tells whether the answer of a part is kept.
func (c *Cache) Holds(part *scanplan.Part) bool {
	if c == nil {
		return false
	}
	id, ok := PartKey(part)
	return ok && c.holds(id)
}

func (c *Cache) holds(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[id]
	return el != nil && el.Value.(*entry).answer != nil
}

// logOnce writes a reason why nothing is kept, once.
func (c *Cache) logOnce(reason string) {
	c.mu.Lock()
	first := !c.logged[reason] && len(c.logged) < maxLogged
	if first {
		c.logged[reason] = true
	}
	c.mu.Unlock()
	if first {
		c.log.Warn("result cache: nothing is kept", "reason", reason)
	}
}
