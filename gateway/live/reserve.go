package live

import (
	"context"
	"errors"
	"runtime"

	"downpour/pushdown/process/memory"
)

// makeRoom reserves, in the account of the ask, what taking in an answer takes
// beside the answer, before it does: the columns of a client's times, and what
// differs from the answer before, which is there until the end.
func (e *evaluator) makeRoom(ctx context.Context, a *Answer) error {
	need := int64(0)
	for i := range a.Results {
		need += groupBytes + 2*pointBytes*int64(a.Results[i].Points.Len())
	}
	last := e.last()
	for i := range a.Changes {
		c := &a.Changes[i]
		if c.Full != nil {
			need += groupBytes + 2*pointBytes*int64(c.Full.Points.Len())
			continue
		}
		if g := last.groups[last.byKey[keyOf(c.QueryIndex, c.Key)]]; g != nil {
			need += pointBytes * int64(len(g.cells.time)) // its columns are made anew
		}
		for _, w := range c.Windows {
			need += groupBytes + 2*pointBytes*int64(w.Points.Len())
		}
	}
	return noRoom(memory.Reserve(ctx, need))
}

// noRoom words a reservation's refusal for clients.
func noRoom(err error) error {
	var large *memory.LimitError
	var busy *memory.BusyError
	switch {
	case errors.As(err, &large):
		return &Error{Code: 413, Message: "The answer of the live query takes too much memory: " + err.Error()}
	case errors.As(err, &busy):
		return &Error{Code: 503, Message: "There is no memory for the answer of the live query: " + err.Error(), Temporary: true}
	}
	return err
}

// ErrNoRoom says that there is no memory to write a message in.
var ErrNoRoom = errors.New("live: other work holds the memory that the message takes")

// Bytes of a point and of a group in a message, about.
const (
	messagePointBytes = 32
	messageGroupBytes = 300
)

// size is about the bytes of an update's message.
func (u *Update) size() int64 {
	points, groups := 0, len(u.groups)
	for _, g := range u.groups {
		points += len(g.cells.time)
	}
	if u.delta != nil {
		points += u.delta.points()
		groups += len(u.delta.groups)
	}
	return int64(points)*messagePointBytes + int64(groups)*messageGroupBytes
}

// lend reserves the memory of one of the update's messages, until nobody holds the
// update any more: a slow client does for as long as it reads.
func (u *Update) lend() error {
	n := u.size()
	if u.account == nil || n == 0 {
		return nil
	}
	if !u.account.Try(n) {
		return ErrNoRoom
	}
	runtime.AddCleanup(u, func(a *memory.Account) { a.Release(n) }, u.account)
	return nil
}
