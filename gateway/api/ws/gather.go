package ws

import (
	"sync"
	"sync/atomic"
	"time"
)

// gathering wakes the writers of sockets with several subscriptions, all together and only when no
// more news comes. A tick of a dashboard's queries ends one by one, within some milliseconds: after
// that its messages can leave together.
//
//	news of a, b, c   2 ms without news   all sockets with news write
//	─┬─┬──┬──────────────────────────────▶
//
// There is one timer for all sockets, because many viewers of one dashboard have their
// news at one time.
type gathering struct {
	added atomic.Bool // since the last pause began

	mu      sync.Mutex
	waiting []*socket
	pauses  int // since the first of them waits
}

const (
	gatherPause = 2 * time.Millisecond // without an added socket: the tick is over
	gatherMost  = 10                   // pauses at most
)

// add has a socket woken at the end of the tick. It does not block.
func (g *gathering) add(k *socket) {
	g.added.Store(true)
	if k.waiting.Swap(true) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, k)
	if len(g.waiting) == 1 {
		g.pauses = 0
		g.pauseLocked()
	}
}

// pauseLocked begins a pause. REQUIRES: g.mu is held.
func (g *gathering) pauseLocked() {
	g.added.Store(false)
	g.pauses++
	time.AfterFunc(gatherPause, g.end)
}

// end ends a pause. If sockets were added in it, the tick goes on, and another pause follows, up to
// gatherMost; otherwise all sockets that wait are woken.
func (g *gathering) end() {
	g.mu.Lock()
	if g.added.Load() && g.pauses < gatherMost {
		g.pauseLocked()
		g.mu.Unlock()
		return
	}
	over := g.waiting
	g.waiting = nil
	g.mu.Unlock()

	for _, k := range over {
		k.waiting.Store(false) // first: news from now on wakes it again
		k.wakeNow()
	}
}
