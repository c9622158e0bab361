package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Held is about the memory that one live query holds, or all of them together, in
// bytes.
type Held struct {
	// Answer is the last answer, and what its source keeps to make the next one.
	Answer int64
	// History are earlier changes, for subscribers that are behind, and their
	// messages, each encoded once for all.
	History int64
	// Sending are messages on their way to subscribers that are not part of History:
	// snapshots, and deltas that were merged for slow subscribers. They last until the
	// subscriber requests the next one.
	Sending int64
}

// Total returns the sum.
func (h Held) Total() int64 { return h.Answer + h.History + h.Sending }

func (h Held) plus(o Held) Held {
	return Held{h.Answer + o.Answer, h.History + o.History, h.Sending + o.Sending}
}

func (h Held) minus(o Held) Held {
	return Held{h.Answer - o.Answer, h.History - o.History, h.Sending - o.Sending}
}

// About what things take in memory, bytes.
const (
	groupBytes  = 512 // a group without its points: description, keys, places in maps
	pointBytes  = 17  // a time, a value, and whether it is a float
	deltaBytes  = 256 // a delta without its groups
	partBytes   = 72  // size of a group in a delta, without points
	updateBytes = 256 // a message without its text
	subBytes    = 512 // a subscription, here and at its socket

	// A guess of a message's size before it is encoded: as JSON a point is something
	// like "[1700000000,12.5]," and a group has its tags.
	textPointBytes = 20
	textGroupBytes = 128
)

// bytes returns about the memory of a state.
func (s *state) bytes() int64 { return groupBytes*int64(len(s.groups)) + pointBytes*int64(s.points) }

// bytes returns the memory that the columns have allocated.
func (c *points) bytes() int64 { return int64(8*cap(c.time) + 8*cap(c.bits) + cap(c.float)) }

// bytes returns about the memory of a delta without its message. Columns of groups
// that are new in it are shared with the state, and so count twice.
func (d *delta) bytes() int64 {
	n := int64(deltaBytes + partBytes*(len(d.groups)+len(d.upserts)+len(d.deletes)) + 8*len(d.removed))
	for i := range d.upserts {
		n += d.upserts[i].points.bytes()
	}
	for i := range d.deletes {
		n += int64(8 * cap(d.deletes[i].times))
	}
	return n
}

// textBytes returns about the memory of an encoded message: of the formats that were requested, or
// of JSON if none was yet.
func (u *Update) textBytes() int64 {
	if n := u.encoded.Load(); n > 0 {
		return updateBytes + n
	}
	switch {
	case u.delta != nil:
		return updateBytes + textPointBytes*int64(u.delta.points()) + textGroupBytes*int64(len(u.delta.groups))
	case u.Kind == KindSnapshot:
		return updateBytes + textPointBytes*int64(u.points) + textGroupBytes*int64(len(u.groups))
	}
	return updateBytes
}

// countHeldLocked counts what an evaluator holds with its next state; sourceBytes is what its
// source holds. It begins a tick, and marks the updates that it counts with it. It is called at each tick, and
// cheap: a sum over the history and the subscribers. REQUIRES: e.mu is held.
func (e *evaluator) countHeldLocked(next *state, sourceBytes int64) Held {
	sum := Held{
		Answer:  next.bytes() + sourceBytes + int64(len(e.query.question.Body)+len(e.query.key)),
		Sending: subBytes * int64(len(e.mu.subs)),
	}

	e.mu.ticks++
	for _, t := range e.mu.tracks {
		sum.History += t.bytes + int64(64*len(t.numbers)) // 64: about an entry of the map
		for _, d := range t.history {
			if d.update != nil {
				d.update.counted, d.update.inHistory = e.mu.ticks, e.mu.ticks
				sum.History += d.update.textBytes()
			}
		}
	}

	// Updates are shared: counted says which of them have been counted in this
	// tick.
	for s := range e.mu.subs {
		if u := s.sending; u != nil && u.counted != e.mu.ticks {
			u.counted = e.mu.ticks
			sum.Sending += u.sendingBytes(e.mu.seq)
		}
	}
	return sum
}

// sendingBytes returns about the memory of a message that is not part of the
// history. seq is the present one.
func (u *Update) sendingBytes(seq uint64) int64 {
	n := u.textBytes()
	if u.delta != nil {
		n += u.delta.bytes()
	}
	if u.Kind == KindSnapshot && u.Seq != seq { // its columns are no longer those of the present state
		n += pointBytes*int64(u.points) + 8*int64(len(u.groups))
	}
	return n
}

// cutSlowLocked cuts off subscribers whose messages are on their way until so many bytes
// are freed, those with the oldest message first, and returns how many it has freed. A
// subscriber who reads as fast as changes come has no message of an earlier tick and
// is never cut off. REQUIRES: e.mu is held, and countHeldLocked was called.
func (e *evaluator) cutSlowLocked(want int64) (freed int64) {
	readers := map[*Update][]*Subscription{} // by the message that they are reading
	for s := range e.mu.subs {
		// A message that is also in the history would not be freed, and a subscriber without a cut
		// must not be cut off.
		if u := s.sending; u != nil && u.Seq < e.mu.seq && u.inHistory != e.mu.ticks && s.cut != nil {
			readers[u] = append(readers[u], s)
		}
	}

	oldest := slices.SortedFunc(maps.Keys(readers), func(a, b *Update) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, u := range oldest {
		if freed >= want {
			break
		}
		freed += u.sendingBytes(e.mu.seq)
		for _, s := range readers[u] {
			s.sending = nil
			s.cut()
		}
	}
	return freed
}

// holdOrRefuse sets what an evaluator holds to what it holds with its next state, or refuses the state
// if the answers of all live queries would then take too much. If their messages do, it cuts off slow
// subscribers of this evaluator. It is the one place where live queries are bounded. REQUIRES: e.mu is held.
func (h *Hub) holdOrRefuse(e *evaluator, next *state, sourceBytes int64) error {
	held := e.countHeldLocked(next, sourceBytes)
	h.total.Lock()
	defer h.total.Unlock()

	sum := h.total.held.minus(e.mu.held).plus(held)
	if sum.Answer > h.cfg.MaxBytes {
		return &Error{
			Code: 413,
			Message: fmt.Sprintf("The answers of all live queries would take %d bytes, more than the %d allowed; "+
				"please ask for less time, fewer groups or a coarser downsample", sum.Answer, h.cfg.MaxBytes),
		}
	}

	if over := sum.Sending - h.cfg.MaxSending; over > 0 {
		// Only this query's lock is held: the slow ones of others are cut off at their own
		// ticks.
		freed := e.cutSlowLocked(over)
		sum.Sending -= freed
		held.Sending -= freed
	}
	h.total.held, e.mu.held = sum, held
	return nil
}

// releaseHeld subtracts what an evaluator held. REQUIRES: e.mu is held.
func (h *Hub) releaseHeld(e *evaluator) {
	h.total.Lock()
	defer h.total.Unlock()

	h.total.held = h.total.held.minus(e.mu.held)
	e.mu.held = Held{}
}

// Held returns what all live queries held at their last ticks.
func (h *Hub) Held() Held {
	h.total.Lock()
	defer h.total.Unlock()

	return h.total.held
}
