package completion

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
)

// list is names in byte order, packed for a search that looks at all of them. It does not change.
type list struct {
	text    string // each name, and a line feed, which no name has
	folded  string // text without capitals; each name has the same place in it
	ends    []uint32
	numbers []uint32 // of the names' UIDs
}

// name is a name and the number of its UID.
type name struct {
	text   string
	number uint32
}

// numberOf is a UID's number as a list has it. Numbers beyond 32 bits are alike: no table has been given so many.
func numberOf(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// newList returns the list of sorted names.
func newList(names []name) *list {
	size := 0
	for _, n := range names {
		size += len(n.text) + 1
	}
	var b strings.Builder
	b.Grow(size)
	l := &list{ends: make([]uint32, len(names)), numbers: make([]uint32, len(names))}
	for i, n := range names {
		b.WriteString(n.text)
		b.WriteByte('\n')
		l.ends[i], l.numbers[i] = uint32(b.Len()), n.number
	}
	l.text = b.String()
	l.folded = fold(l.text)
	return l
}

// fold returns a name without capitals. Names are ISO-8859-1, where no small letter takes more or fewer bytes.
func fold(name string) string { return strings.ToLower(name) }

// span is the place of name i, without its line feed.
func (l *list) span(i int) (from, to uint32) {
	if i > 0 {
		from = l.ends[i-1]
	}
	return from, l.ends[i] - 1
}

// listBytes is about the memory of a name in a list.
func listBytes(name string) int64 { return 2*int64(len(name)+1) + 8 }

// bytes is the memory of a list; nil takes none.
func (l *list) bytes() int64 {
	if l == nil {
		return 0
	}
	return 2*int64(len(l.text)) + 8*int64(len(l.ends))
}

// with returns a list that has more names, which are sorted.
func (l *list) with(more []name) *list {
	all := make([]name, 0, len(l.ends)+len(more))
	for i := range l.ends {
		own := l.at(i)
		for len(more) > 0 && more[0].text < own.text {
			all, more = append(all, more[0]), more[1:]
		}
		if len(more) > 0 && more[0].text == own.text {
			more = more[1:]
		}
		all = append(all, own)
	}
	return newList(append(all, more...))
}

// at returns name i.
func (l *list) at(i int) name {
	from, to := l.span(i)
	return name{l.text[from:to], l.numbers[i]}
}

// search adds the names that hold all words to m, in byte order.
func (l *list) search(words []string, m *matches) {
	if len(words) == 0 {
		for i := range l.ends {
			m.add(whole, l.at(i))
		}
		return
	}
	for at, i := 0, 0; ; i++ {
		found := strings.Index(l.folded[at:], words[0])
		if found < 0 {
			return
		}
		i = l.nameAt(i, uint32(at+found))
		from, to := l.span(i)
		if rank, ok := rankOf(l.folded[from:to], words); ok {
			m.add(rank, l.at(i))
		}
		at = int(l.ends[i])
	}
}

// nameAt returns the name from first on that has a place in the text. Mostly it is the first, or one soon after it.
func (l *list) nameAt(first int, at uint32) int {
	step := 1
	for first+step < len(l.ends) && l.ends[first+step] <= at {
		first += step
		step *= 2
	}
	end := min(first+step, len(l.ends)-1)
	return first + sort.Search(end-first, func(i int) bool { return l.ends[first+i] > at })
}

// rank is how well a name fits; a smaller one is better.
type rank int

// Ranks, by the first word of what is searched for.
const (
	whole  rank = iota // the name is the word
	begins             // the name begins with it
	part               // a part of the name does, as user of sys.cpu.user
	inside             // it is somewhere else
	ranks  = 4
)

// separators end the parts of a name.
const separators = "._-/ "

// rankOf ranks a name, without capitals, for words. ok is false if it does not hold all of them.
func rankOf(name string, words []string) (r rank, ok bool) {
	for _, w := range words[1:] {
		if !strings.Contains(name, w) {
			return 0, false
		}
	}
	first := words[0]
	r, ok = inside, false
	for at := 0; ; {
		found := strings.Index(name[at:], first)
		if found < 0 {
			return r, ok
		}
		ok = true
		at += found
		switch {
		case len(name) == len(first):
			return whole, true
		case at == 0:
			return begins, true
		case strings.IndexByte(separators, name[at-1]) >= 0:
			r = part
		}
		at++
	}
}

// matches are the best names for words, and the number of all.
type matches struct {
	most   int
	newest bool // the best are those with the highest numbers
	byRank [ranks][]name
	total  int
}

// add adds a name. Those of one rank come in byte order.
func (m *matches) add(r rank, n name) {
	m.total++
	if m.newest {
		m.addNewest(n)
	} else if len(m.byRank[r]) < m.most {
		m.byRank[r] = append(m.byRank[r], n)
	}
}

// addNewest keeps the newest names, and up to as many others before it drops these.
func (m *matches) addNewest(n name) {
	kept := &m.byRank[whole]
	if *kept = append(*kept, n); len(*kept) > 2*m.most {
		sortNewest(*kept)
		*kept = (*kept)[:m.most]
	}
}

func sortNewest(names []name) {
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(b.number, a.number) })
}

// best returns the names by rank, or by age.
func (m *matches) best() []string {
	all := slices.Concat(m.byRank[:]...)
	if m.newest {
		sortNewest(all)
	}
	names := make([]string, min(len(all), m.most))
	for i := range names {
		names[i] = all[i].text
	}
	return names
}

// nearest returns the names that differ least from one without capitals, and in about a third of its letters at most.
func (l *list) nearest(name string, most int) []string {
	type near struct{ distance, at int }
	var all []near
	limit := (len(name) + 1) / 3
	var rows [3][]int
	for i := range l.ends {
		from, to := l.span(i)
		if d := distance(name, l.folded[from:to], limit, &rows); d <= limit {
			all = append(all, near{d, i})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.distance - b.distance })
	var names []string
	for _, n := range all[:min(most, len(all))] {
		from, to := l.span(n.at)
		names = append(names, l.text[from:to])
	}
	return names
}

// distance is the number of bytes that must be inserted, left out, replaced or exchanged with the next one to make b of
// a; if it is more than limit, any number that is. rows is memory to use again.
func distance(a, b string, limit int, rows *[3][]int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	for i := range rows {
		rows[i] = slices.Grow(rows[i][:0], len(b)+1)[:len(b)+1]
	}
	twoBefore, before, row := rows[0], rows[1], rows[2]
	leastBefore := 0
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := i + 1
		for j := range len(b) {
			d := before[j]
			if a[i] != b[j] {
				d = 1 + min(d, before[j+1], row[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, 1+twoBefore[j-1])
			}
			row[j+1] = d
			least = min(least, d)
		}
		if min(least, leastBefore) > limit {
			return limit + 1
		}
		leastBefore = least
		twoBefore, before, row = before, row, twoBefore
	}
	return before[len(b)]
}
