package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Held is about what one live query keeps in memory, or all of them together, in
// bytes.
type Held struct {
	// Answer is the last answer, and what its source makes the next one of.
	Answer int64
	// History is what changed before, for subscribers that are behind, and its
	// messages: each is encoded once for all.
	History int64
	// Sending are messages on their way to subscribers that History does not
	// have: snapshots, and what was merged for a slow one. They last until the
	// subscriber asks for the next.
	Sending int64
}

// Total is all of it.
func (h Held) Total() int64 { return h.Answer + h.History + h.Sending }

// plus adds by part; times -1 it takes away.
func (h Held) plus(o Held, times int64) Held {
	return Held{h.Answer + times*o.Answer, h.History + times*o.History, h.Sending + times*o.Sending}
}

// About what things take in memory, bytes.
const (
	groupBytes  = 512 // a group without its points: description, keys, places in maps
	pointBytes  = 17  // a time, a value, and whether it is a float
	deltaBytes  = 256 // a delta without what it tells
	partBytes   = 72  // what it tells of a group, without points
	updateBytes = 256 // a message without its text
	subBytes    = 512 // a subscription, here and at its socket

	// What a message takes before it is encoded is not known. As JSON a point
	// takes some "[1700000000,12.5]," and a group its tags.
	textPointBytes = 20
	textGroupBytes = 128
)

// bytes is about what a state takes.
func (s *state) bytes() int64 { return groupBytes*int64(len(s.groups)) + pointBytes*int64(s.points) }

// bytes is what a column of cells takes.
func (c *cells) bytes() int64 { return int64(8*cap(c.time) + 8*cap(c.bits) + cap(c.float)) }

// bytes is about what a delta takes, without its message. Columns of groups that
// are new in it are the state's own, and count twice.
func (d *delta) bytes() int64 {
	n := int64(deltaBytes + partBytes*(len(d.groups)+len(d.upserts)+len(d.deletes)) + 8*len(d.removed))
	for i := range d.upserts {
		n += d.upserts[i].cells.bytes()
	}
	for i := range d.deletes {
		n += int64(8 * cap(d.deletes[i].times))
	}
	return n
}

// textBytes is about what a message takes encoded, in the forms that were asked
// for, or as JSON if none was yet.
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

// held is about what an evaluator keeps with this state, over a source that keeps
// so much: what is counted for live queries is counted here, at each tick. It is
// cheap, a sum over the history and the subscribers. REQUIRES: e.mu is held.
func (h *Hub) held(e *evaluator, now *state, source int64) Held {
	sum := Held{Answer: now.bytes() + source + int64(len(e.query.body)+len(e.query.key)), Sending: subBytes * int64(len(e.mu.subs))}
	e.mu.ticks++
	for _, t := range e.mu.tracks {
		sum.History += t.bytes + int64(64*len(t.local))
		for _, d := range t.history {
			if d.update != nil {
				d.update.counted, d.update.kept = e.mu.ticks, e.mu.ticks
				sum.History += d.update.textBytes()
			}
		}
	}
	for s := range e.mu.subs {
		if u := s.sending; u != nil && u.counted != e.mu.ticks {
			u.counted = e.mu.ticks // others may be sending it, too
			sum.Sending += u.sendingBytes(e.mu.seq)
		}
	}
	return sum
}

// sendingBytes is about what a message takes that the history does not have.
func (u *Update) sendingBytes(seq uint64) int64 {
	n := u.textBytes()
	if u.delta != nil {
		n += u.delta.bytes()
	}
	if u.Kind == KindSnapshot && u.Seq != seq { // its columns are the state's no more
		n += pointBytes*int64(u.points) + 8*int64(len(u.groups))
	}
	return n
}

// cutLocked ends subscribers whose messages take so much too much, those first
// whose message is oldest, and returns what that frees. Whoever reads as fast as
// changes come has no message of an earlier tick. REQUIRES: e.mu is held, and
// Hub.held was called.
func (e *evaluator) cutLocked(over int64) (freed int64) {
	readers := map[*Update][]*Subscription{}
	for s := range e.mu.subs {
		if u := s.sending; u != nil && u.Seq < e.mu.seq && u.kept != e.mu.ticks && s.cut != nil {
			readers[u] = append(readers[u], s)
		}
	}
	oldest := slices.SortedFunc(maps.Keys(readers), func(a, b *Update) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, u := range oldest {
		if freed >= over {
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

// hold takes in what an evaluator holds from now on, or refuses it: the one place
// where live queries take memory. REQUIRES: e.mu is held.
func (h *Hub) hold(e *evaluator, now *state, source int64) error {
	held := h.held(e, now, source)
	h.total.Lock()
	defer h.total.Unlock()

	sum := h.total.held.plus(e.mu.held, -1).plus(held, 1)
	if sum.Answer > h.cfg.MaxBytes {
		return &Error{Code: 413, Message: fmt.Sprintf("The answers of all live queries would take %d bytes, more than the %d allowed; "+
			"please ask for less time, fewer groups or a coarser downsample", sum.Answer, h.cfg.MaxBytes)}
	}
	if over := sum.Sending - h.cfg.MaxSending; over > 0 {
		freed := e.cutLocked(over)
		sum.Sending -= freed
		held.Sending -= freed
	}
	h.total.held, e.mu.held = sum, held
	return nil
}

// release gives back what an evaluator held. REQUIRES: e.mu is held.
func (h *Hub) release(e *evaluator) {
	h.total.Lock()
	defer h.total.Unlock()

	h.total.held = h.total.held.plus(e.mu.held, -1)
	e.mu.held = Held{}
}

// Held is what all live queries held at their last ticks.
func (h *Hub) Held() Held {
	h.total.Lock()
	defer h.total.Unlock()

	return h.total.held
}
