package dispatch

import (
	"iter"
	"net"
	"slices"
)

// placement are the healthy servers that read a table, and what they are next to. It never changes: when a server
// joins, leaves, fails or is well again, the registry makes another one. So a run of thousands of parts finds the place
// of each without looking at all servers, and sees by its pointer whether it has to look again.
type placement struct {
	places []*place
	next   []nearness       // of each place
	by     map[string][]int // from nearness.server to places, ascending
	on     map[string][]int // from nearness.host
	before bool             // one of them is of the release before, see batch.Previous
}

// nearness is the region server, host:port, that a pushdown server is next to, and that one's host. Either is empty if
// it is not known.
type nearness struct{ server, host string }

func nearnessOf(regionServer string) nearness {
	host, _, _ := net.SplitHostPort(regionServer) // "" if that is not known
	return nearness{regionServer, host}
}

func newPlacement() *placement { return &placement{by: map[string][]int{}, on: map[string][]int{}} }

func (l *placement) add(p *place, regionServer string) {
	at, near := len(l.places), nearnessOf(regionServer)
	l.places, l.next = append(l.places, p), append(l.next, near)
	if near.server != "" {
		l.by[near.server] = append(l.by[near.server], at)
	}
	if near.host != "" {
		l.on[near.host] = append(l.on[near.host], at)
	}
}

// candidates yields the servers for a part whose first row is held by the given region server, the closest first:
// those next to it, those next to another one on its host, all others. turn rotates equally close ones, so that parts
// spread over them.
func (l *placement) candidates(regionServer string, turn int) iter.Seq[*place] {
	return func(yield func(*place) bool) {
		if len(l.places) == 0 {
			return
		}
		first, rows := turn%len(l.places), nearnessOf(regionServer)
		closest, close := l.by[rows.server], l.on[rows.host]
		for _, at := range rotated(closest, first) {
			if !yield(l.places[at]) {
				return
			}
		}
		for _, at := range rotated(close, first) {
			if l.next[at].server != rows.server && !yield(l.places[at]) {
				return
			}
		}
		for k := range l.places {
			at := (first + k) % len(l.places)
			near := &l.next[at]
			isCloser := near.server != "" && near.server == rows.server || near.host != "" && near.host == rows.host
			if !isCloser && !yield(l.places[at]) {
				return
			}
		}
	}
}

// rotated yields the numbers from first on, and then those before it. They are ascending.
func rotated(numbers []int, first int) iter.Seq2[int, int] {
	from, _ := slices.BinarySearch(numbers, first)
	return func(yield func(int, int) bool) {
		for k := range numbers {
			if at := (from + k) % len(numbers); !yield(k, numbers[at]) {
				return
			}
		}
	}
}

// closest returns the first of the candidates, nil if there is none.
func (l *placement) closest(regionServer string, turn int) *place {
	for p := range l.candidates(regionServer, turn) {
		return p
	}
	return nil
}
