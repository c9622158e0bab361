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

func heads(n int) *access.Prefixes {
	h := access.NewPrefixes(encoding.DefaultSchema(), encoding.UID{9, 0, 0})
	for i := range n {
		h.Add([]byte{0, 0, 2, 0, byte(i >> 8), byte(i)})
	}
	return h
}

// Rows looked at for nothing make one caller learn, and further walks another,
// later and later.
func TestMemory(t *testing.T) {
	m := access.NewMemory()
	walk := access.Walk{To: 6 * 3600, Ranges: 12, Looked: 6000, Wanted: 6, Took: time.Second}
	begin := func(want bool) {
		t.Helper()
		task, ok := m.Begin("a")
		if ok != want || ok && task != (access.Task{To: 6 * 3600, Limit: 999 / access.RowsPerHead, Within: 2 * time.Second}) {
			t.Fatalf("begin %t with %+v, want %t", ok, task, want)
		}
	}
	begin(false) // nothing is known
	m.Note("a", access.Walk{To: 6 * 3600, Ranges: 12, Looked: 18, Wanted: 6})
	begin(false)
	if !m.Look("a").Few {
		t.Error("3 rows an hour are not few")
	}
	m.Note("a", walk)
	if m.Look("a").Few {
		t.Error("1000 rows an hour are few")
	}
	begin(true)
	m.Note("a", walk)
	begin(false) // somebody is at it
	m.Learned("a", []*access.Prefixes{nil, heads(3)}, nil)
	if known := m.Look("a"); len(known.Heads) != 2 || known.Heads[0] != nil || known.Heads[1].Len() != 4 || known.Clean {
		t.Errorf("known is %+v", known)
	}
	for pause := 4; pause < 1000; pause = 4*pause + 4 {
		for range pause {
			m.Note("a", walk)
			begin(false)
		}
		m.Note("a", walk)
		begin(true)
		m.Learned("a", nil, nil) // which keeps what was known
		if m.Look("a").Heads == nil {
			t.Fatal("heads are forgotten")
		}
	}
	m.Note("a", access.Walk{To: 6 * 3600, Ranges: 12}) // says nothing
	if m.Look("a").Few {
		t.Error("hours without rows changed what is known")
	}
}

// Prefixes of all wanted tags are all there are, until a walk shows otherwise; those of
// one learning join those of another, if that is not too much.
func TestMemory_clean(t *testing.T) {
	m := access.NewMemory()
	m.Learned("a", []*access.Prefixes{heads(3), heads(5)}, nil)
	few := access.Walk{To: 3600, Ranges: 20, Looked: 30, Wanted: 1}
	if m.Note("a", few); !m.Look("a").Clean {
		t.Error("not clean after a few rows")
	}
	if m.Note("a", access.Walk{To: 3600, Ranges: 20, Looked: 6000, Wanted: 1}); m.Look("a").Clean {
		t.Error("clean after many rows")
	}
	m.Learned("a", []*access.Prefixes{heads(8), nil}, nil)
	if known := m.Look("a"); known.Clean || known.Heads[0].Len() != 9 || known.Heads[1].Len() != 6 {
		t.Errorf("known is %+v", known)
	}
	m.Learned("a", []*access.Prefixes{heads(250), heads(2)}, nil)
	if known := m.Look("a"); !known.Clean || known.Heads[0].Len() != 251 || known.Heads[1].Len() != 6 {
		t.Errorf("known is %+v", known)
	}
}

// After a fault heads are not known, and the next walks but one learn again.
func TestMemory_fault(t *testing.T) {
	m := access.NewMemory()
	walk := func(want bool) {
		t.Helper()
		m.Note("a", access.Walk{To: 3600, Looked: 6000})
		if _, ok := m.Begin("a"); ok != want {
			t.Fatalf("begin %t, want %t", ok, want)
		}
	}
	walk(true)
	m.Learned("a", []*access.Prefixes{heads(1)}, io.ErrUnexpectedEOF)
	if m.Look("a").Heads != nil {
		t.Error("heads of a failure are known")
	}
	walk(false)
	walk(true)
}

// The memory is bounded; what was used last stays.
func TestMemory_bounded(t *testing.T) {
	m := access.NewMemory()
	few := access.Walk{To: 3600, Looked: 1, Wanted: 1}
	m.Note("kept", few)
	for i := range 10_000 {
		m.Note(fmt.Sprint(i), few)
		if !m.Look("kept").Few {
			t.Fatalf("forgotten after %d others", i)
		}
	}
	if m.Look("100").Few {
		t.Error("nothing is ever forgotten")
	}
}

// Nobody needs a memory, and one is for many goroutines.
func TestMemory_nilAndMany(t *testing.T) {
	var none *access.Memory
	none.Note("a", access.Walk{To: 3600, Looked: 1000})
	if _, ok := none.Begin("a"); ok || none.Look("a").Few {
		t.Error("a nil memory remembers")
	}
	m := access.NewMemory()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				name := fmt.Sprint(i % (1000 + g))
				m.Note(name, access.Walk{To: 3600, Looked: 1000})
				m.Look(name)
				if _, ok := m.Begin(name); ok {
					m.Learned(name, []*access.Prefixes{heads(i % 5)}, nil)
				}
			}
		})
	}
	wg.Wait()
}

// Plans that want other tags, are of other metrics or read other salt buckets, know
// nothing of each other.
func TestSubject(t *testing.T) {
	part := func(salt, metric byte, tags ...scanplan.TagPredicate) string {
		s := encoding.DefaultSchema()
		s.SaltWidth = 1
		return access.Subject(&scanplan.Part{Plan: scanplan.Plan{Schema: s, Table: "tsdb", Metric: encoding.UID{0, 0, metric}, Tags: tags},
			Range: scanplan.KeyRange{Start: []byte{salt, 0, 0, metric, 1, 2, 3, 4}}})
	}
	in := func(k byte) scanplan.TagPredicate {
		return scanplan.TagPredicate{TagK: encoding.UID{0, 0, k}, Op: scanplan.In}
	}
	present := scanplan.TagPredicate{TagK: encoding.UID{0, 0, 7}}
	if part(0, 1, in(1)) != part(0, 1, in(1), present) {
		t.Error("a tag that may have any value matters")
	}
	names := []string{part(0, 1, in(1)), part(1, 1, in(1)), part(0, 2, in(1)), part(0, 1, in(2)), part(0, 1, in(1), in(2))}
	if slices.Sort(names); len(slices.Compact(names)) != 5 {
		t.Errorf("two subjects are one: %q", names)
	}
}

// So are its bytes, where subjects have very many heads.
func TestMemory_bytes(t *testing.T) {
	long := func() *access.Prefixes {
		h := access.NewPrefixes(encoding.DefaultSchema(), encoding.UID{9, 0, 0})
		for i := range access.MaxHeads - 1 {
			tags := make([]byte, 60)
			tags[2], tags[3] = byte(i>>8)+1, byte(i)
			h.Add(tags)
		}
		return h
	}
	m := access.NewMemory()
	before := heaptest.InUse()
	for i := range 600 {
		m.Learned(fmt.Sprint(i), []*access.Prefixes{long(), long()}, nil)
		if len(m.Look(fmt.Sprint(i)).Heads) != 2 {
			t.Fatalf("subject %d is not remembered", i)
		}
	}
	if grown := heaptest.InUse() - before; grown > 20<<20 {
		t.Errorf("%d MiB are held", grown>>20)
	}
	if m.Look("0").Heads != nil {
		t.Error("nothing is ever forgotten")
	}
	runtime.KeepAlive(m)
}
