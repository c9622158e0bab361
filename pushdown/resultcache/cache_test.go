package resultcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
)

func id(n int) (i ID) { i[0], i[1] = byte(n), byte(n>>8); return i }

// filled is an answer of about so many bytes.
func filled(n int) *answer {
	return &answer{batches: [][]byte{make([]byte, n-batchBytes)}, stats: operator.Stats{Points: int64(n)}}
}

func TestCache_ask(t *testing.T) {
	c := New(8<<10, nil)
	f := func(version string, want lookup) {
		t.Helper()
		if got, a := c.lookupPart(id(1), version); got != want || (a != nil) != (want == lookupHit) {
			t.Errorf("ask with version %q: result %d, answer %v, want result %d", version, got, a, want)
		}
	}
	f("", lookupMiss) // nothing is known, nothing is noted
	f("m", lookupMiss)
	f("m", lookupStore)
	f("m", lookupStore) // the first one may have failed
	c.store(id(1), "m", filled(200))
	f("m", lookupHit)
	f("", lookupMiss)
	f("m", lookupHit)
	f("n", lookupChanged)
	f("m", lookupChanged) // the answer was removed
	f("m", lookupStore)
	c.store(id(1), "n", filled(200)) // of rows that have changed in the meantime
	f("m", lookupStore)
	want := Counts{Hits: 2, New: 1, Kept: 1, Changed: 2, Unproven: 2, Entries: 1, Bytes: entryBytes}
	if got := c.Counts(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The bound on bytes holds at every step of a long random run of lookups, changes and stores.
func TestCache_bound(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	const limit = 20_000
	c := New(limit, nil)
	for i := range 20_000 {
		n, version := id(rng.IntN(200)), fmt.Sprint(rng.IntN(3)/2)
		if v, _ := c.lookupPart(n, version); v == lookupStore {
			c.store(n, version, filled(batchBytes+rng.IntN(limit/4)))
		}
		var sum int64
		for el := c.order.Front(); el != nil; el = el.Next() {
			sum += el.Value.(*entry).bytes
		}
		if sum != c.bytes || sum > limit || len(c.entries) != c.order.Len() {
			t.Fatalf("step %d: %d bytes in %d entries, want %d and at most %d in %d", i, sum, c.order.Len(), c.bytes,
				limit, len(c.entries))
		}
	}
	if n := c.Counts(); n.Hits < 100 || n.Evictions < 100 || n.Changed < 100 {
		t.Errorf("%+v, want at least 100 hits, evictions and changes", n)
	}
}

func TestCache_leastRecentlyUsed(t *testing.T) {
	c := New(16*entryBytes, nil)
	for n := range 16 {
		c.lookupPart(id(n), "m")
	}
	c.lookupPart(id(0), "m") // used again
	c.lookupPart(id(16), "m")
	for n, want := range map[int]bool{0: true, 1: false, 2: true, 16: true} {
		if _, got := c.entries[id(n)]; got != want {
			t.Errorf("entry %d is there: %v, want %v", n, got, want)
		}
	}
}

func TestCache_leastRecentlyUsedPlan(t *testing.T) {
	c := New(16*entryBytes, nil)
	for n := range 16 {
		c.queriedBefore(id(n))
	}
	if !c.queriedBefore(id(0)) || c.queriedBefore(id(16)) || !c.queriedBefore(id(0)) || c.queriedBefore(id(1)) {
		t.Error("a plan that was queried again has gone before one that was not, or a new one is known")
	}
}

// An answer of more than an eighth of the cache's bound is not stored: it would push out many
// others.
func TestCache_large(t *testing.T) {
	c := New(8<<10, nil)
	c.lookupPart(id(1), "m")
	c.store(id(1), "m", filled(1<<10+1))
	if v, _ := c.lookupPart(id(1), "m"); v != lookupStore || c.Counts().Kept != 0 {
		t.Errorf("result %d, %+v: the answer was kept", v, c.Counts())
	}
}

// Drop removes all entries and their bytes: a part must be queried twice again before its answer is
// stored. An answer that was in progress is not stored.
func TestCache_drop(t *testing.T) {
	(*Cache)(nil).Drop()
	c := New(8<<10, nil)
	for n := range 3 {
		c.lookupPart(id(n), "m")
		c.lookupPart(id(n), "m")
		if n > 0 {
			c.store(id(n), "m", filled(200))
		}
	}
	c.Drop()
	if got := c.Counts(); got.Entries != 0 || got.Bytes != 0 || c.order.Len() != 0 {
		t.Errorf("%+v, %d in order, want nothing left", got, c.order.Len())
	}
	if c.store(id(0), "m", filled(200)) {
		t.Error("an answer was stored although its entry was dropped")
	}
	for _, want := range []lookup{lookupMiss, lookupStore} {
		if got, _ := c.lookupPart(id(1), "m"); got != want {
			t.Errorf("result %d, want %d", got, want)
		}
	}
}

func TestNew_off(t *testing.T) {
	if c := New(0, nil); c != nil || c.Counts() != (Counts{}) || c.Holds(nil) {
		t.Errorf("a cache of no bytes is %v, want nil, which counts and holds nothing", c)
	}
}
