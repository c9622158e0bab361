package resultcache

import (
	"container/list"
	"log/slog"
	"sync"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
)

// Cache holds answers within a bound of memory. It may be used by any number of
// goroutines. A nil cache holds nothing.
type Cache struct {
	limit int64
	log   *slog.Logger

	mu      sync.Mutex
	bytes   int64
	entries map[ID]*list.Element // of *entry
	order   list.List            // of *entry, the least recently used at the back
	counts  Counts
	logged  map[string]bool // reasons that were logged, see logOnce
}

// Counts are the statistics of a cache.
type Counts struct {
	Hits      int64 // parts and whole plans answered from memory
	PlanHits  int64 // whole plans among the hits
	New       int64 // parts and plans that were not queried before
	Kept      int64 // answers stored
	Changed   int64 // lookups whose rows may have changed since the last lookup
	Unproven  int64 // lookups for which the store gave no version token
	Evictions int64 // entries removed to make room for others

	SavedRows, SavedBytes int64 // that the hits did not read again

	Entries, Bytes int64 // held now
}

// entry is a part or a plan that was queried, and its answer if it is cached.
type entry struct {
	id      ID
	version string // version token of the last lookup; "" of a plan that was queried once
	answer  Answer // nil if none is cached
	bytes   int64
}

// Answer is the cached value: for a part an *answer, for a plan the caller's own result. It is
// shared by all lookups and must not change.
type Answer interface {
	// Bytes returns about the memory that the answer takes. If the answer also has a method
	// Read, see reader, what a hit saves is counted.
	Bytes() int64
}

// answer is what a part has returned.
type answer struct {
	batches [][]byte // as batch.Encode writes them
	stats   operator.Stats
}

const (
	entryBytes  = 256 // about the size of an entry without its answer
	batchBytes  = 64  // about the overhead of a batch
	answerShare = 8   // one answer may take the bound divided by this
)

// maxLogged bounds the reasons written to the log.
const maxLogged = 20

// New returns a cache of at most limit bytes. It returns nil, which caches nothing,
// if limit is not positive. A nil log discards.
func New(limit int64, log *slog.Logger) *Cache {
	if limit <= 0 {
		return nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Cache{limit: limit, log: log, entries: map[ID]*list.Element{}, logged: map[string]bool{}}
}

// lookup is the result of looking for a part's answer.
type lookup uint8

const (
	lookupMiss    lookup = iota // read the rows
	lookupStore                 // read the rows and store the answer
	lookupChanged               // read the rows, which may differ from those of the last lookup
	lookupHit                   // the answer is there
)

// lookupPart looks for the answer of a part over rows with the given version token, and
// keeps the token for the next lookup.
func (c *Cache) lookupPart(id ID, version string) (lookup, *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if version == "" {
		c.counts.Unproven++
		return lookupMiss, nil
	}
	el := c.entries[id]
	if el == nil {
		c.addEntry(id, version)
		return lookupMiss, nil
	}

	c.order.MoveToFront(el)
	e := el.Value.(*entry)
	switch {
	case e.version != version: //fault:answer-of-changed-rows TestLaw_embedded
		c.counts.Changed++
		c.resetEntry(e, version)
		return lookupChanged, nil
	case e.answer == nil: // queried again, and nothing has changed: worth storing
		return lookupStore, nil
	}

	c.countHit(e.answer)
	a, _ := e.answer.(*answer) // plans have other IDs, so it is that of a part
	return lookupHit, a
}

// reader is an answer that reports the cost of reading it.
type reader interface{ Read() (rows, bytes int64) }

// countHit counts an answer that is given again. REQUIRES: c.mu is held.
func (c *Cache) countHit(a Answer) {
	c.counts.Hits++
	if r, ok := a.(reader); ok {
		rows, bytes := r.Read()
		c.counts.SavedRows += rows
		c.counts.SavedBytes += bytes
	}
}

// Read returns what was read for the answer.
func (a *answer) Read() (rows, bytes int64) { return a.stats.Rows, a.stats.Bytes }

// addEntry adds an entry without an answer. REQUIRES: c.mu is held.
func (c *Cache) addEntry(id ID, version string) {
	c.counts.New++
	c.entries[id] = c.order.PushFront(&entry{id: id, version: version, bytes: entryBytes})
	c.addBytes(entryBytes)
}

// resetEntry drops the answer of rows that may have changed. REQUIRES: c.mu is held.
func (c *Cache) resetEntry(e *entry, version string) {
	c.bytes -= e.bytes - entryBytes
	e.version, e.answer, e.bytes = version, nil, entryBytes
}

// store caches an answer that was made of rows with the given version token, which was
// taken before they were read. It reports whether the answer is cached: it is not if
// another lookup has seen another token since, or has stored its answer first, if the
// entry was evicted, or if the answer is too large.
func (c *Cache) store(id ID, version string, a Answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	el := c.entries[id]
	if el == nil || !c.fits(a.Bytes()) {
		return false
	}
	e := el.Value.(*entry)
	if e.version != version || e.answer != nil {
		return false
	}

	c.counts.Kept++
	e.answer, e.bytes = a, entryBytes+a.Bytes()
	c.addBytes(a.Bytes())
	return true
}

// dropAnswer drops the answer that is cached under a version token.
func (c *Cache) dropAnswer(id ID, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if el := c.entries[id]; el != nil && el.Value.(*entry).version == version {
		// No token equals the empty one: the next query reads the rows.
		c.resetEntry(el.Value.(*entry), "")
	}
}

// Drop removes everything: the next query of each part reads its rows.
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

// fits reports whether an answer of that size may be cached.
func (c *Cache) fits(bytes int64) bool { return bytes <= c.limit/answerShare }

// addBytes counts bytes and evicts entries, the least recently used first, until
// all fit. REQUIRES: c.mu is held.
func (c *Cache) addBytes(bytes int64) {
	c.bytes += bytes
	for c.bytes > c.limit && c.order.Len() > 0 {
		e := c.order.Remove(c.order.Back()).(*entry)
		delete(c.entries, e.id)
		c.bytes -= e.bytes
		c.counts.Evictions++
	}
}

// Bytes returns about the memory of the batches.
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

// Holds reports whether the answer of a part is cached.
func (c *Cache) Holds(part *scanplan.Part) bool {
	if c == nil {
		return false
	}
	return c.holdsID(PartKey(part))
}

func (c *Cache) holdsID(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	el := c.entries[id]
	return el != nil && el.Value.(*entry).answer != nil
}

// logOnce logs a reason why answers are not cached, each reason once.
func (c *Cache) logOnce(reason string) {
	c.mu.Lock()
	first := !c.logged[reason] && len(c.logged) < maxLogged
	if first {
		c.logged[reason] = true
	}
	c.mu.Unlock()

	if first {
		c.log.Warn("result cache: answers are not cached", "reason", reason)
	}
}
