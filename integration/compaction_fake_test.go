//go:build integration

package integration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

// TestCompaction_fakeIsReal: the fake HBase by which orders of changes are drawn keeps, hides and
// drops versions as the real one does, and the same conditions hold. With -matrix each version of HBase that
// knows conditions is asked.
func TestCompaction_fakeIsReal(t *testing.T) {
	t.Parallel()
	onEachHBase(t, func(t *testing.T, h *e2e.HBase) {
		fakeIsReal(t, h)
		wideRow(t, h)
	})
}

// onEachHBase runs a test on the HBase that all tests share, and with -matrix on each other version that knows
// conditions on changes of rows, which came with 2.4.
func onEachHBase(t *testing.T, test func(*testing.T, *e2e.HBase)) {
	t.Run("default", func(t *testing.T) { test(t, hbase(t)) })
	if !*matrixFlag {
		return
	}
	for _, version := range must[[]string](t)(e2e.HBaseVersions())[1:] {
		if version < "2.4" {
			continue
		}
		t.Run(version, func(t *testing.T) {
			h := must[*e2e.HBase](t)(e2e.StartHBase(within(t, patience), e2e.HBaseOptions{
				Version:         version,
				RegionServers:   1,
				RegionServerMiB: 384,
				QuickStart:      true,
			}))
			closeAtEnd(t, h)
			test(t, h)
		})
	}
}

// openFake opens a store on the fake HBase, which logs nothing.
func openFake(t *testing.T, cluster *hbasefake.Cluster) *storehbase.Store {
	t.Helper()
	return must[*storehbase.Store](t)(storehbase.Open(storehbase.Config{
		Quorum: cluster.Address(),
		Dial:   cluster.Dial,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
}

// fakeIsReal compares the fake with a cluster.
func fakeIsReal(t *testing.T, h *e2e.HBase) {
	ctx := within(t, 4*time.Minute)
	admin := h.Admin
	real := must[*storehbase.Store](t)(storehbase.Open(must[storehbase.Config](t)(storehbase.ParseAddress(h.Quorum()))))
	defer real.Close()
	cluster := hbasefake.For(t, hbasefake.Options{Network: new(networktest.Memory)})
	fake := openFake(t, cluster)
	defer fake.Close()
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 0))

	rounds, held := 3, 0
	if *soak {
		rounds = 60
	}
	for round := range rounds {
		tables := e2e.TablesWithPrefix(fmt.Sprintf("same%d", round))
		if err := admin.CreateOpenTSDBTables(ctx, tables); err != nil {
			t.Fatal(err)
		}
		cluster.CreateTable(tables.Data, []string{encoding.FamilyData})
		cluster.KeepVersions(tables.Data)
		if err := real.CheckVersions(ctx, tables.Data, encoding.FamilyData); err != nil {
			t.Fatal(err)
		}
		log := ""
		same := func(what string) {
			t.Helper()
			log += what + "\n"
			want, got := versionsOf(ctx, t, real, tables.Data), versionsOf(ctx, t, fake, tables.Data)
			if want != got {
				t.Fatalf("round %d:\n%s(-HBase +the fake)\n%s",
					round, lastLines(log, 12), gocmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		}
		for range 25 {
			rows := drawChanges(rng)
			want, err := real.ChangeIf(ctx, tables.Data, encoding.FamilyData, rows)
			got, fakeErr := fake.ChangeIf(ctx, tables.Data, encoding.FamilyData, rows)
			if err != nil || fakeErr != nil || !slices.Equal(want, got) {
				t.Fatalf("round %d:\n%s%v: %v, %v, the fake %v, %v", round, log, rows, want, err, got, fakeErr)
			}
			for _, ok := range want {
				if ok {
					held++
				}
			}
			same(fmt.Sprintf("%v: %v", rows, want))

			// Changes without a condition: puts, deletions of columns and rows.
			m := drawMutation(rng)
			for _, st := range []*storehbase.Store{real, fake} {
				if err := st.Apply(ctx, tables.Data, []store.Mutation{m}); err != nil {
					t.Fatal(err)
				}
			}
			same(fmt.Sprintf("%+v", m))

			// HBase flushes no memory for a compaction, and needs a file.
			what := rng.IntN(8)
			if what < 2 {
				if err := admin.Flush(ctx, tables.Data); err != nil {
					t.Fatal(err)
				}
				cluster.FlushVersions(tables.Data)
				same("flush")
			}
			if what == 1 {
				if err := admin.Compact(ctx, tables.Data); err != nil {
					t.Fatal(err)
				}
				cluster.CompactVersions(tables.Data)
				same("major compaction")
			}
		}
	}
	t.Logf("%d conditions held", held)
	if held < 10*rounds {
		t.Errorf("%d conditions held, want %d at least", held, 10*rounds)
	}
}

// wideRow: the columns of a row are counted however many there are.
func wideRow(t *testing.T, h *e2e.HBase) {
	t.Helper()
	ctx, table := within(t, time.Minute), "wide"
	if err := h.Admin.CreateTable(ctx, table, "NONE", []string{encoding.FamilyData}); err != nil {
		t.Fatal(err)
	}
	st := must[*storehbase.Store](t)(storehbase.Open(must[storehbase.Config](t)(storehbase.ParseAddress(h.Quorum()))))
	defer st.Close()
	const columns = 5000
	row := []byte("wide")
	var cells []store.Mutation
	for i := range uint16(columns) {
		cells = append(cells, store.Mutation{
			Row:       row,
			Family:    encoding.FamilyData,
			Timestamp: 1000,
			Qualifier: binary.BigEndian.AppendUint16(nil, i),
			Value:     []byte{1},
		})
	}
	if err := st.Apply(ctx, table, cells); err != nil {
		t.Fatal(err)
	}
	atLeast := func(n int, want bool) {
		t.Helper()
		held, err := st.ChangeIf(ctx, table, encoding.FamilyData,
			[]store.ConditionalChange{{Row: row, If: store.Condition{Stamps: []int64{1000}, Columns: n}}})
		if err != nil || held[0] != want {
			t.Errorf("at least %d columns: %v, %v, want %v", n, held, err, want)
		}
	}
	atLeast(columns, true)
	atLeast(columns+1, false)
	if err := st.Apply(ctx, table, []store.Mutation{{
		Kind:      store.DeleteCell,
		Row:       row,
		Family:    encoding.FamilyData,
		Qualifier: cells[columns/2].Qualifier,
		Timestamp: 1000,
	}}); err != nil {
		t.Fatal(err)
	}
	atLeast(columns, false)
	atLeast(columns-1, true)

	// An older version of a column, in memory next to the newest one, is no column, and its timestamp does not count.
	twice := []byte("written twice")
	for _, at := range []int64{1000, 2000} {
		m := store.Mutation{
			Row:       twice,
			Family:    encoding.FamilyData,
			Timestamp: at,
			Qualifier: []byte{0, 0},
			Value:     []byte{1},
		}
		if err := st.Apply(ctx, table, []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[int]bool{1: true, 2: false} {
		held, err := st.ChangeIf(ctx, table, encoding.FamilyData,
			[]store.ConditionalChange{{Row: twice, If: store.Condition{Stamps: []int64{2000}, Columns: n}}})
		if err != nil || held[0] != want {
			t.Errorf("a column written twice, at least %d columns with the newest timestamp: %v, %v, want %v",
				n, held, err, want)
		}
	}
}

// versionsOf returns what a store has of a table, a line for each version and then for each
// cell that can be read. Two stores have put the mark of a change at different times, and a marker
// under a stronger one, which says nothing, may be dropped at any time.
func versionsOf(ctx context.Context, t *testing.T, st *storehbase.Store, table string) string {
	t.Helper()
	rows, next, err := st.Versions(ctx, table, encoding.FamilyData, store.KeyRange{}, 1000)
	if err != nil || next != nil {
		t.Fatal(err, next)
	}
	var lines []string
	for _, row := range rows {
		for _, v := range row.Versions {
			if !bytes.Equal(v.Qualifier, []byte{0xff}) && !covered(row.Versions, v) {
				lines = append(lines, fmt.Sprintf("%s %d %s=%s@%d", row.Key, v.Kind, v.Qualifier, v.Value, v.Timestamp))
			}
		}
	}
	slices.Sort(lines)
	for row, err := range store.Rows(ctx, st, store.Scan{Table: table}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range row.Cells {
			lines = append(lines, fmt.Sprintf("cell %s %s=%s@%d", row.Key, c.Qualifier, c.Value, c.Timestamp))
		}
	}
	return strings.Join(lines, "\n")
}

// covered says that a column's or the family's marker hides all that a marker hides.
func covered(all []store.Version, v store.Version) bool {
	return v.Kind != store.PutVersion && slices.ContainsFunc(all, func(o store.Version) bool {
		later := o.Timestamp > v.Timestamp || o.Timestamp == v.Timestamp && o.Kind > v.Kind
		return later &&
			(o.Kind == store.FamilyMarker || o.Kind == store.ColumnMarker && bytes.Equal(o.Qualifier, v.Qualifier))
	})
}

// drawStamp draws one of few timestamps.
func drawStamp(rng *rand.Rand) int64 { return 1000 + rng.Int64N(5) }

func drawColumn(rng *rand.Rand) []byte { return []byte{"abc"[rng.IntN(3)]} }

// drawChanges draws conditional changes of few rows.
func drawChanges(rng *rand.Rand) (changes []store.ConditionalChange) {
	for row := range 3 {
		c := store.ConditionalChange{Row: []byte{byte('0' + row)}}
		for stamp := range int64(5) {
			if rng.IntN(4) > 0 {
				c.If.Stamps = append(c.If.Stamps, 1000+stamp)
			}
		}
		if c.If.Stamps == nil {
			continue
		}
		c.If.Columns = rng.IntN(4)
		if rng.IntN(2) == 0 {
			c.If.Cell = &store.Cell{Qualifier: drawColumn(rng), Value: []byte{"xy"[rng.IntN(2)]}}
		}
		if rng.IntN(2) == 0 {
			c.Put = []store.Cell{
				{Qualifier: drawColumn(rng), Value: []byte{"xy"[rng.IntN(2)]}, Timestamp: drawStamp(rng)},
			}
		}
		for range rng.IntN(3) {
			c.Delete = append(c.Delete, store.Version{Qualifier: drawColumn(rng), Timestamp: drawStamp(rng)})
		}
		// Of two deletions of one version in an operation a server may take either.
		slices.SortFunc(c.Delete, func(a, b store.Version) int {
			return cmp.Or(bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(a.Timestamp, b.Timestamp))
		})
		c.Delete = slices.CompactFunc(c.Delete, func(a, b store.Version) bool {
			return bytes.Equal(a.Qualifier, b.Qualifier) && a.Timestamp == b.Timestamp
		})
		changes = append(changes, c)
	}
	return changes
}

// drawMutation draws a change of a row without a condition, mostly a put.
func drawMutation(rng *rand.Rand) store.Mutation {
	m := store.Mutation{
		Row:       []byte{byte('0' + rng.IntN(3))},
		Family:    encoding.FamilyData,
		Timestamp: drawStamp(rng),
		Qualifier: drawColumn(rng),
	}
	switch rng.IntN(8) {
	case 0:
		m.Kind = store.DeleteCell
	case 1:
		if rng.IntN(3) == 0 {
			m.Kind, m.Qualifier, m.Timestamp = store.DeleteRow, nil, 1000
		}
	}
	if m.Kind == store.Put {
		m.Value = []byte{"xy"[rng.IntN(2)]}
	}
	return m
}
