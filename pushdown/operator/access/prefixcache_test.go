package access_test

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/heap/heaptest"
)

func prefixes(n int) *access.Prefixes {
	h := access.NewPrefixes(encoding.DefaultSchema(), encoding.UID{9, 0, 0})
	for i := range n {
		h.Add([]byte{0, 0, 2, 0, byte(i >> 8), byte(i)})
	}
	return h
}

// A scan that reads many unwanted rows makes one caller learn prefixes. Further such
// scans make a caller learn again, each time after more of them.
func TestPrefixCache(t *testing.T) {
	m := access.NewPrefixCache()
	walk := access.ScanCost{From: 3600, To: 7 * 3600, Ranges: 12, Scanned: 6000, Wanted: 606, Took: time.Second}
	begin := func(want bool) {
		t.Helper()
		task, ok := m.BeginLearning("a")
		if ok != want || ok && task != (access.Learning{
			From:   3600,
			To:     7 * 3600,
			Limit:  899 / access.RowsPerPrefix,
			Within: 2 * time.Second,
		}) {
			t.Fatalf("begin %t with %+v, want %t", ok, task, want)
		}
	}
	begin(false) // nothing is known
	m.Record("a", access.ScanCost{To: 6 * 3600, Ranges: 12, Scanned: 18, Wanted: 6})
	begin(false)
	if !m.Lookup("a").Few {
		t.Error("3 rows an hour are not few")
	}
	m.Record("a", walk)
	if known := m.Lookup("a"); known.Few || !known.Many {
		t.Error("1000 rows an hour are few, or not many")
	}
	begin(true)
	m.Record("a", walk)
	begin(false) // somebody is learning already
	m.EndLearning("a", []*access.Prefixes{nil, prefixes(3)}, nil)
	if known := m.Lookup("a"); len(known.Prefixes) != 2 || known.Prefixes[0] != nil || known.Prefixes[1].Len() != 4 ||
		known.Clean {
		t.Errorf("known is %+v, want no prefixes of the first tag, 4 of the second, not clean", known)
	}
	for pause := 4; pause < 1000; pause = 4*pause + 4 {
		for range pause {
			m.Record("a", walk)
			begin(false)
		}
		m.Record("a", walk)
		begin(true)
		m.EndLearning("a", nil, nil) // which keeps what was known
		if known := m.Lookup("a"); known.Prefixes == nil || known.Clean {
			t.Fatalf("known is %+v, want the prefixes, not clean", known)
		}
	}
	m.Record("a", access.ScanCost{To: 6 * 3600, Ranges: 12}) // without rows it shows nothing
	if m.Lookup("a").Few {
		t.Error("hours without rows changed what is known")
	}
}

// Once the prefixes of all wanted tags are learned, they are clean, until a scan reads many
// unwanted rows. Prefixes that are learned later join those that are known.
func TestPrefixCache_clean(t *testing.T) {
	m := access.NewPrefixCache()
	m.EndLearning("a", []*access.Prefixes{prefixes(3), prefixes(5)}, nil)
	few := access.ScanCost{To: 3600, Ranges: 20, Scanned: 30, Wanted: 1}
	if m.Record("a", few); !m.Lookup("a").Clean {
		t.Error("not clean after a few rows")
	}
	if m.Record("a", access.ScanCost{To: 3600, Ranges: 20, Scanned: 6000, Wanted: 1}); m.Lookup("a").Clean {
		t.Error("clean after many rows")
	}
	m.EndLearning("a", []*access.Prefixes{prefixes(8), nil}, nil)
	if known := m.Lookup("a"); known.Clean || known.Prefixes[0].Len() != 9 || known.Prefixes[1].Len() != 6 {
		t.Errorf("known is %+v, want 9 and 6 prefixes, not clean", known)
	}
	m.EndLearning("a", []*access.Prefixes{prefixes(250), prefixes(2)}, nil)
	if known := m.Lookup("a"); !known.Clean || known.Prefixes[0].Len() != 251 || known.Prefixes[1].Len() != 6 {
		t.Errorf("known is %+v, want 251 and 6 prefixes, clean", known)
	}
	// More together than may be: the newer ones count.
	m.EndLearning("a", []*access.Prefixes{prefixes(100), nil}, nil)
	if n := m.Lookup("a").Prefixes[0].Len(); n != 101 {
		t.Errorf("%d prefixes, want the 101 newer ones", n)
	}
}

// Rows that the plan admits are not wasted, and each range may waste some.
func TestPrefixCache_wasted(t *testing.T) {
	m := access.NewPrefixCache()
	scan := access.ScanCost{To: 3600, Ranges: 100, Scanned: 64 + 4*100 + 700, Wanted: 700}
	m.Record("a", scan)
	if _, ok := m.BeginLearning("a"); ok {
		t.Errorf("%+v makes a caller learn", scan)
	}
	scan.Scanned++
	m.Record("a", scan)
	if _, ok := m.BeginLearning("a"); !ok {
		t.Errorf("%+v makes nobody learn", scan)
	}
}

// After learning has failed no prefixes are known, and the second wasteful scan learns again.
func TestPrefixCache_fault(t *testing.T) {
	m := access.NewPrefixCache()
	walk := func(want bool) {
		t.Helper()
		m.Record("a", access.ScanCost{To: 3600, Scanned: 6000})
		if _, ok := m.BeginLearning("a"); ok != want {
			t.Fatalf("begin %t, want %t", ok, want)
		}
	}
	walk(true)
	m.EndLearning("a", []*access.Prefixes{prefixes(1)}, io.ErrUnexpectedEOF)
	if m.Lookup("a").Prefixes != nil {
		t.Error("prefixes of a failure are known")
	}
	walk(false)
	walk(true)
}

// The cache is bounded; recently used entries stay.
func TestPrefixCache_bounded(t *testing.T) {
	m := access.NewPrefixCache()
	few := access.ScanCost{To: 3600, Scanned: 1, Wanted: 1}
	m.Record("kept", few)
	for i := range 10_000 {
		m.Record(fmt.Sprint(i), few)
		if !m.Lookup("kept").Few {
			t.Fatalf("evicted after %d others", i)
		}
	}
	if m.Lookup("100").Few {
		t.Error("nothing is ever evicted")
	}
}

// A nil cache is empty and can be used, and many goroutines can use one cache.
func TestPrefixCache_nilAndMany(t *testing.T) {
	var none *access.PrefixCache
	none.Record("a", access.ScanCost{To: 3600, Scanned: 1000})
	if _, ok := none.BeginLearning("a"); ok || none.Lookup("a").Few {
		t.Error("a nil cache has something")
	}
	m := access.NewPrefixCache()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				name := fmt.Sprint(i % (1000 + g))
				m.Record(name, access.ScanCost{To: 3600, Scanned: 1000})
				m.Lookup(name)
				if _, ok := m.BeginLearning(name); ok {
					m.EndLearning(name, []*access.Prefixes{prefixes(i % 5)}, nil)
				}
			}
		})
	}
	wg.Wait()
}

// Parts of plans that want values of other tags or another metric, or that read another salt
// bucket, have keys of their own. A tag that may have any value does not count.
func TestCacheKey(t *testing.T) {
	in := func(k byte) scanplan.TagPredicate {
		return scanplan.TagPredicate{TagK: encoding.UID{0, 0, k}, Op: scanplan.In}
	}
	table := "tsdb"
	part := func(salt, metric byte, tags ...scanplan.TagPredicate) string {
		s := encoding.DefaultSchema()
		s.SaltWidth = 1
		return access.CacheKey(&scanplan.Part{
			Plan:  scanplan.Plan{Schema: s, Table: table, Metric: encoding.UID{0, 0, metric}, Tags: tags},
			Range: scanplan.KeyRange{Start: []byte{salt, 0, 0, metric, 1, 2, 3, 4}},
		})
	}
	present := scanplan.TagPredicate{TagK: encoding.UID{0, 0, 7}}
	if part(0, 1, in(1)) != part(0, 1, in(1), present) {
		t.Error("a tag that may have any value changes the key")
	}
	names := []string{part(0, 1, in(1)), part(1, 1, in(1)), part(0, 2, in(1)), part(0, 1, in(2)),
		part(0, 1, in(1), in(2)), part(1, 0, in(3))}
	table += "\x01\x00\x00" // followed by 00 and 00 00 03, where the last of the others has 01 00 00, 00 and 00 00 03
	names = append(names, part(0, 3))
	if slices.Sort(names); len(slices.Compact(names)) != 7 {
		t.Errorf("two parts have one key: %q", names)
	}
}

// The cache's bytes are bounded too, if each key has very many prefixes.
func TestPrefixCache_bytes(t *testing.T) {
	long := func() *access.Prefixes {
		h := access.NewPrefixes(encoding.DefaultSchema(), encoding.UID{9, 0, 0})
		for i := range access.MaxPrefixes - 1 {
			tags := make([]byte, 60)
			tags[2], tags[3] = byte(i>>8)+1, byte(i)
			h.Add(tags)
		}
		return h
	}
	m := access.NewPrefixCache()
	before := heaptest.InUse()
	for i := range 600 {
		m.EndLearning(fmt.Sprint(i), []*access.Prefixes{long(), long()}, nil)
		if len(m.Lookup(fmt.Sprint(i)).Prefixes) != 2 {
			t.Fatalf("the prefixes of key %d are not cached", i)
		}
	}
	if grown := heaptest.InUse() - before; grown > 20<<20 {
		t.Errorf("%d MiB are held, want at most 20", grown>>20)
	}
	if m.Lookup("0").Prefixes != nil {
		t.Error("nothing is ever evicted")
	}
	// What is learned again replaces what was known, and takes no more.
	for range 300 {
		m.EndLearning("599", []*access.Prefixes{long(), long()}, nil)
	}
	if m.Lookup("598").Prefixes == nil {
		t.Error("a key is evicted because another one was learned again")
	}
	runtime.KeepAlive(m)
}
