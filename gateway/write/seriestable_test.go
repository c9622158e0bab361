package write

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/process/heap/heaptest"
)

// spelledSeries is a series as TestSeriesTable draws it.
type spelledSeries struct {
	key, metric string
	tags        []Tag
	uids        *SeriesKey
}

func drawSeries(rnd *rand.Rand) spelledSeries {
	uid := func() encoding.UID { return encoding.UID{0, byte(rnd.IntN(9)), byte(rnd.IntN(9))} }
	s := spelledSeries{metric: fmt.Sprint("m", rnd.IntN(40))}
	var spelled strings.Builder
	spelled.WriteString(s.metric)
	var pairs []byte
	for k := range rnd.IntN(5) {
		t := Tag{fmt.Sprint("k", k), strings.Repeat("v", 1+rnd.IntN(40)) + fmt.Sprint(rnd.IntN(3))}
		s.tags = append(s.tags, t)
		fmt.Fprintf(&spelled, " %s=%s", t.K, t.V)
		pairs = append(append(pairs, uid()...), uid()...)
	}
	s.key, s.uids = spelled.String(), newSeriesKey(uid(), pairs)
	return s
}

// A table answers for a key the series that was put last under it, with its names, or
// nothing: whatever goes for want of room, however keys come and names change, also where
// many keys have one hash. What was
// just put is there. A series that was found stays valid when its entry has gone.
func TestSeriesTable(t *testing.T) {
	seed := seedtest.Of(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 10 {
		limit := chunkBytes * (1 + rnd.IntN(6)) * (1 + rnd.IntN(20))
		table := newSeriesTable(int64(limit), 3)
		if whole := table.hash; round%2 == 0 {
			table.hash = func(key string) uint64 { return whole(key) & 0xf000003ff }
		}
		type held struct {
			spelledSeries
			generation uint64
		}
		last, generation := map[string]held{}, uint64(0)
		check := func(what string, k *SeriesKey, want held) {
			t.Helper()
			metric, tags := k.names.parse()
			got := spelledSeries{metric: metric, tags: tags}
			if got.metric != want.metric || !cmp.Equal(got.tags, want.tags) ||
				string(k.Metric) != string(want.uids.Metric) ||
				string(k.Tags) != string(want.uids.Tags) || k.hash != want.uids.hash ||
				k.generation != want.generation {
				t.Fatalf("%s: %q is %v with %+v, want %v with %+v", what, want.key, k, got, want.uids, want)
			}
		}

		var early SeriesKey // found first, looked at last
		var earlyWant held
		for range 20_000 {
			s := drawSeries(rnd)
			switch k := new(SeriesKey); rnd.IntN(2000) {
			case 0:
				generation++
			case 1:
				table.drop()
				clear(last)
			default:
				if table.findInto(k, s.key, generation) {
					check("found", k, last[s.key])
					if earlyWant.key == "" {
						early, earlyWant = *k, last[s.key]
					}
					break
				}
				s.uids.generation = generation
				if !table.put(s.key, s.metric, s.tags, s.uids) {
					if limit/len(table.shards) >= 2*chunkBytes {
						t.Fatalf("%q was not put into %d bytes", s.key, limit)
					}
					break
				}
				last[s.key] = held{s, generation}
				if !table.findInto(k, s.key, generation) {
					t.Fatalf("%q is not found behind its put", s.key)
				}
				check("put", k, last[s.key])
			}
		}
		for i := range table.shards {
			if n := len(table.shards[i].state.Load().chunks); n*chunkBytes > table.shards[i].maxBytes {
				t.Fatalf("%d chunks in %d bytes", n, table.shards[i].maxBytes)
			}
		}
		if earlyWant.key != "" {
			check("held", &early, earlyWant)
		} else if limit/len(table.shards) >= 2*chunkBytes { // less has no room for a chunk and an index
			t.Fatal("nothing was ever found")
		}
	}
}

// Entries that are found again and again stay while others come and go.
func TestSeriesTable_keepsFound(t *testing.T) {
	table := newSeriesTable(8*chunkBytes, 3) // one shard
	k := newSeriesKey(encoding.UID{0, 0, 1}, nil)
	put := func(i int) {
		name := fmt.Sprint("metric.", i)
		if !table.put(name, name, nil, k) {
			t.Fatalf("%s was not put", name)
		}
	}
	const kept = 50
	for i := range 100_000 {
		put(i)
		for j := range min(i, kept) { // the found ones are far fewer than half a chunk
			if i%100 == 0 && !table.findInto(new(SeriesKey), fmt.Sprint("metric.", j), 0) {
				t.Fatalf("metric.%d has gone behind metric.%d, found every 100", j, i)
			}
		}
	}
	if table.findInto(new(SeriesKey), "metric.60000", 0) {
		t.Error("metric.60000 is there behind 40,000 more: the table has no bound")
	}
}

// Goroutines that put, find and drop find the series of the key that they ask for, or none,
// also while others take the slots behind those that they look at. Run it with -race, too.
func TestSeriesTable_concurrent(t *testing.T) {
	for round := range 200 {
		table := newSeriesTable(1<<20, 3)
		if whole := table.hash; round%2 == 0 {
			table.hash = func(key string) uint64 { return whole(key) & 3 }
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var k SeriesKey
				for i := range 600 {
					n := (i*7 + g) % 300
					name := fmt.Sprint("metric.", 1000+n) // as long as the others
					if !table.findInto(&k, name, 0) {
						table.put(name, name, nil, newSeriesKey(encoding.UID{0, byte(n >> 8), byte(n)}, nil))
					} else if metric, _ := k.names.parse(); metric != name || k.Metric[1] != byte(n>>8) ||
						k.Metric[2] != byte(n) {
						t.Errorf("round %d: %s is %s %v", round, name, metric, k.Metric)
						return
					}
					if i == 400 && g == 0 {
						table.drop()
					}
				}
			})
		}
		if wg.Wait(); t.Failed() {
			return
		}
	}
}

// An entry has the bytes that the comment of seriesTable shows.
func TestAppendEntry(t *testing.T) {
	k := newSeriesKey(encoding.UID{0, 0, 1}, []byte{0, 0, 2, 0, 0, 3})
	e, ok := appendEntry(nil, "\x02m host=web", "m", []Tag{{"host", "web"}}, k)
	want := "0B 00 09 06 02 6D 20 68 6F 73 74 3D 77 65 62 00 00 01 00 00 02 00 00 03 02 01 02 04 02 03"
	if got := fmt.Sprintf("% X", e); !ok || got != want {
		t.Errorf("got  %s, %t\nwant %s, true", got, ok, want)
	}

	// "w\u00e9b" in JSON is no name of the series.
	table := newSeriesTable(1<<20, 3)
	for key, tags := range map[string][]Tag{
		`m {"host":"w\u00e9b"}`: {{"host", "wéb"}}, `m {"h\u00f6st":"web"}`: {{"höst", "web"}},
		"x host=web": {{"host", "web"}},
	} {
		if _, ok := appendEntry(nil, key, "m", tags, k); ok || table.put(key, "m", tags, k) {
			t.Errorf("an entry was made whose key, %s, does not contain a name", key)
		}
	}
}

// Names are found wherever they are in the key, and whatever their lengths. A series with more UIDs, or
// more places, than an entry has room for is not kept.
func TestSeriesTable_places(t *testing.T) {
	long := strings.Repeat("long", 300)
	backwards := []Tag{{"zone", "a"}, {"host", long}, {"e", "zone"}}
	many := make([]Tag, 70)
	var spelled strings.Builder
	for i := range many {
		many[i] = Tag{fmt.Sprint("k", i), fmt.Sprint("v", i)}
		fmt.Fprintf(&spelled, " %s=%s", many[i].K, many[i].V)
	}
	table := newSeriesTable(1<<20, 3)
	for _, c := range []struct {
		key  string
		tags []Tag
		uids int
		kept bool
	}{
		{`{"tags":{"e":"zone","host":"` + long + `","zone":"a"},"metric":"m"}`, backwards, 18, true},
		{"m host=web", []Tag{{"host", "web"}}, 252, true},
		{"m host=web", []Tag{{"host", "web"}}, 253, false},
		{"m" + spelled.String(), many[:31], 186, true},
		{"m" + spelled.String(), many[:40], 240, true},
		{"m" + spelled.String(), many, 0, false}, // 141 names, of two bytes each and more
	} {
		table.drop()
		kept := table.put(c.key, "m", c.tags, newSeriesKey(encoding.UID{0, 0, 1}, make([]byte, c.uids)))
		var k SeriesKey
		if found := table.findInto(&k, c.key, 0); kept != c.kept || found != c.kept {
			t.Errorf("%.50s: kept %t, found %t, want %t", c.key, kept, found, c.kept)
			continue
		}
		if metric, tags := k.names.parse(); c.kept && (metric != "m" || !cmp.Equal(tags, c.tags)) {
			t.Errorf("%.50s: got %s %v, want m %v", c.key, metric, tags, c.tags)
		}
	}
}

// A series that was just resolved is not in the table yet, and has its names all the same.
func TestNamesOf_resolved(t *testing.T) {
	want := []Tag{{"host", "web"}, {"zone", "a"}}
	k, err := newTestSeries(&numbering{}).Resolve(t.Context(), "m", want)
	if err != nil {
		t.Fatal(err)
	}
	if metric, tags := k.names.parse(); metric != "m" || !cmp.Equal(tags, want) {
		t.Errorf("got %s %v, want m %v", metric, tags, want)
	}
}

// A series takes 120 bytes at most with its key.
func TestSeriesTable_size(t *testing.T) {
	const n = 300_000
	table := newSeriesTable(SeriesBytes, 3)
	before := heaptest.InUse()
	tags := []Tag{{"host", ""}, {"pod", ""}, {"zone", ""}}
	name := func(i int) string {
		tags[0].V, tags[1].V, tags[2].V = fmt.Sprint("host-", i%10_000), fmt.Sprint("pod-", i), fmt.Sprint("zone-", i%7)
		return fmt.Sprintf("\x02new.series host=%s pod=%s zone=%s", tags[0].V, tags[1].V, tags[2].V)
	}
	k := newSeriesKey(encoding.UID{0, 0, 1}, make([]byte, 18))
	for i := range n {
		table.put(name(i), "new.series", tags, k)
	}
	if each := (heaptest.InUse() - before) / n; each > 120 {
		t.Errorf("a series takes %d bytes, want 120 at most", each)
	} else {
		t.Logf("a series takes %d bytes", each)
	}
	var gone int
	for i := range n {
		if !table.findInto(k, name(i), 0) {
			gone++
		}
	}
	if gone > 0 {
		t.Errorf("%d of %d series are not there", gone, n)
	}
	runtime.KeepAlive(table)
}

// BenchmarkResolver_Find measures a look-up of one of 1,000 series by what a telnet client writes.
func BenchmarkResolver_Find(b *testing.B) {
	r := &Resolver{series: newTestSeries(&numbering{}), spelling: TelnetSpelling}
	metric := []byte("cpu.user ")
	var tags [][]byte
	for i := range 1000 {
		values := []string{fmt.Sprintf("host-%06d", i), fmt.Sprintf("region-%d", i%9), fmt.Sprintf("dc-%02d", i%27)}
		tags = append(tags, fmt.Appendf(nil, "host=%s region=%s dc=%s", values[0], values[1], values[2]))
		r.Find(metric, tags[i])
		if _, err := r.Resolve(b.Context(), "cpu.user",
			[]Tag{{"host", values[0]}, {"region", values[1]}, {"dc", values[2]}}); err != nil {
			b.Fatal(err)
		}
	}
	i := 0
	for b.Loop() {
		if _, ok := r.Find(metric, tags[i%1000]); !ok {
			b.Fatal("a series is not found")
		}
		i++
	}
}

// A table has a power of two of shards, each with some chunks.
func TestSeriesTable_shards(t *testing.T) {
	for limit, want := range map[int64]int{
		1: 1, 2*shardBytes - 1: 1, 2 * shardBytes: 2, 3 * shardBytes: 2, 12 * shardBytes: 8, 16 * shardBytes: 16,
		1 << 30: 16,
	} {
		if got := len(newSeriesTable(limit, 3).shards); got != want {
			t.Errorf("%d bytes: %d shards, want %d", limit, got, want)
		}
	}
}

// A table in which a chunk and the smallest index have no room keeps nothing.
func TestSeriesTable_noRoom(t *testing.T) {
	k := newSeriesKey(encoding.UID{0, 0, 1}, nil)
	for _, missing := range []int64{0, 1} {
		table := newSeriesTable(chunkBytes+smallIndex*slotBytes-missing, 3)
		if put := table.put("m", "m", nil, k); put != (missing == 0) {
			t.Errorf("%d bytes are missing, and a series is put: %v", missing, put)
		}
	}
}
