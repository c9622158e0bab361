package background

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/store"
)

// What is counted.
const (
	readsOfLeases  = "reads of leases"
	writesOfLeases = "writes of leases"
	firstRows      = "look-ups of a first row"
	listsOfRegions = "lists of regions"
)

// calls counts the calls of workers to their stores.
type calls struct {
	mu sync.Mutex
	of map[string]int
}

func (c *calls) add(what string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what]++
}

// take returns the counts since the last call.
func (c *calls) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.of
	c.of = nil
	return out
}

func (h *hanging) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	h.calls.add(firstRows)
	return h.Store.Scan(ctx, s)
}

func (h *hanging) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	h.calls.add(listsOfRegions)
	return h.Store.Regions(ctx, table, start, stop)
}

// TestWorker_calls: in an hour one of three workers takes the lease of each of many regions, with four writes, and the
// others see by few reads that its work is done.
func TestWorker_calls(t *testing.T) {
	for _, regions := range []int{100, 300} {
		var splits [][]byte
		for i := range regions - 1 {
			splits = append(splits, rowKey(byte(i/250+1), byte(i%250), 40))
		}
		simulate(t, splits, func(w *world) {
			w.fill(4, 250, 1)
			counts := &calls{}
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			for range 3 {
				w.worker(ctx, func(c *Config) { c.Store.(*hanging).calls = counts })
			}
			pass(time.Hour)
			w.Logf("%d regions: in the first hour %v", regions, counts.take())
			w.wantCompacted()

			pass(time.Hour)
			of := counts.take()
			w.Logf("%d regions: in the second hour %v", regions, of)
			if of[writesOfLeases] > 5*regions || of[readsOfLeases] > 8*regions || of[firstRows] > regions+regions/10 ||
				of[listsOfRegions] > 3*61 {
				w.Errorf("%d regions: %v, want at most 5 writes and 8 reads of leases and one look-up a region, "+
					"and a list a minute",
					regions, of)
			}
			cancel()
			w.all.Wait()
		})
	}
}

// TestWorker_killedOfMany: even among many regions that all have work, that of a dead worker is
// taken over within 60 s.
func TestWorker_killedOfMany(t *testing.T) {
	var splits [][]byte
	for i := range 99 {
		splits = append(splits, rowKey(1, byte(i+1), 40))
	}
	simulate(t, splits, func(w *world) {
		w.fill(1, 100, 40)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		slow := func(c *Config) { c.Rate = 2 }
		dies, hung := w.worker(ctx, slow)
		w.worker(ctx, slow)
		pass(28 * time.Second)
		hung.kill()
		holder := func() (region string) {
			for row, err := range store.Rows(w.Context(), w.st, store.Scan{Table: "state"}) {
				if err != nil {
					w.Fatal(err)
				}
				if bytes.Contains(row.Cells[0].Value, []byte(dies.cfg.Leases.Holder)) {
					region = string(row.Key)
				}
			}
			return region
		}
		first := holder()
		if first == "" {
			w.Fatal("the worker had no lease when it died")
		}
		death := time.Now()
		for holder() == first {
			if time.Since(death) > time.Minute {
				w.Fatalf("a minute after its holder's death nobody has taken %s over", first)
			}
			pass(time.Second)
		}
		if after := time.Since(death); after < 30*time.Second {
			w.Errorf("taken over after %v, from a living worker", after)
		}
		cancel()
		w.all.Wait()
	})
}
