// Package completion finds names by any part of them: for "cpu" sys.cpu.user. Lists of names begin with a prefix in
// the UID table, so a part is found only by looking at all names. They are kept in memory, twice, with and without
// capitals, and a search is a pass over their bytes.
//
// A list has the names that the table had when the search began. A rename or deletion by this process begins a
// generation (see uid.Dictionary), one by another process of Downpour is counted in the table, and both load the
// list again. New names are found by the numbers that were given since the last search. What OpenTSDB renames or
// deletes shows after reloadEvery.
//
// Kinds that do not fit Config.Bytes are searched in the table.
package completion

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
)

const (
	// DefaultBytes has room for some four million names of 20 letters.
	DefaultBytes = 192 << 20
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
	// Bytes bounds the memory of all lists. Default DefaultBytes.
	Bytes int64
	// Shared is set if other processes may change the names.
	Shared bool
	// Now is the clock.
	Now func() time.Time
}

// Index finds names. Its methods may be called from many goroutines.
type Index struct {
	cfg   Config
	kinds map[encoding.UIDKind]*kindIndex
	held  atomic.Int64 // bytes of all lists
}

// New returns an index, which has read nothing yet.
func New(cfg Config) *Index {
	cfg.Bytes = cmp.Or(cfg.Bytes, DefaultBytes)
	x := &Index{cfg: cfg, kinds: map[encoding.UIDKind]*kindIndex{}}
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		x.kinds[kind] = &kindIndex{Index: x, kind: kind, turn: make(chan struct{}, 1)}
	}
	return x
}

// Find returns up to most names of a kind that hold all words of a text, whatever their capitals, and how many do.
// Names come before others if the first word is all of them, if they begin with it, or if a part of them does;
// those that are alike in that are in byte order. Without words all names are found. It reserves memory for the names.
// The errors are those of the store, and that the memory is short.
func (x *Index) Find(ctx context.Context, kind encoding.UIDKind, text string, most int) (names []string, total int,
	err error) {
	m := &matches{most: most}
	if _, err = x.find(ctx, kind, text, m); err != nil {
		return nil, 0, err
	}
	names = m.best()
	return names, m.total, memory.Reserve(ctx, bytesOf(names))
}

// Newest is Find in another order: the names that got their UIDs last come first. UIDs that are drawn at random do not
// say when: ok is false then, and the order is that of Find.
func (x *Index) Newest(ctx context.Context, kind encoding.UIDKind, text string, most int) (names []string, total int,
	ok bool, err error) {
	m := &matches{most: most, newest: true}
	drawn, err := x.find(ctx, kind, text, m)
	switch {
	case err != nil:
		return nil, 0, false, err
	case drawn:
		names, total, err = x.Find(ctx, kind, text, most)
		return names, total, false, err
	}
	names = m.best()
	return names, m.total, true, memory.Reserve(ctx, bytesOf(names))
}

// find adds the names of a kind that hold all words of a text. drawn says that their UIDs are drawn at random.
func (x *Index) find(ctx context.Context, kind encoding.UIDKind, text string, m *matches) (drawn bool, err error) {
	words := strings.Fields(fold(text))
	l, drawn, err := x.kinds[kind].current(ctx)
	switch {
	case err != nil:
	case l != nil:
		l.search(words, m)
	default:
		err = x.searchTable(ctx, kind, words, m)
	}
	return drawn, err
}

// bytesOf is about the memory of names in a list and in the answer that is made of it.
func bytesOf(names []string) (n int64) {
	for _, name := range names {
		n += 2 * int64(len(name)+32)
	}
	return n
}

// Bounds of what Near does for a name that does not exist, which anybody may send often.
const (
	mostNear      = 5
	nearLoads     = 200_000 // names that it reads or searches
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
	l, _, err := k.current(ctx)
	if err != nil || l == nil || len(l.ends) > nearLoads {
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
	if k.lock(ctx) != nil {
		return false
	}
	defer k.unlock()
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
		n := name{e.Name, numberOf(encoding.UIDNumber(e.UID))}
		if len(words) == 0 {
			m.add(whole, n)
		} else if r, ok := rankOf(fold(e.Name), words); ok {
			m.add(r, n)
		}
	}
	return nil
}

// kindIndex is the names of a kind. Its fields are for who has the turn.
type kindIndex struct {
	*Index
	kind encoding.UIDKind
	turn chan struct{} // has an element while somebody has it

	list    *list     // nil if nothing is loaded, or the names are too many
	loaded  time.Time // zero if nothing is
	as      uid.Counters
	pending []pending       // numbers up to as.Given without a name in the list
	ahead   map[uint64]bool // numbers beyond those that had been given when the list was begun, whose names are in it
	drawn   bool            // UIDs were drawn at random, so that no number shows new names
	loading *loading        // a list that is read in part; nil for none
}

// pending is a number that may still become a name's UID.
type pending struct {
	number uint64
	until  time.Time
}

// lock waits for the turn.
func (k *kindIndex) lock(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *kindIndex) unlock() { <-k.turn }

// current returns the list with all names that the table has now, nil if they are too many to be kept, and whether
// their UIDs are drawn at random.
func (k *kindIndex) current(ctx context.Context) (l *list, drawn bool, err error) {
	if err := k.lock(ctx); err != nil {
		return nil, false, err
	}
	defer k.unlock()
	now := k.cfg.Now()
	as, err := k.cfg.Names.Counters(ctx)
	if err != nil {
		return nil, false, err
	}
	given := as.Given[k.kind] - k.as.Given[k.kind]
	// OpenTSDB does not say what it changes, and names that were too many may have been deleted.
	age := now.Sub(k.loaded)
	old := age >= reloadEvery && (k.cfg.Shared || k.list == nil) || age >= reloadDrawn && k.drawn
	switch {
	case k.loaded.IsZero(), old, !sameNames(as, k.as), given < 0, given > maxNew && k.list != nil:
		err = k.load(ctx, as, now)
	case k.list != nil:
		err = k.addNew(ctx, as, now)
	}
	return k.list, k.drawn, err
}

// sameNames reports whether no name was renamed or deleted between two readings of the counters.
func sameNames(a, b uid.Counters) bool { return a.Changes == b.Changes && a.Generation == b.Generation }

// loading is a list that is being read. Who reads it may leave, as a page does whose user types on; the next
// one goes on from there.
type loading struct {
	as    uid.Counters // before the first name was read
	names []name
	size  int64
	late  map[uint64]bool // numbers given lately that have a name
	last  uint64          // the highest number of a name
}

// oldest returns the number after which numbers are late: their names may appear behind the place where the list
// is being read.
func (l *loading) oldest(kind encoding.UIDKind) uint64 {
	return uint64(max(0, l.as.Given[kind]-maxNew))
}

// load reads all names.
func (k *kindIndex) load(ctx context.Context, as uid.Counters, now time.Time) error {
	k.keep(nil)
	k.loaded, k.pending = time.Time{}, nil
	l := k.loading
	if l == nil || !sameNames(l.as, as) || as.Given[k.kind]-l.as.Given[k.kind] > maxNew {
		l = &loading{as: as, late: map[uint64]bool{}}
		k.loading = l
	}
	after := ""
	if n := len(l.names); n > 0 {
		after = l.names[n-1].text
	}
	for e, err := range k.cfg.Names.EachAfter(ctx, k.kind, "", after) {
		if err != nil {
			return err
		}
		if l.size += listBytes(e.Name); k.held.Load()+l.size > k.cfg.Bytes {
			k.as, k.loaded, k.loading, k.drawn = l.as, now, nil, l.last > uint64(as.Given[k.kind])
			return nil
		}
		n := encoding.UIDNumber(e.UID)
		l.names = append(l.names, name{e.Name, numberOf(n)})
		if n > l.oldest(k.kind) {
			l.late[n] = true
		}
		l.last = max(l.last, n)
	}
	end, err := k.cfg.Names.Counters(ctx)
	if err != nil {
		return err
	}

	k.keep(newList(l.names))
	k.as, k.loaded, k.loading, k.ahead = l.as, now, nil, l.late
	if k.drawn = l.last > uint64(end.Given[k.kind]); k.drawn {
		k.ahead = nil // nearly all numbers, none of which will be given
	}
	for n := l.oldest(k.kind) + 1; n <= uint64(l.as.Given[k.kind]); n++ {
		if !l.late[n] {
			k.pending = append(k.pending, pending{n, now.Add(assignedWithin)})
		}
	}
	return k.addNew(ctx, as, now)
}

// addNew adds the names of numbers that have been given since the list was loaded.
func (k *kindIndex) addNew(ctx context.Context, as uid.Counters, now time.Time) error {
	waiting := slices.DeleteFunc(k.pending, func(p pending) bool { return now.After(p.until) })
	for n := uint64(k.as.Given[k.kind]) + 1; n <= uint64(as.Given[k.kind]); n++ {
		if !k.ahead[n] {
			waiting = append(waiting, pending{n, now.Add(assignedWithin)})
		}
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
	added := make([]name, 0, len(named))
	for number, text := range named {
		added = append(added, name{text, numberOf(number)})
	}
	slices.SortFunc(added, func(a, b name) int { return cmp.Compare(a.text, b.text) })
	k.keep(k.list.with(added))
	return nil
}

// keep replaces the list.
func (k *kindIndex) keep(l *list) {
	k.held.Add(l.bytes() - k.list.bytes())
	k.list = l
}
