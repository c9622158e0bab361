package access

import (
	"math"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Bounds of what is cached, and of what learning it may cost.
const (
	// maxEntries bounds the entries, and maxBytes their memory: an entry of a few
	// prefixes takes a kilobyte, one of very many tags much more.
	maxEntries = 4096
	maxBytes   = 16 << 20
	// MaxPrefixes bounds the key prefixes of one tag key.
	MaxPrefixes = 256
	// RowsPerPrefix is the number of rows that an hour must have for each prefix:
	// with fewer, seeking costs more than looking at all rows. It was measured on
	// HBase with compacted rows.
	RowsPerPrefix = 16
	// fewRows is a number of rows in an hour that is not worth being read in
	// parallel.
	fewRows = 32
	// wastedRows is how many unwanted rows of an hour may be read before learning prefixes is worth
	// its cost, and wastedRowsPerRange how many more for each range.
	wastedRows         = 64
	wastedRowsPerRange = 4
	// maxPause bounds the number of scans between two times of learning.
	maxPause = 4096
)

// CacheKey names the entry of a part: one for the parts in one salt bucket of all
// plans of a metric that want values of the same tag keys.
func CacheKey(p *scanplan.Part) string {
	var b strings.Builder
	b.WriteString(p.Plan.Table)
	b.WriteByte(0) // ends the table's name, so that no two keys are equal by chance
	b.Write(p.Range.Start[:p.Plan.Schema.SaltWidth])
	b.Write(p.Plan.Metric)
	for _, t := range Wanted(&p.Plan) {
		b.Write(t.TagK)
	}
	return b.String()
}

// Wanted returns the predicates of a plan that list the values they admit.
func Wanted(p *scanplan.Plan) (tags []scanplan.TagPredicate) {
	for _, t := range p.Tags {
		if t.Op == scanplan.In {
			tags = append(tags, t)
		}
	}
	return tags
}

// PrefixCache holds known key prefixes, and how many unwanted rows parts have read. It
// decides when learning prefixes is worth its cost. It is for many goroutines, its size
// is bounded, and it never has to be invalidated: see the package comment. A nil
// PrefixCache is empty and learns nothing.
type PrefixCache struct {
	mu      sync.Mutex
	entries map[string]*entry
	bytes   int    // of the entries that have prefixes
	clock   uint64 // counts uses; orders entries by their last use
}

// entry is what is known under one CacheKey.
type entry struct {
	used     uint64 // clock of its last use
	known    Known
	wasted   ScanCost // the last scan that read many unwanted rows
	scans    int      // such scans since prefixes were last learned
	pause    int      // such scans to wait for before learning again
	learning bool     // between BeginLearning and EndLearning
	bytes    int      // 0 before prefixes were learned
}

// size is about the memory that an entry takes, in bytes.
func (e *entry) size(key string) int {
	n := 256 + len(key)
	for _, p := range e.known.Prefixes {
		n += p.bytes()
	}
	return n
}

// Known is what a part can use. It must not be changed.
type Known struct {
	// Prefixes are those of each wanted tag, in the order of Wanted: nil for a tag
	// whose prefixes are unknown or too many. The slice is nil if nothing was
	// learned.
	Prefixes []*Prefixes
	// Few is set if the last part read few rows, and Many if it read more.
	Few, Many bool
	// Clean is set if no row was between the known prefixes of all wanted tags, when they were
	// learned and since: a filter for such rows is not needed.
	Clean bool
}

// NewPrefixCache returns an empty cache.
func NewPrefixCache() *PrefixCache { return &PrefixCache{entries: map[string]*entry{}} }

// Lookup returns what is known under a key.
func (c *PrefixCache) Lookup(key string) Known {
	if c == nil {
		return Known{}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.use(e)
		return e.known
	}
	return Known{}
}

// ScanCost is the work of a part's scan.
type ScanCost struct {
	From, To int64         // base times of its rows, s, half-open
	Ranges   int64         // key ranges in all hours together
	Scanned  int64         // rows that servers read
	Wanted   int64         // those among them that the plan admits
	Took     time.Duration // to read them
}

// hours is the number of hours of the scan.
func (s *ScanCost) hours() int64 { return (s.To - s.From) / encoding.RowSeconds }

// Record takes note of what a scan cost.
func (c *PrefixCache) Record(key string, s ScanCost) {
	// A scan without rows does not show where rows are.
	if c == nil || s.Scanned == 0 || s.hours() <= 0 {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	e.known.Few = s.Scanned <= fewRows*s.hours()
	e.known.Many = !e.known.Few
	if s.Scanned-s.Wanted > wastedRows*s.hours()+wastedRowsPerRange*s.Ranges {
		e.wasted = s
		e.scans++
		// Some of them may have lain between known prefixes.
		e.known.Clean = false
	}
}

// Learning is what the caller of BeginLearning shall learn.
type Learning struct {
	From, To int64         // base times between which there are rows, half-open
	Limit    int           // prefixes of a tag key; more are of no use
	Within   time.Duration // learning is not worth more time
}

// Learning may take a few times as long as the wasteful scan, between these bounds.
const (
	minLearning = 250 * time.Millisecond
	maxLearning = 2 * time.Second
)

// BeginLearning reports whether the caller shall learn the prefixes of a key now. If
// so, it must call EndLearning. One caller at a time learns those of a key.
func (c *PrefixCache) BeginLearning(key string) (Learning, bool) {
	if c == nil {
		return Learning{}, false
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	// No scan has wasted reads, another caller is learning, or it is too early to learn again.
	if e == nil || e.learning || e.scans <= e.pause {
		return Learning{}, false
	}

	e.learning = true
	// Rows of an hour that seeking would skip: it pays from RowsPerPrefix of them on.
	rows := (e.wasted.Scanned - e.wasted.Wanted) / e.wasted.hours()
	return Learning{From: e.wasted.From, To: e.wasted.To, Limit: int(min(rows/RowsPerPrefix, MaxPrefixes)),
		Within: min(max(4*e.wasted.Took, minLearning), maxLearning)}, true
}

// EndLearning ends what BeginLearning began. prefixes has nil for a tag with too many
// of them; after an error it is ignored.
func (c *PrefixCache) EndLearning(key string, prefixes []*Prefixes, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	e.learning, e.scans = false, 0

	// The table may change, so prefixes are learned again, after more and more wasteful scans;
	// after an error sooner.
	if err != nil {
		e.pause = min(2*e.pause+1, maxPause)
		return
	}
	e.pause = min(4*e.pause+4, maxPause)

	e.known.Clean = len(prefixes) > 0
	for i, p := range prefixes {
		e.known.Clean = e.known.Clean && p != nil
		if i < len(e.known.Prefixes) {
			prefixes[i] = union(p, e.known.Prefixes[i])
		}
	}

	// Nil: there was no row to learn from. What was known before stays true.
	if prefixes != nil {
		e.known.Prefixes = prefixes
	}
	size := e.size(key)
	c.bytes += size - e.bytes
	e.bytes = size
	for c.bytes > maxBytes && c.evict() {
	}
}

// entry returns the entry of a key, which it makes if there is none. The least recently used entry
// is evicted if there are too many.
func (c *PrefixCache) entry(key string) *entry {
	e := c.entries[key]
	if e == nil {
		if len(c.entries) >= maxEntries {
			c.evict()
		}
		e = &entry{}
		c.entries[key] = e
	}
	c.use(e)
	return e
}

// use makes e the entry that was used last.
func (c *PrefixCache) use(e *entry) {
	c.clock++
	e.used = c.clock
}

// evict removes the least recently used entry whose prefixes are not being learned. It returns
// false if there is none.
func (c *PrefixCache) evict() bool {
	oldest, at := "", uint64(math.MaxUint64)
	for key, e := range c.entries {
		if e.used < at && !e.learning {
			oldest, at = key, e.used
		}
	}

	e, ok := c.entries[oldest]
	if ok {
		c.bytes -= e.bytes
		delete(c.entries, oldest)
	}
	return ok
}
