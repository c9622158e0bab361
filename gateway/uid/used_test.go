package uid

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// givenTags is a store whose UID table has so many tag values, each written at a time in ms. At 0 it has no mapping.
type givenTags struct {
	store.Store // nil: methods that these tests do not call
	last        int64
	at          func(number int64) int64
	reads       int
}

func (*givenTags) Features() store.Features { return store.Features{} }

func (g *givenTags) Get(_ context.Context, _, family string, keys [][]byte) (rows []store.Row, err error) {
	g.reads++
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[string(k)] {
			return nil, fmt.Errorf("key %x is given twice", k)
		}
		seen[string(k)] = true
		c := store.Cell{Family: []byte(family), Qualifier: []byte(encoding.UIDTagV.String())}
		if bytes.Equal(k, encoding.CounterRow) {
			c.Value = encoding.AppendCounter(nil, g.last)
		} else if c.Timestamp = g.at(int64(binary.BigEndian.Uint32(append([]byte{0}, k...)))); c.Timestamp == 0 {
			continue
		}
		rows = append(rows, store.Row{Key: k, Cells: []store.Cell{c}})
	}
	return rows, nil
}

// usageSince returns what is used of tag values.
func usageSince(t *testing.T, g *givenTags, since int64) Usage {
	t.Helper()
	usage, err := dictionary(g).Usage(t.Context(), time.UnixMilli(since))
	if err != nil {
		t.Fatal(err)
	}
	want := []Usage{
		{Kind: encoding.UIDMetric, Most: 1<<24 - 1},
		{Kind: encoding.UIDTagK, Most: 1<<24 - 1},
		{Kind: encoding.UIDTagV, Most: 1<<24 - 1, Used: g.last, New: usage[2].New},
	}
	if d := cmp.Diff(want, usage); d != "" {
		t.Fatalf("-want +got\n%s", d)
	}
	return usage[2]
}

// The new UIDs are those that were given since a time, whichever share of all it is. Single numbers without a name,
// and names that were changed later, do not matter, and a few dozen reads are enough.
func TestUsage(t *testing.T) {
	for _, last := range []int64{0, 1, 2, 15, 16, 17, 1000, 1<<24 - 1} {
		for _, recent := range []int64{0, 1, 2, 15, 16, 17, 400, 1_000_000, last - 1, last} {
			if recent < 0 || recent > last {
				continue
			}
			for name, at := range map[string]func(n int64) int64{
				"plain":   func(n int64) int64 { return 1000 + n },
				"missing": func(n int64) int64 { return (1000 + n) * min(1, n%5) },
				"renamed": func(n int64) int64 { return 1000 + n + last*(1-min(1, n%5)) },
			} {
				g := &givenTags{last: last, at: at}
				since := 1000 + last - recent + 1
				got := usageSince(t, g, since).New
				most := recent
				if name != "plain" && recent < last {
					most++ // the last old one may be without a name, or changed
				}
				if got < recent || got > most || g.reads > 7 {
					t.Errorf("%s, %d, %d of them new: got %d new after %d reads", name, last, recent, got, g.reads)
				}
			}
		}
	}
}

// UIDs that were deleted, however many, count as old.
func TestUsage_deleted(t *testing.T) {
	g := &givenTags{last: 10_000_000, at: func(n int64) int64 {
		if n > 1000 && n <= 9_999_000 {
			return 0
		}
		return 1000 + n
	}}
	if got := usageSince(t, g, 1000+9_999_700+1).New; got != 300 {
		t.Errorf("300 new ones behind millions that were deleted: got %d", got)
	}
	if got := usageSince(t, g, 1).New; got < 1000 || got > 1000+2*neighbors {
		t.Errorf("only new ones, millions deleted: got %d, want those that are left at the end, 1000", got)
	}
}

// A counter that has gone on beyond the last UID, or is damaged, is no fault.
func TestUsage_counter(t *testing.T) {
	for given, want := range map[int64]Usage{
		1<<24 + 5: {Used: 1<<24 - 1, New: 99},
		-7:        {Used: -7},
	} {
		g := &givenTags{last: given, at: func(n int64) int64 { return 1000 + n }}
		usage, err := dictionary(g).Usage(t.Context(), time.UnixMilli(1000+1<<24-99))
		if err != nil || usage[2].Used != want.Used || usage[2].New != want.New {
			t.Errorf("counter %d: %+v, %v; want %d used, %d new", given, usage, err, want.Used, want.New)
		}
	}
}

// Drawn times, numbers without names and changed names give what looking at each of them gives.
func TestUsage_drawn(t *testing.T) {
	r := rand.New(rand.NewPCG(20261201, 1))
	for range 200 {
		times := make([]int64, 1+r.IntN(300))
		now := int64(1_000_000)
		for i := range times {
			if r.IntN(10) == 0 {
				now += r.Int64N(1_000_000)
			}
			times[i] = now
		}
		since := times[r.IntN(len(times))] + r.Int64N(2)
		want := 0
		for _, at := range times {
			if at >= since {
				want++
			}
		}
		for i := range times {
			// The last old one and the first new one stay, so that the number is the same.
			if i != len(times)-want && i != len(times)-want-1 && r.IntN(8) == 0 {
				times[i] = []int64{0, 1 << 50}[r.IntN(2)]
			}
		}
		g := &givenTags{last: int64(len(times)), at: func(n int64) int64 { return times[n-1] }}
		if got := usageSince(t, g, since).New; got != int64(want) {
			t.Errorf("since %d: got %d, want %d, of %d", since, got, want, times)
		}
	}
}

// Counters name the generation in which they were read.
func TestCounters_generation(t *testing.T) {
	d := dictionary(newMemory())
	d.Drop()
	if c, err := d.Counters(t.Context()); err != nil || c.Generation != d.Generation() || c.Generation == 0 {
		t.Errorf("generation %d, %v, want %d", c.Generation, err, d.Generation())
	}
}

func TestMostUIDs(t *testing.T) {
	for width, want := range map[int]int64{1: 255, 7: 1<<56 - 1, 8: math.MaxInt64} {
		if got := mostUIDs(width); got != want {
			t.Errorf("%d UIDs of %d bytes, want %d", got, width, want)
		}
	}
}
