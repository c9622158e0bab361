// Package completion finds names by any part of them: for "cpu" sys.cpu.user. Lists of names begin with a prefix in
// the UID table, so a part is found only by looking at all names. They are kept in memory, some 60 bytes each, and a
// search is a pass over their bytes, which takes milliseconds for a million.
//
// The list of a kind is exact as the table was when the search began, as far as anybody tells: a change of names by
// this process begins a generation (see uid.Dictionary), one by another process of Downpour counts in the table, and
// both load the list again. New names are found by the numbers that were given since the last search. What OpenTSDB
// renames or deletes shows after reloadEvery.
//
// Kinds that do not fit maxBytes are searched in the table.
package completion

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/uid"
)

const (
	// maxBytes bounds the names of a kind that are kept. In memory they take twice as much.
	maxBytes = 64 << 20
	// maxNew is how many numbers are looked at one by one. For more the list is loaded again.
	maxNew = 20_000
	// assignedWithin is how long after its number was given a name can appear. Numbers without a name by then
	// are lost: their writers have died, or another writer gave the name its UID.
	assignedWithin = 3 * time.Minute
	// reloadEvery is the time after which a list is loaded again where OpenTSDB may have changed names.
	reloadEvery = 5 * time.Minute
	// reloadDrawn is reloadEvery for names whose UIDs are drawn at random.
	reloadDrawn = 10 * time.Second
)

// Config is what an index works with.
type Config struct {
	Names *uid.Dictionary
	// Shared is set if other processes may change the names.
	Shared bool
	// Now is the clock.
	Now func() time.Time
}

// Index finds names. Its methods may be called from many goroutines.
type Index struct {
	cfg   Config
	kinds map[encoding.UIDKind]*kindIndex
}

// New returns an index, which has read nothing yet.
func New(cfg Config) *Index {
	x := &Index{cfg: cfg, kinds: map[encoding.UIDKind]*kindIndex{}}
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		x.kinds[kind] = &kindIndex{cfg: &x.cfg, kind: kind}
	}
	return x
}

// Find returns up to most names of a kind that hold all words of a text, whatever their capitals, and how many do.
// Names come before others if the first word is all of them, if they begin with it, or if a part of them does;
// those that are alike in that are in byte order. Without words all names are found. The errors are those of the store.
func (x *Index) Find(ctx context.Context, kind encoding.UIDKind, text string, most int) (names []string, total int,
	err error) {
	words := strings.Fields(fold(text))
	m := &matches{most: most}
	l, err := x.kinds[kind].current(ctx)
	switch {
	case err != nil:
		return nil, 0, err
	case l != nil:
		l.search(words, m)
	default:
		err = x.searchTable(ctx, kind, words, m)
	}
	return m.best(), m.total, err
}

// Bounds of what Near does for a name that does not exist, which anybody may send often.
const (
	mostNear      = 5
	nearLoads     = 200_000 // names that it would have to read first
	nearDistances = 20_000  // names whose distance it measures
)

// Near returns a few names of a kind that may be meant by one that does not exist, the nearest first: names
// that hold it, or all its parts, or else those that differ in few letters. It returns none where finding them
// would cost much, or fails.
func (x *Index) Near(ctx context.Context, kind encoding.UIDKind, name string) []string {
	k := x.kinds[kind]
	if !k.cheap(ctx) {
		return nil
	}
	l, err := k.current(ctx)
	if err != nil || l == nil {
		return nil
	}
	parts := strings.FieldsFunc(fold(name), func(r rune) bool { return strings.ContainsRune(separators, r) })
	for _, words := range [][]string{strings.Fields(fold(name)), parts} {
		m := &matches{most: mostNear}
		if len(words) > 0 {
			l.search(words, m)
		}
		if m.total > 0 {
			return m.best()
		}
	}
	if len(l.ends) > nearDistances {
		return nil
	}
	return l.nearest(fold(name), mostNear)
}

// cheap reports whether the list of a kind is there, or the names are few.
func (k *kindIndex) cheap(ctx context.Context) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list != nil {
		return true
	}
	as, err := k.cfg.Names.Counters(ctx)
	given := int64(0)
	for _, n := range as.Given { // the table has the names of all kinds
		given += n
	}
	return err == nil && given <= nearLoads
}

// searchTable searches the names in the table.
func (x *Index) searchTable(ctx context.Context, kind encoding.UIDKind, words []string, m *matches) error {
	for e, err := range x.cfg.Names.Each(ctx, kind, "") {
		if err != nil {
			return err
		}
		if len(words) == 0 {
			m.add(whole, e.Name)
		} else if r, ok := rankOf(fold(e.Name), words); ok {
			m.add(r, e.Name)
		}
	}
	return nil
}

// kindIndex is the names of a kind.
type kindIndex struct {
	cfg  *Config
	kind encoding.UIDKind

	mu      sync.Mutex
	list    *list     // nil if the names are too many
	loaded  time.Time // zero if nothing is
	as      uid.Counters
	pending []pending // numbers up to as.Given without a name in the list
	drawn   bool      // UIDs were drawn at random, so that no number shows new names
}

// pending is a number that may still become a name's UID.
type pending struct {
	number uint64
	until  time.Time
}

// current returns the list with all names that the table has now, nil if they are too many to be kept.
func (k *kindIndex) current(ctx context.Context) (*list, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.cfg.Now()
	as, err := k.cfg.Names.Counters(ctx)
	if err != nil {
		return nil, err
	}
	given := as.Given[k.kind] - k.as.Given[k.kind]
	// OpenTSDB does not say what it changes, and names that were too many may have been deleted.
	age := now.Sub(k.loaded)
	old := age >= reloadEvery && (k.cfg.Shared || k.list == nil) || age >= reloadDrawn && k.drawn
	switch {
	case k.loaded.IsZero(), old, as.Changes != k.as.Changes, as.Generation != k.as.Generation, given < 0,
		given > maxNew && k.list != nil:
		err = k.load(ctx, as, now)
	case k.list != nil:
		err = k.addNew(ctx, as, now)
	}
	return k.list, err
}

// load reads all names.
func (k *kindIndex) load(ctx context.Context, as uid.Counters, now time.Time) error {
	k.list, k.loaded, k.pending, k.drawn = nil, time.Time{}, nil, false
	var names []string
	size := 0
	late := map[uint64]bool{} // numbers given lately that have a name
	oldest := max(0, as.Given[k.kind]-maxNew)
	for e, err := range k.cfg.Names.Each(ctx, k.kind, "") {
		if err != nil {
			return err
		}
		if size += len(e.Name) + 1; size > maxBytes {
			k.as, k.loaded = as, now
			return nil
		}
		names = append(names, e.Name)
		n := encoding.UIDNumber(e.UID)
		if n > uint64(oldest) {
			late[n] = true
		}
		k.drawn = k.drawn || n > uint64(as.Given[k.kind])
	}
	k.list, k.as, k.loaded = newList(names), as, now
	for n := uint64(oldest) + 1; n <= uint64(as.Given[k.kind]); n++ {
		if !late[n] {
			k.pending = append(k.pending, pending{n, now.Add(assignedWithin)})
		}
	}
	return nil
}

// addNew adds the names of numbers that have been given since the list was loaded.
func (k *kindIndex) addNew(ctx context.Context, as uid.Counters, now time.Time) error {
	waiting := slices.DeleteFunc(k.pending, func(p pending) bool { return now.After(p.until) })
	for n := k.as.Given[k.kind] + 1; n <= as.Given[k.kind]; n++ {
		waiting = append(waiting, pending{uint64(n), now.Add(assignedWithin)})
	}
	k.as, k.pending = as, waiting
	if len(waiting) == 0 {
		return nil
	}

	numbers := make([]uint64, len(waiting))
	for i, p := range waiting {
		numbers[i] = p.number
	}
	named, err := k.cfg.Names.Numbered(ctx, k.kind, numbers)
	if err != nil || len(named) == 0 {
		return err
	}
	k.pending = slices.DeleteFunc(waiting, func(p pending) bool { _, ok := named[p.number]; return ok })
	k.list = k.list.with(slices.Collect(maps.Values(named)))
	return nil
}
