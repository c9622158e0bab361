package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// process is a server of HBase that ends and starts as a test says.
type process struct {
	mu   sync.Mutex
	done chan struct{}
}

func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = make(chan struct{})
}

func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.done)
}

// cluster are servers that start at once.
type cluster struct {
	master  process
	regions [3]process
	started []string
	err     error // of each start
}

func startedCluster() *cluster {
	c := &cluster{}
	c.master.start()
	for i := range c.regions {
		c.regions[i].start()
	}
	return c
}

func (c *cluster) MasterDone() <-chan struct{}            { return c.master.ended() }
func (c *cluster) RegionServerDone(i int) <-chan struct{} { return c.regions[i].ended() }
func (c *cluster) Len() int                               { return len(c.regions) }

func (c *cluster) StartMaster(context.Context) error { return c.start("master", &c.master) }

func (c *cluster) StartRegionServer(_ context.Context, i int) error {
	return c.start(fmt.Sprint("region server ", i), &c.regions[i])
}

func (c *cluster) start(name string, p *process) error {
	c.started = append(c.started, name)
	if c.err == nil {
		p.start()
	}
	return c.err
}

// The master and a region server end while something is waited for: they are started again, and the wait goes
// on to its end. A server that a fault has killed stays down.
func TestTended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startedCluster()
		w := &world{servers: c, dead: []int{1}, Config: Config{Logf: t.Logf}}
		c.regions[1].end()
		merged := errors.New("HBase would not do it")
		err := w.tended(t.Context(), func(ctx context.Context) error {
			time.Sleep(time.Second)
			c.master.end()
			time.Sleep(time.Second)
			c.regions[2].end()
			c.master.end() // at the same time, and once more
			time.Sleep(time.Second)
			return merged
		})
		if err != merged {
			t.Errorf("got %v, want what the wait said", err)
		}
		if got, want := strings.Join(c.started, ", "), "master, master, region server 2"; got != want {
			t.Errorf("started %s, want %s", got, want)
		}
		if w.revived != 3 || w.now.Load() != &endedItself {
			t.Errorf("%d servers revived, fault %v, want 3 and %q", w.revived, w.now.Load(), endedItself.name)
		}
	})
}

// A server that cannot be started ends the wait, with the reason.
func TestTended_noStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startedCluster()
		c.err = errors.New("no memory")
		w := &world{servers: c, Config: Config{Logf: t.Logf}}
		c.master.end()
		var waited error
		err := w.tended(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			waited = ctx.Err()
			return waited
		})
		if err != c.err || waited == nil {
			t.Errorf("got %v and the wait %v, want %v and an end", err, waited, c.err)
		}
	})
}
