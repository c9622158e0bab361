//go:build integration

package integration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/store"
	hbasestore "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/storetest"
)

// Version tokens of both proofs, on a region of a real HBase that is written to all the time, after each
// kind of change of a row. Exact tokens are never equal after a change; those by timestamps never after
// what they claim to see. Until then the latter are equal, although the region is written to.
func TestProofs_living(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	l := startLiving(ctx, t)
	admin, table := hbase(t).Admin, l.table
	change := func(kind string, at int64) func(row []byte) error {
		return func(row []byte) error {
			return admin.Change(ctx,
				table, e2e.CellChange{Kind: kind, Row: row, Qualifier: []byte("q0"), Value: []byte("changed!"), At: at})
		}
	}
	old := l.base + 1

	for i, c := range []struct {
		name   string
		hidden bool // from timestamps: the operator promises that it does not happen
		do     func(row []byte) error
	}{
		{name: "put", do: change("put", -1)},
		{name: "put without log", do: change("put without log", -1)},
		{name: "append", do: change("append", -1)},
		{name: "increment", do: change("increment", -1)},
		{name: "check and put", do: change("check and put", -1)},
		{name: "delete column", do: change("delete column", -1)},
		{name: "delete family", do: change("delete family", -1)},
		{name: "delete row", do: change("delete row", -1)},
		{name: "replacement of cells with their old times", do: func(row []byte) error { return l.replace(ctx, row) }},
		{name: "put of an old time", hidden: true, do: change("put", old)},
		{name: "delete of an old time", hidden: true, do: change("delete column", old)},
		{name: "delete version", hidden: true, do: change("delete version", -1)},
		{name: "delete, flush, major compaction", do: func(row []byte) error {
			return errors.Join(change("delete column", -1)(row), admin.Flush(ctx, table), admin.Compact(ctx, table))
		}},
	} {
		r := l.fill(ctx, i)
		before := l.settled(ctx, c.name, r)
		if err := c.do(append([]byte(nil), r.Start...)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for proof, st := range l.stores {
			after, err := storetest.Version(ctx, st, table, "t", r)
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, proof, err)
			}
			if same := after == before[proof]; same != (c.hidden && proof == "timestamps") {
				t.Errorf("%s, %s: the token is the same: %v; want it only if the change is hidden (%v)",
					c.name, proof, same, c.hidden)
			}
		}
	}
}

// A range of more bytes than HBase reads before it changes to streaming reads (256 KiB) is proven by
// timestamps where its old cells lie in one file with recent ones.
func TestProofs_large(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := startLiving(ctx, t)
	admin, r := hbase(t).Admin, store.KeyRange{Start: []byte("k"), Stop: []byte("l")}
	for i := range 40 {
		row := fmt.Appendf(nil, "k%02d", i)
		if err := admin.Change(ctx, l.table, e2e.CellChange{
			Kind:      "put",
			Row:       row,
			Qualifier: []byte("q0"),
			Value:     make([]byte, 32<<10),
			At:        l.base,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(admin.Flush(ctx, l.table), admin.Compact(ctx, l.table)); err != nil {
		t.Fatal(err)
	}

	before := l.settled(ctx, "1.25 MiB in one file with recent cells", r)
	if err := admin.Change(ctx, l.table, e2e.CellChange{
		Kind:      "put",
		Row:       []byte("k39"),
		Qualifier: []byte("q0"),
		Value:     []byte("changed!"),
		At:        -1,
	}); err != nil {
		t.Fatal(err)
	}
	after, err := storetest.Version(ctx, l.stores["timestamps"], l.table, "t", r)
	if err != nil || after == before["timestamps"] {
		t.Errorf("after a put to its last row: token %x, error %v; want another one than %x",
			after, err, before["timestamps"])
	}
}

// living is a table of one region. One of its rows is written to all the time.
type living struct {
	*testing.T
	table  string
	base   int64 // time of the cells that fill writes, ms
	stores map[string]store.Versioner
	stamps *hbasestore.Store
}

func startLiving(ctx context.Context, t *testing.T) *living {
	l := &living{
		T:      t,
		table:  t.Name(),
		base:   time.Now().Add(-time.Hour).UnixMilli(),
		stores: map[string]store.Versioner{},
	}
	if err := hbase(t).Admin.CreateTable(ctx, l.table, "NONE", []string{"t"}); err != nil {
		t.Fatal(err)
	}
	for name, proof := range map[string]hbasestore.Proof{
		"exact":      hbasestore.ProofExact,
		"timestamps": hbasestore.ProofTimestamps,
	} {
		cfg, err := hbasestore.ParseAddress(hbase(t).Quorum())
		if err != nil {
			t.Fatal(err)
		}
		// A busy machine must not make proofs fail.
		cfg.Proof, cfg.VersionTimeout = proof, time.Minute
		st, err := hbasestore.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		l.stores[name], l.stamps = st, st
	}

	writing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; writing.Err() == nil; i++ {
			_ = l.stamps.Apply(writing, l.table, []store.Mutation{
				{Kind: store.Put, Row: []byte("zz"), Family: "t", Qualifier: []byte("q"), Value: fmt.Append(nil, i)},
			})
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return l
}

// fill writes rows of an hour ago and returns their range. It flushes them, so that the region has
// a file that is older than the next change.
func (l *living) fill(ctx context.Context, i int) store.KeyRange {
	l.Helper()
	r := store.KeyRange{Start: fmt.Appendf(nil, "k%02d", i), Stop: fmt.Appendf(nil, "k%02d", i+1)}
	for j := range 10 {
		row := r.Start
		if j > 0 {
			row = fmt.Appendf(nil, "k%02d-%d", i, j)
		}
		if err := hbase(l.T).Admin.Change(ctx, l.table, e2e.CellChange{
			Kind:      "put",
			Row:       row,
			Qualifier: []byte("q0"),
			Value:     binary.BigEndian.AppendUint64(nil, 7),
			At:        l.base,
		}); err != nil {
			l.Fatal(err)
		}
	}
	if err := hbase(l.T).Admin.Flush(ctx, l.table); err != nil {
		l.Fatal(err)
	}
	return r
}

// settled asks for tokens until those by timestamps stay equal, and returns the last ones. The exact
// ones do not, because the region is written to.
func (l *living) settled(ctx context.Context, name string, r store.KeyRange) map[string]string {
	l.Helper()
	last := map[string]string{}
	var failed error
	err := e2e.Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		equal := true
		for proof, st := range l.stores {
			token, err := storetest.Version(ctx, st, l.table, "t", r)
			failed = err
			if proof == "timestamps" {
				equal = err == nil && token != "" && token == last[proof]
			}
			last[proof] = token
		}
		if !equal {
			return fmt.Errorf("tokens by timestamps differ, last error: %v", failed)
		}
		return nil
	})
	if err != nil {
		l.Fatalf("%s: %v", name, err)
	}
	return last
}

// replace puts a cell of the time of the one that is there, as fsck does.
func (l *living) replace(ctx context.Context, row []byte) error {
	rows, err := l.stamps.Get(ctx, l.table, "t", [][]byte{row})
	if err != nil || len(rows) != 1 {
		return fmt.Errorf("%d rows: %w", len(rows), err)
	}
	at := rows[0].Cells[0].Timestamp
	out, err := l.stamps.Replace(ctx, l.table, "t", []store.Replacement{
		{Read: rows[0], Put: []store.Cell{{Qualifier: []byte("q1"), Value: []byte("v"), Timestamp: at}}},
	})
	if err == nil && out[0] != store.Replaced {
		err = fmt.Errorf("got %v, want %v", out[0], store.Replaced)
	}
	return err
}
