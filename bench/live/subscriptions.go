package live

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// subscriptions are the live queries of one socket; each has one group. The socket is
// read all the time, so that the server does not take it for a slow client.
type subscriptions struct {
	socket *socket
	ended  chan struct{} // closed when nothing is read any more

	mu     sync.Mutex
	newest map[string]newest // by subscription
	deltas int
	err    error         // the error that ended the reading
	moved  chan struct{} // closed and replaced at each message
}

// newest is the last point of an answer.
type newest struct {
	time  int64
	value string
}

// subscribeAll subscribes to all queries and waits for the snapshot of each.
func subscribeAll(ctx context.Context, s *socket, queries []string) (*subscriptions, error) {
	f := &subscriptions{socket: s, newest: map[string]newest{}, ended: make(chan struct{}), moved: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for f.receive(ctx) {
		}
	}()

	for i, query := range queries {
		if err := s.subscribe(i, query); err != nil {
			f.close()
			return nil, err
		}
	}

	for i := range queries {
		if err := f.until(ctx, i, func(newest) bool { return true }); err != nil {
			f.close()
			return nil, err
		}
	}

	return f, nil
}

// close ends the subscriptions.
func (f *subscriptions) close() {
	f.socket.close()
	<-f.ended
}

// receive takes one message and wakes those that wait in until. It returns false once the
// reading has ended.
func (f *subscriptions) receive(ctx context.Context) bool {
	m, err := f.socket.receive()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		f.err = f.apply(m)
	}
	close(f.moved)
	f.moved = make(chan struct{})
	return f.err == nil
}

// apply takes the newest point of each subscription from a message. A change of an
// earlier point leaves it as it is.
func (f *subscriptions) apply(m message) error {
	if m.Type == "delta" {
		f.deltas++
	}
	for _, group := range append(m.Results, m.Upserts...) {
		for _, p := range group.DPS {
			n, err := point(p)
			if err != nil {
				return err
			}
			if n.time >= f.newest[m.ID].time {
				f.newest[m.ID] = n
			}
		}
	}
	return nil
}

func point(p [2]json.RawMessage) (n newest, err error) {
	n.value = string(p[1])
	err = json.Unmarshal(p[0], &n.time)
	return n, err
}

// until waits until the newest point of a subscription is good.
func (f *subscriptions) until(ctx context.Context, subscription int, good func(newest) bool) error {
	for {
		f.mu.Lock()
		n, answered := f.newest[fmt.Sprint(subscription)]
		err, moved := f.err, f.moved
		f.mu.Unlock()

		// What has come counts, even if the socket has ended since.
		switch {
		case answered && good(n):
			return nil
		case err != nil:
			return fmt.Errorf("subscription %d, newest point %v: %w", subscription, n, err)
		}

		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("subscription %d, newest point %v: %w", subscription, n, ctx.Err())
		}
	}
}

// messages returns how many deltas have come so far.
func (f *subscriptions) messages() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deltas
}
