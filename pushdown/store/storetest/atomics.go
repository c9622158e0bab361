package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"downpour/pushdown/store"
)

// wantError fails unless err is target.
func wantError(t failer, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: %v, want %v", what, err, target)
	}
}

// counter returns the cell of a counter.
func counter(name string) store.CellKey {
	return store.CellKey{Row: []byte{0}, Family: "id", Qualifier: []byte(name)}
}

// value returns the value of a cell, nil if there is no such cell.
func (h *harness) value(cell store.CellKey) []byte {
	h.Helper()
	rows, err := h.Get(h.ctx, h.table, cell.Family, [][]byte{cell.Row})
	if err != nil {
		h.Fatalf("get: %v", err)
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) == string(cell.Qualifier) {
				return append([]byte{}, c.Value...) // not nil for an empty value
			}
		}
	}
	return nil
}

// Increment counts from nothing, up and down, and from what was put.
func testIncrement(h *harness) {
	step := func(name string, delta, want int64) {
		h.Helper()
		got, err := h.Increment(h.ctx, h.table, counter(name), delta)
		if err != nil || got != want {
			h.Fatalf("increment by %d: %d, %v, want %d", delta, got, err, want)
		}
		if stored := h.value(counter(name)); len(stored) != 8 || int64(binary.BigEndian.Uint64(stored)) != want {
			h.Fatalf("counter holds %x, want %d on 8 bytes", stored, want)
		}
	}

	step("metrics", 1, 1)
	step("metrics", 1, 2)
	step("metrics", 1<<40, 1<<40+2)
	step("metrics", -1<<40, 2)
	step("tagk", -5, -5)
	step("tagk", 0, -5)
	put := store.Mutation{
		Row:       []byte{0},
		Family:    "id",
		Qualifier: []byte("tagv"),
		Value:     binary.BigEndian.AppendUint64(nil, math.MaxInt32),
	}
	h.apply(h, put)
	step("tagv", 1, math.MaxInt32+1)
}

// Concurrent increments never return the same value.
func testIncrementConcurrently(h *harness) {
	const workers, each = 8, 40
	var mu sync.Mutex
	var got []int64

	g, ctx := errgroup.WithContext(h.ctx)
	for range workers {
		g.Go(func() error {
			for range each {
				v, err := h.Increment(ctx, h.table, counter("metrics"), 1)
				if err != nil {
					return err
				}
				mu.Lock()
				got = append(got, v)
				mu.Unlock()
			}
			return nil
		})
	}

	if err := g.Wait(); err != nil {
		h.Fatalf("increment: %v", err)
	}
	slices.Sort(got)
	for i, v := range got {
		if v != int64(i+1) {
			h.Fatalf("%d increments: the %dth value is %d", workers*each, i+1, v)
		}
	}
}

// CompareAndPut writes only over what it expects.
func testCompareAndPut(h *harness) {
	cell := store.CellKey{Row: []byte("sys.cpu.user"), Family: "id", Qualifier: []byte("metrics")}
	try := func(expected, value string, wrote bool, holds string) {
		h.Helper()
		var old []byte
		if expected != "" {
			old = []byte(expected)
		}
		got, err := h.CompareAndPut(h.ctx, h.table, cell, old, []byte(value))
		if err != nil || got != wrote {
			h.Fatalf("expected %q, value %q: %v, %v, want %v", expected, value, got, err, wrote)
		}

		if v := h.value(cell); string(v) != holds {
			h.Fatalf("expected %q, value %q: the cell holds %q, want %q", expected, value, v, holds)
		}
	}

	// Values that differ only by zero bytes at their end are different.
	try("something", "1", false, "")
	try("", "1\x00", true, "1\x00")
	try("", "2", false, "1\x00")
	try("1", "2", false, "1\x00")
	try("1\x00\x00", "2", false, "1\x00")
	try("1\x00", "2", true, "2")
	tick()
	h.apply(h, store.Mutation{Kind: store.DeleteCell, Row: cell.Row, Family: cell.Family, Qualifier: cell.Qualifier})
	tick()
	try("2", "3", false, "")
	try("", "3", true, "3")

	// An empty expected value is as nil: it expects no cell, and not an empty one.
	tryEmpty := func(want bool, value string) {
		h.Helper()
		got, err := h.CompareAndPut(h.ctx, h.table, cell, []byte{}, []byte(value))
		if err != nil || got != want {
			h.Fatalf("expected is empty, not nil, value %q: %v, %v, want %v", value, got, err, want)
		}
		tick()
	}
	tryEmpty(false, "4")
	h.apply(h, store.Mutation{Kind: store.DeleteCell, Row: cell.Row, Family: cell.Family, Qualifier: cell.Qualifier})
	tick()
	tryEmpty(true, "5")
	h.apply(h, store.Mutation{Kind: store.Put, Row: cell.Row, Family: cell.Family, Qualifier: cell.Qualifier})
	tick()
	try("", "6", false, "")
	tryEmpty(false, "6")
}

// Exactly one of concurrent attempts wins, and the cell holds its value.
func testCompareAndPutConcurrently(h *harness) {
	for round := range 10 {
		cell := store.CellKey{Row: fmt.Appendf(nil, "name%d", round), Family: "id", Qualifier: []byte("metrics")}
		var mu sync.Mutex
		var winners []string
		g, ctx := errgroup.WithContext(h.ctx)
		for w := range 8 {
			g.Go(func() error {
				value := fmt.Sprintf("worker %d", w)
				won, err := h.CompareAndPut(ctx, h.table, cell, nil, []byte(value))
				mu.Lock()
				defer mu.Unlock()
				if won {
					winners = append(winners, value)
				}
				return err
			})
		}

		if err := g.Wait(); err != nil {
			h.Fatalf("compare and put: %v", err)
		}
		if len(winners) != 1 || string(h.value(cell)) != winners[0] {
			h.Fatalf("winners %q, the cell holds %q", winners, h.value(cell))
		}
	}
}

// IncrementAll increments every counter, or none if one is not a counter.
func testIncrementAll(h *harness) {
	incrementAll := h.Features().IncrementAll
	if incrementAll == nil {
		return // a call for each counter is tested above
	}
	var cells []store.CellKey
	var deltas []int64
	for i := range 100 {
		cells = append(cells, store.CellKey{
			Row:       fmt.Appendf(nil, "series%d", i),
			Family:    "id",
			Qualifier: []byte("metrics"),
		})
		deltas = append(deltas, int64(i-50))
	}

	for round := range int64(3) {
		sums, err := incrementAll(h.ctx, h.table, cells, deltas)
		if err != nil {
			h.Fatalf("round %d: %v", round, err)
		}
		for i, sum := range sums {
			want := (round + 1) * deltas[i]
			if got := int64(binary.BigEndian.Uint64(h.value(cells[i]))); sum != want || got != want {
				h.Fatalf("round %d: counter %d is %d, and holds %d, want %d", round, i, sum, got, want)
			}
		}
	}

	h.apply(h, store.Mutation{
		Kind:      store.Put,
		Row:       cells[99].Row,
		Family:    "id",
		Qualifier: cells[99].Qualifier,
		Value:     []byte("short"),
	})
	if _, err := incrementAll(h.ctx, h.table, cells, deltas); err == nil ||
		!strings.Contains(err.Error(), "counter has 5 bytes, want 8") {
		h.Errorf("with a damaged counter: %v, want that it has 5 bytes", err)
	}
	if got := int64(binary.BigEndian.Uint64(h.value(cells[98]))); got != 3*deltas[98] {
		h.Errorf("with a damaged counter another one became %d, want %d as before", got, 3*deltas[98])
	}
}

// PutAbsent writes the cells that do not exist, and no others.
func testPutAbsent(h *harness) {
	var cells []store.CellKey
	var values [][]byte
	var want []bool
	for i := range 100 {
		cells = append(cells, store.CellKey{
			Row:       fmt.Appendf(nil, "name%d", i),
			Family:    "id",
			Qualifier: []byte("tagv"),
		})
		values = append(values, fmt.Appendf(nil, "%d", i))
		if want = append(want, i%3 != 0); !want[i] {
			h.apply(h, store.Mutation{
				Kind:      store.Put,
				Row:       cells[i].Row,
				Family:    "id",
				Qualifier: []byte("tagv"),
				Value:     []byte("old"),
			})
		}
	}

	for round := range 2 {
		wrote, err := store.PutAbsent(h.ctx, h.Store, h.table, cells, values)
		if err != nil || !slices.Equal(wrote, want) {
			h.Fatalf("round %d: wrote %v, %v, want %v", round, wrote, err, want)
		}
		for i, c := range cells {
			holds := "old"
			if i%3 != 0 {
				holds = string(values[i])
			}
			if got := string(h.value(c)); got != holds {
				h.Fatalf("round %d: %s holds %q, want %q", round, c.Row, got, holds)
			}
		}
		want = make([]bool, len(cells)) // now all exist
	}

	if wrote, err := store.PutAbsent(h.ctx, h.Store, h.table, nil, nil); err != nil || len(wrote) != 0 {
		h.Errorf("of no cells: %v, %v, want none and no error", wrote, err)
	}
	wantError(h, "put absent cells", func() error {
		_, err := store.PutAbsent(h.ctx, h.Store, uniqueTable(h.T)+"-missing", cells, values)
		return err
	}(), store.ErrNoTable)
}

// For each cell exactly one of concurrent writers wins.
func testPutAbsentConcurrently(h *harness) {
	var cells []store.CellKey
	for i := range 50 {
		cells = append(cells, store.CellKey{
			Row:       fmt.Appendf(nil, "name%d", i),
			Family:    "id",
			Qualifier: []byte("tagk"),
		})
	}

	won := make([][]bool, 4)
	values := func(w int) (out [][]byte) {
		for i := range cells {
			out = append(out, fmt.Appendf(nil, "%d of writer %d", i, w))
		}
		return out
	}
	g, ctx := errgroup.WithContext(h.ctx)
	for w := range won {
		g.Go(func() (err error) {
			won[w], err = store.PutAbsent(ctx, h.Store, h.table, cells, values(w))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		h.Fatalf("put absent cells: %v", err)
	}

	for i, c := range cells {
		winners := 0
		for w := range won {
			if !won[w][i] {
				continue
			}
			winners++
			if got, want := string(h.value(c)), string(values(w)[i]); got != want {
				h.Errorf("%s holds %q, want %q", c.Row, got, want)
			}
		}
		if winners != 1 {
			h.Errorf("%s was written by %d writers, want 1", c.Row, winners)
		}
	}
}

// A missing table has its own error.
func testMissingTable(h *harness) {
	name := uniqueTable(h.T) + "-missing"
	cell := store.CellKey{Row: []byte("r"), Family: "t", Qualifier: []byte("q")}
	_, err := h.Get(h.ctx, name, "", [][]byte{[]byte("r")})
	wantError(h, "get", err, store.ErrNoTable)
	wantError(h, "apply", h.Apply(h.ctx, name, []store.Mutation{put("r", "q", "v")}), store.ErrNoTable)
	_, err = h.Increment(h.ctx, name, cell, 1)
	wantError(h, "increment", err, store.ErrNoTable)
	_, err = h.CompareAndPut(h.ctx, name, cell, nil, []byte("v"))
	wantError(h, "compare and put", err, store.ErrNoTable)
	_, err = h.Regions(h.ctx, name, nil, nil)
	wantError(h, "regions", err, store.ErrNoTable)
	sc, err := h.Scan(h.ctx, store.Scan{Table: name})
	if err == nil { // a store may fail only at the first call
		defer sc.Close()
		_, err = sc.Next()
	}

	wantError(h, "scan", err, store.ErrNoTable)
	h.exists(name, false)
}

// manyRows writes n rows of 1,000 bytes.
func (h *harness) manyRows(n int) {
	var ms []store.Mutation
	for i := range n {
		ms = append(ms, put(fmt.Sprintf("r%05d", i), "q", string(make([]byte, 1000))))
	}
	h.apply(h, ms...)
}

// A scan ends with its context, before its end.
func testCancelledScan(h *harness) {
	h.manyRows(3000)
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	sc, err := h.Scan(ctx, store.Scan{Table: h.table, BlockBytes: 2000})
	if err != nil {
		h.Fatalf("scan: %v", err)
	}
	defer sc.Close()

	if _, err := sc.Next(); err != nil {
		h.Fatalf("first block: %v", err)
	}

	cancel()
	// Blocks that are ready may still come.
	for err == nil {
		_, err = sc.Next()
	}

	wantError(h, "next after cancel", err, context.Canceled)
	if _, again := sc.Next(); again == nil || again == io.EOF {
		h.Fatalf("next after the error: %v, want an error: rows are missing", again)
	}

	sc, err = h.Scan(ctx, store.Scan{Table: h.table})
	// A store may fail only at the first call.
	if err == nil {
		defer sc.Close()
		_, err = sc.Next()
	}
	wantError(h, "scan with a cancelled context", err, context.Canceled)
}

// A scanner may be closed early, and twice, and counts what it delivered.
func testCloseScanner(h *harness) {
	h.manyRows(300)
	sc, err := h.Scan(h.ctx, store.Scan{Table: h.table, BlockBytes: 2000})
	if err != nil {
		h.Fatalf("scan: %v", err)
	}
	rows, err := sc.Next()
	if err != nil {
		h.Fatalf("next: %v", err)
	}

	// Each row of manyRows has a value of 1000 bytes.
	if st := sc.Stats(); st.Rows < int64(len(rows)) || st.Cells < st.Rows || st.Bytes < 1000*st.Rows {
		h.Fatalf("stats after %d rows: %+v", len(rows), st)
	}
	for range 3 {
		if err := sc.Close(); err != nil {
			h.Fatalf("close: %v", err)
		}
	}

	if _, err := sc.Next(); err == nil || err == io.EOF {
		h.Fatalf("next after close: %v, want an error: rows are missing", err)
	}
}

// Close may be called twice. Afterwards every call returns ErrClosed.
func testClose(h *harness) {
	h.apply(h, put("r", "q", "v"))
	for range 2 {
		if err := h.Close(); err != nil {
			h.Fatalf("close: %v", err)
		}
	}

	_, err := h.Get(h.ctx, h.table, "", [][]byte{[]byte("r")})
	wantError(h, "get", err, store.ErrClosed)
	wantError(h, "apply", h.Apply(h.ctx, h.table, []store.Mutation{put("r", "q", "v")}), store.ErrClosed)
	_, err = h.Increment(h.ctx, h.table, counter("c"), 1)
	wantError(h, "increment", err, store.ErrClosed)
	sc, err := h.Scan(h.ctx, store.Scan{Table: h.table})
	// A store may fail only at the first call of Next.
	if err == nil {
		defer sc.Close()
		_, err = sc.Next()
	}

	wantError(h, "scan", err, store.ErrClosed)
}
