package hbase

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Appends to one column become one cell of a call, whatever their timestamps, which appends do not
// use: of two cells of one column a server would apply only one.
func TestEncodeCells_appendsHaveNoTime(t *testing.T) {
	var ms []store.Mutation
	for i, value := range []string{"1", "2", "3"} {
		ms = append(ms, store.Mutation{
			Kind:      store.Append,
			Row:       []byte("r"),
			Family:    "t",
			Qualifier: []byte("q"),
			Value:     []byte(value),
			Timestamp: int64(i),
		})
	}
	a := &action{
		row:      ms[0].Row,
		mutation: &pb.MutationProto{AssociatedCellCount: proto.Int32(0)},
		origin:   []int{0, 1, 2},
	}
	a.encodeCells(ms)
	if n := a.mutation.GetAssociatedCellCount(); n != 1 || !bytes.HasSuffix(a.cells, []byte("123")) {
		t.Errorf("%d cells, %q, want one with 123", n, a.cells)
	}
}

// Each kind of mutation has its type of cell; the server knows a deletion by nothing else.
func TestEncodeCells_kinds(t *testing.T) {
	const family = "f"
	row, qualifier, value := []byte("r"), []byte("q"), []byte("v")
	for kind, want := range map[store.MutationKind][]byte{
		store.Put:        cellblock.Append(nil, row, family, qualifier, value, 7, cellblock.Put),
		store.Append:     cellblock.Append(nil, row, family, qualifier, value, cellblock.ServerTime, cellblock.Put),
		store.DeleteCell: cellblock.Append(nil, row, family, qualifier, nil, 7, cellblock.DeleteColumn),
		store.DeleteRow:  cellblock.Append(nil, row, family, nil, nil, 7, cellblock.DeleteFamily),
	} {
		m := store.Mutation{Kind: kind, Row: row, Family: family, Qualifier: qualifier, Value: value, Timestamp: 7}
		a := &action{row: row, mutation: &pb.MutationProto{AssociatedCellCount: proto.Int32(0)}, origin: []int{0}}
		a.encodeCells([]store.Mutation{m})
		if !bytes.Equal(a.cells, want) {
			t.Errorf("kind %d: %x, want %x", kind, a.cells, want)
		}
	}
}

// What HBase could not hold is refused here: names and keys whose lengths do not fit into its cells.
func TestCheckCell(t *testing.T) {
	for _, c := range []struct {
		row, family int
		ok          bool
	}{
		{1, 1, true}, {math.MaxInt16, math.MaxInt8, true},
		{0, 1, false}, {1, 0, false}, {math.MaxInt16 + 1, 1, false}, {1, math.MaxInt8 + 1, false},
	} {
		if err := checkCell(make([]byte, c.row), strings.Repeat("f", c.family)); (err == nil) != c.ok {
			t.Errorf("a row of %d bytes, a family of %d: %v", c.row, c.family, err)
		}
	}
}

// An empty qualifier or value is sent: without the field HBase would have none.
func TestCellMutation_empty(t *testing.T) {
	cell := store.CellKey{Row: []byte("r"), Family: "t"}
	v := cellMutation(cell, pb.MutationProto_PUT, nil).ColumnValue[0].QualifierValue[0]
	condition, err := valueCondition(cell, nil)
	if v.Qualifier == nil || v.Value == nil || err != nil || condition.Qualifier == nil {
		t.Errorf("%v, %v, %v, want fields that are empty", v, condition, err)
	}
}

// A change without puts is sent as one mutation: an empty one of puts might be refused.
func TestNewConditional_mutations(t *testing.T) {
	c := store.ConditionalChange{Row: []byte("r"), If: store.Condition{Stamps: []int64{1}}}
	for want, put := range map[int][]store.Cell{1: nil, 2: {{Qualifier: []byte("q"), Timestamp: 1}}} {
		c.Put = put
		if a, err := newConditional("t", &c); err != nil || len(a.actions) != want {
			t.Errorf("%d puts: %+v, %v, want %d mutations", len(put), a, err, want)
		}
	}
}

// Keys that no row can have are not sent: a server would refuse them.
func TestGet_impossibleKeys(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{nil, make([]byte, math.MaxInt16+1)})
	if n := c.Calls("Multi"); err != nil || len(rows) != 0 || n != 0 {
		t.Errorf("%d rows, %v, after %d calls, want none", len(rows), err, n)
	}
}

// Actions that a region refuses are sent again as long as each call makes some of them: that is progress.
func TestMulti_progress(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"})
	class := "java.io.IOException"
	c.changeEach(func(_ int, m *pb.MultiResponse) {
		for _, r := range m.RegionActionResult[0].ResultOrException[1:] {
			r.Exception = &pb.NameBytesPair{Name: &class}
		}
	})
	const n = regions.MaxUnknowns + 3
	var keys [][]byte
	var ms []store.Mutation
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "r%d", i))
		ms = append(ms, store.Mutation{Row: keys[i], Family: "t", Qualifier: []byte("q")})
	}
	if rows, err := c.st.Get(c.ctx, "t", "t", keys); err != nil || len(rows) > 0 {
		t.Errorf("%d rows, %v, want none", len(rows), err)
	}
	if err := c.st.Apply(c.ctx, "t", ms); err != nil {
		t.Error(err)
	}
	if calls := c.Calls("Multi"); calls != 2*n {
		t.Errorf("%d calls, want %d for each", calls, n)
	}
}

// A call stays within its limits of reads and of bytes, whatever regions it goes to.
func TestNextCall_limits(t *testing.T) {
	c := start(t, hbasefake.Options{})
	region := func(name string, n, bytes int, get *pb.Get) *regionBatch {
		b := &regionBatch{loc: &regions.Location{Name: []byte(name)}}
		for range n {
			b.actions = append(b.actions, &action{get: get, cells: make([]byte, bytes)})
		}
		return b
	}
	get := &pb.Get{}
	large := func(quarters int) *regionBatch { return region("w", 1, maxOutBytes/4*quarters, nil) }
	for what, x := range map[string]struct {
		batches []*regionBatch
		want    string // actions of each region, by call
	}{
		"reads":      {[]*regionBatch{region("a", 200, 0, get), region("b", 200, 0, get)}, "[200 50] [150]"},
		"bytes":      {[]*regionBatch{large(3), large(2)}, "[1] [1]"},
		"as many":    {[]*regionBatch{large(2), large(2)}, "[1 1]"},
		"more alone": {[]*regionBatch{large(1), large(5)}, "[1] [1]"},
	} {
		var calls []string
		for {
			call, err := c.st.nextCall(x.batches)
			if err != nil {
				t.Fatal(err)
			}
			if len(call) == 0 {
				break
			}
			var sizes []int
			for _, b := range call {
				sizes = append(sizes, len(b.actions))
			}
			calls = append(calls, fmt.Sprint(sizes))
		}
		if got := strings.Join(calls, " "); got != x.want {
			t.Errorf("%s: %s, want %s", what, got, x.want)
		}
	}
}
