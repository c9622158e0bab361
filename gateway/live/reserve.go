package live

import (
	"context"
	"errors"
	"runtime"

	"downpour/pushdown/process/memory"
)

// reserveAnswer reserves, in the account of the run that ctx carries, the memory for applying an answer
// in addition to the answer itself: the columns with times in the client's unit, and
// the differences from the answer before. Either may have all points, so 2*pointBytes.
// It fails with an *Error if there is not so much, or with the context's error.
func (e *evaluator) reserveAnswer(ctx context.Context, a *Answer) error {
	need := int64(0)
	for i := range a.Results {
		need += groupBytes + 2*pointBytes*int64(a.Results[i].Points.Len())
	}

	last := e.lastState()
	for i := range a.Changes {
		c := &a.Changes[i]
		if c.Full != nil {
			need += groupBytes + 2*pointBytes*int64(c.Full.Points.Len())
			continue
		}
		// The group's columns are copied, because a state never changes.
		if g := last.groups[last.byKey[groupKey(c.QueryIndex, c.Key)]]; g != nil {
			need += pointBytes * int64(len(g.points.time))
		}
		for _, w := range c.Windows {
			need += groupBytes + 2*pointBytes*int64(w.Points.Len())
		}
	}
	return memoryRefusal(memory.Reserve(ctx, need))
}

// memoryRefusal words a refused reservation for clients. Other errors, and nil, it
// returns as they are.
func memoryRefusal(err error) error {
	var large *memory.LimitError
	var busy *memory.BusyError
	switch {
	case errors.As(err, &large):
		return &Error{Code: 413, Message: "The answer of the live query takes too much memory: " + err.Error()}
	case errors.As(err, &busy):
		return &Error{
			Code:      503,
			Message:   "There is no memory for the answer of the live query: " + err.Error(),
			Temporary: true,
		}
	}
	return err
}

// About what a point and a group take in an encoded message, bytes.
const (
	messagePointBytes = 32
	messageGroupBytes = 300
)

// messageBytes returns about the bytes of one encoded message of an update, rather too many: it is what is
// reserved before the message is encoded.
func (u *Update) messageBytes() int64 {
	points, groups := 0, len(u.groups)
	for _, g := range u.groups {
		points += len(g.points.time)
	}
	if u.delta != nil {
		points += u.delta.points()
		groups += len(u.delta.groups)
	}
	return int64(points)*messagePointBytes + int64(groups)*messageGroupBytes
}

// reserve reserves the memory of one of the update's messages until the update is
// garbage. A slow client holds it for as long as it reads.
func (u *Update) reserve() error {
	n := u.messageBytes()
	if u.account == nil || n == 0 {
		return nil
	}
	if !u.account.Try(n) {
		return ErrNoMemory
	}
	runtime.AddCleanup(u, func(a *memory.Account) { a.Release(n) }, u.account)
	return nil
}
