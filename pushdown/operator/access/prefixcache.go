package access

import (
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Bounds of what is remembered, and of what it may cost.
const (
	// remembered bounds the subjects, and rememberedBytes their memory: of some
	// heads a subject takes a kilobyte, of very many tags very much more.
	remembered      = 4096
	rememberedBytes = 16 << 20
	// MaxHeads bounds the heads of one tag key.
	MaxHeads = 256
	// RowsPerHead is how many rows there must be for each head: below, the
	// seeks cost more than looking at all rows. HBase, compacted rows.
	RowsPerHead = 16
	// fewRows is how many rows of an hour are so few that reading them side by
	// side wins nothing.
	fewRows = 32
	// walkRows is how many rows that nobody wants may be looked at in an hour
	// before heads are worth learning.
	walkRows = 64
	// rangeRows is how many rows may be looked at for each range sought.
	rangeRows = 4
	// lastPause is the largest number of walks between two learnings.
	lastPause = 4096
)

// Subject names what is remembered together: the parts in one salt bucket of the
// plans of one metric that want values of the same tag keys.
func Subject(p *scanplan.Part) string {
	var b strings.Builder
	b.WriteString(p.Plan.Table)
	b.WriteByte(0)
	b.Write(p.Range.Start[:p.Plan.Schema.SaltWidth])
	b.Write(p.Plan.Metric)
	for _, t := range Wanted(&p.Plan) {
		b.Write(t.TagK)
	}
	return b.String()
}

// Wanted are the predicates of a plan that name the values they want.
func Wanted(p *scanplan.Plan) (tags []scanplan.TagPredicate) {
	for _, t := range p.Tags {
		if t.Op == scanplan.In {
			tags = append(tags, t)
		}
	}
	return tags
}

// Memory remembers heads, and how much plans look at for what they want. It is
// for many goroutines, bounded, and never needs to be told of a change in a
// table. A nil Memory remembers nothing.
type Memory struct {
	mu       sync.Mutex
	subjects map[string]*subject
	bytes    int    // of the subjects
	clock    uint64 // of use
}

// subject is what is known of one subject.
type subject struct {
	used  uint64
	known Known
	walk  Walk // the last one that looked at much for nothing
	walks int  // such walks since the last learning
	pause int  // walks before the next one
	busy  bool // somebody learns
	bytes int
}

// size is the memory that a subject takes, about.
func (s *subject) size(name string) int {
	n := 256 + len(name)
	for _, h := range s.known.Heads {
		n += h.bytes()
	}
	return n
}

// Known is what a plan can use. It must not be changed.
type Known struct {
	// Prefixes are those of each of the wanted tags, in their order; nil for one
	// whose heads are unknown or too many, and nil altogether.
	Heads []*Prefixes
	// Few tells that the last part looked at few rows.
	Few bool
	// Clean tells that there were no rows between the heads of all wanted tags,
	// when they were learnt and since: what would judge such rows is not needed.
	Clean bool
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{subjects: map[string]*subject{}} }

// Look returns what is known.
func (m *Memory) Look(name string) Known {
	if m == nil {
		return Known{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.subjects[name]; s != nil {
		m.use(s)
		return s.known
	}
	return Known{}
}

// Walk is what a part of a plan looked at.
type Walk struct {
	From, To int64         // base times of its rows, s, half-open
	Ranges   int64         // of keys, all hours together
	Looked   int64         // rows that servers looked at
	Wanted   int64         // rows among them that the plan wants
	Took     time.Duration // to read them
}

func (w *Walk) hours() int64 { return (w.To - w.From) / encoding.RowSeconds }

// Note remembers how a part went.
func (m *Memory) Note(name string, w Walk) {
	if m == nil || w.Looked == 0 || w.hours() <= 0 {
		return // where there are no rows nothing can be told
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.get(name)
	s.known.Few = w.Looked <= fewRows*w.hours()
	if w.Looked-w.Wanted > walkRows*w.hours()+rangeRows*w.Ranges {
		s.walk = w
		s.walks++
		s.known.Clean = false
	}
}

// Task is what is to be learnt.
type Task struct {
	From, To int64         // base times between which there are rows, half-open
	Limit    int           // of the heads of a tag key; more are worth nothing
	Within   time.Duration // it is not worth more
}

// Bounds of the time for learning, which is also bounded by what a walk takes.
const (
	leastLearning = 250 * time.Millisecond
	mostLearning  = 2 * time.Second
)

// Begin tells whether the caller shall learn the heads of a subject now; if so it
// must end with Learned.
func (m *Memory) Begin(name string) (Task, bool) {
	if m == nil {
		return Task{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.subjects[name]
	if s == nil || s.busy || s.walks <= s.pause {
		return Task{}, false
	}
	s.busy = true
	rows := (s.walk.Looked - s.walk.Wanted) / s.walk.hours()
	return Task{From: s.walk.From, To: s.walk.To, Limit: int(min(rows/RowsPerHead, MaxHeads)),
		Within: min(max(4*s.walk.Took, leastLearning), mostLearning)}, true
}

// Learned ends what Begin began. Prefixes that are too many are nil. To learn
// again waits for more and more walks, in case that the table changes; not for so
// many if there was an error, after which heads do not count.
func (m *Memory) Learned(name string, heads []*Prefixes, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.get(name)
	s.busy, s.walks = false, 0
	if err != nil {
		s.pause = min(2*s.pause+1, lastPause)
		return
	}
	s.pause = min(4*s.pause+4, lastPause)
	s.known.Clean = len(heads) > 0
	for i, h := range heads {
		s.known.Clean = s.known.Clean && h != nil
		if i < len(s.known.Heads) {
			heads[i] = join(h, s.known.Heads[i])
		}
	}
	if heads != nil {
		s.known.Heads = heads
	}
	m.weigh(name, s)
}

// get returns a subject, which it makes if need be, forgetting the one that has
// not been used for the longest.
func (m *Memory) get(name string) *subject {
	s := m.subjects[name]
	if s == nil {
		if len(m.subjects) >= remembered {
			m.forget()
		}
		s = &subject{}
		m.subjects[name] = s
		m.weigh(name, s)
	}
	m.use(s)
	return s
}

// weigh counts the bytes of a subject anew, and makes room for them.
func (m *Memory) weigh(name string, s *subject) {
	m.use(s)
	size := s.size(name)
	m.bytes += size - s.bytes
	s.bytes = size
	for m.bytes > rememberedBytes && m.forget() {
	}
}

func (m *Memory) use(s *subject) {
	m.clock++
	s.used = m.clock
}

// forget drops the subject that has not been used for the longest, and tells
// whether there was one that nobody is learning about.
func (m *Memory) forget() bool {
	oldest, at := "", m.clock+1
	for name, s := range m.subjects {
		if s.used < at && !s.busy {
			oldest, at = name, s.used
		}
	}
	s, ok := m.subjects[oldest]
	if ok {
		m.bytes -= s.bytes
		delete(m.subjects, oldest)
	}
	return ok
}
