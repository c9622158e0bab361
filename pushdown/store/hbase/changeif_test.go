package hbase

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// readVersions returns a line for each version of a range, page by page.
func (c *cluster) readVersions(keys store.KeyRange, maxRows int) (lines []string) {
	c.Helper()
	for {
		rows, next, err := c.st.Versions(c.ctx, "t", "t", keys, maxRows)
		if err != nil {
			c.Fatal(err)
		}
		for _, row := range rows {
			for _, v := range row.Versions {
				lines = append(lines, fmt.Sprintf("%s %d %s=%s@%d", row.Key, v.Kind, v.Qualifier, v.Value, v.Timestamp))
			}
		}
		if next == nil {
			return lines
		}
		keys.Start = next
	}
}

// Versions returns all versions and markers, over pages, regions and replies cut short.
func TestVersions(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 3})
	c.CreateTable("t", []string{"t"}, []byte("r2"), []byte("r4"))
	c.KeepVersions("t")
	now := int64(500)
	c.SetClock(func() int64 { return now })
	var want []string
	for i := range 6 {
		key := fmt.Sprintf("r%d", i)
		c.PutAt("t", key, "t", "a", "old", 100)
		c.PutAt("t", key, "t", "a", "new", 200)
		c.PutAt("t", key, "t", "b", "x", 150)
		c.Delete("t", key, "t", "b")
		if i == 3 {
			c.DeleteRow("t", key, "t")
			want = append(want, key+" 4 =@500")
		}
		want = append(want, key+" 0 a=new@200", key+" 0 a=old@100", key+" 3 b=@500", key+" 0 b=x@150")
	}
	c.wantLines(want, c.readVersions(store.KeyRange{}, 2))
	c.wantLines(want[4:8], c.readVersions(store.KeyRange{Start: []byte("r1"), Stop: []byte("r2")}, 100))
	c.wantLines(nil, c.readVersions(store.KeyRange{Start: []byte("r9")}, 100))
}

// wantLines compares lines.
func (c *cluster) wantLines(want, got []string) {
	c.Helper()
	if w, g := strings.Join(want, "\n"), strings.Join(got, "\n"); w != g {
		c.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// A change is carried out if and only if its condition holds, and as a whole.
func TestChangeIf(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"}, []byte("r2"))
	c.KeepVersions("t")
	c.SetClock(func() int64 { return 500 })
	for i := range 4 {
		c.PutAt("t", fmt.Sprintf("r%d", i), "t", "a", "1", 100)
		c.PutAt("t", fmt.Sprintf("r%d", i), "t", "b", "2", 200)
	}
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Multi" && call.N == 0 {
			return hbasefake.Fault{Kind: hbasefake.DropAfter} // carried out, and sent again
		}
		return hbasefake.Fault{}
	})

	put := []store.Cell{{Qualifier: []byte("m"), Value: []byte("12"), Timestamp: 200}}
	parts := []store.Version{{Qualifier: []byte("a"), Timestamp: 100}, {Qualifier: []byte("b"), Timestamp: 199}}
	held, err := c.st.ChangeIf(c.ctx, "t", "t", []store.ConditionalChange{
		{Row: []byte("r0"), If: store.Condition{Stamps: []int64{200, 100}}, Put: put, Delete: parts},
		{Row: []byte("r1"), If: store.Condition{Stamps: []int64{100, 201}}, Put: put},
		{
			Row: []byte("r2"),
			If: store.Condition{
				Stamps: []int64{100, 200},
				Cell:   &store.Cell{Qualifier: []byte("b"), Value: []byte("2")},
			},
			Delete: parts,
		},
		{
			Row: []byte("r3"),
			If: store.Condition{
				Stamps: []int64{100, 200},
				Cell:   &store.Cell{Qualifier: []byte("b"), Value: []byte("3")},
			},
			Delete: parts,
		},
		{Row: []byte("r4"), If: store.Condition{Stamps: []int64{100, 200}}, Put: put},
	})
	if err != nil || fmt.Sprint(held) != "[true false true false false]" {
		t.Fatalf("%v, %v", held, err)
	}
	got, _, err := c.read(store.Scan{})
	if err != nil {
		t.Fatal(err)
	}
	c.wantLines([]string{"r0 b 2", "r0 m 12", "r1 a 1", "r1 b 2", "r2 b 2", "r3 a 1", "r3 b 2"}, got)

}

// Changes that could not be conditional, or would reach later cells, are refused.
func TestChangeIf_refused(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"})
	row, at := []byte("r1"), store.Condition{Stamps: []int64{1}}
	for want, changes := range map[string][]store.ConditionalChange{
		"row 7231: condition: got no timestamps": {{
			Row: row,
			Put: []store.Cell{{Qualifier: []byte("m"), Timestamp: 1}},
		}},
		"row 7230: it does not come after row 7231":             {{Row: row, If: at}, {Row: []byte("r0"), If: at}},
		"row 7231: it does not come after row 7231":             {{Row: row, If: at}, {Row: row, If: at}},
		"row 7231: timestamp: got 0, want that of a cell":       {{Row: row, If: at, Put: []store.Cell{{}}}},
		"row 7231: timestamp: got 0, want that of a version":    {{Row: row, If: at, Delete: []store.Version{{}}}},
		"cannot change row : row: got 0 bytes, want 1 to 32767": {{If: at}},
	} {
		if _, err := c.st.ChangeIf(c.ctx, "t", "t", changes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if n := c.Calls("Multi"); n > 0 {
		t.Errorf("%d calls", n)
	}
}

// A row may have to have so many columns.
func TestChangeIf_columns(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.KeepVersions("t")
	for columns, want := range []bool{true, true, true, false} {
		c.PutAt("t", "r", "t", "a", "1", 100)
		c.PutAt("t", "r", "t", "b", "2", 100)
		held, err := c.st.ChangeIf(c.ctx, "t", "t", []store.ConditionalChange{{
			Row:    []byte("r"),
			If:     store.Condition{Stamps: []int64{100}, Columns: columns},
			Delete: []store.Version{{Qualifier: []byte("c"), Timestamp: 1}},
		}})
		if err != nil || held[0] != want {
			t.Errorf("%d columns of a row of two: %v, %v, want %v", columns, held, err, want)
		}
	}
}

// Each region that makes changes in the end is progress, however many refuse some at first.
func TestChangeIf_progress(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	var splits [][]byte
	var changes []store.ConditionalChange
	for i := range regions.MaxUnknowns + 2 {
		row := fmt.Appendf(nil, "r%d", i)
		splits = append(splits, row)
		changes = append(changes, store.ConditionalChange{Row: row, If: store.Condition{Stamps: []int64{1}}})
	}
	c.CreateTable("t", []string{"t"}, splits...)
	if _, err := c.st.ChangeIf(c.ctx, "t", "t", changes); err != nil { // with the trials of all connections
		t.Fatal(err)
	}
	first := c.Calls("Multi")
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Multi" && (call.N-first)%2 == 0 {
			return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"}
		}
		return hbasefake.Fault{}
	})
	if held, err := c.st.ChangeIf(c.ctx, "t", "t", changes); err != nil || len(held) != len(changes) {
		t.Errorf("%d calls, %v", c.Calls("Multi")-first, err)
	}

	// Where nothing is refused, regions are not looked up again, and none gets the changes of another.
	c.SetHook(nil)
	calls, scans := c.Calls("Multi"), c.Calls("Scan")
	if _, err := c.st.ChangeIf(c.ctx, "t", "t", changes); err != nil {
		t.Fatal(err)
	}
	if calls, scans = c.Calls("Multi")-calls, c.Calls("Scan")-scans; calls != len(changes) || scans != 0 {
		t.Errorf("%d calls and %d scans of hbase:meta for one change in each of %d regions", calls, scans, len(changes))
	}
}

// Regions that move are found again, by the trial of a connection and by changes.
func TestChangeIf_regionMoves(t *testing.T) {
	c := start(t, hbasefake.Options{Servers: 2}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"})
	c.Put("t", "r", "t", "a", "1")
	c.mustRead(store.Scan{}, []string{"r a 1"}) // the region is known
	change := []store.ConditionalChange{{Row: []byte("r"), If: store.Condition{Stamps: []int64{1}}}}
	for range 4 {
		c.MoveRegion("t", []byte("r"))
		if _, err := c.st.ChangeIf(c.ctx, "t", "t", change); err != nil {
			t.Fatal(err)
		}
	}
}

// A call has no more cells than the server takes, unless one change alone has.
func TestChangeIf_large(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	var changes []store.ConditionalChange
	add := func(bytes int) {
		changes = append(changes, store.ConditionalChange{
			Row: fmt.Appendf(nil, "r%d", len(changes)),
			If:  store.Condition{Stamps: []int64{1}},
			Put: []store.Cell{{Qualifier: []byte("a"), Value: make([]byte, bytes), Timestamp: 1}},
		})
	}
	for _, bytes := range []int{1, maxOutBytes, maxOutBytes / 2, maxOutBytes / 4, maxOutBytes / 2} {
		add(bytes)
	}
	if _, err := c.st.ChangeIf(c.ctx, "t", "t", changes); err != nil {
		t.Fatal(err)
	}
	if n := c.Calls("Multi") - 1; n != 4 { // one is the trial
		t.Errorf("%d calls, want 4: of 1, 1, 2 and 1 changes", n)
	}
}

// A server that does not know conditions is recognized before anything is deleted.
func TestCheckVersions_oldServer(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	if err := c.st.CheckVersions(c.ctx, "t", "t"); err != nil {
		t.Fatal(err)
	}
	c.SetHook(withoutConditions)
	err := c.st.CheckVersions(c.ctx, "t", "t")
	if err == nil || !strings.Contains(err.Error(), "want HBase 2.4") || c.Calls("Multi") != 1 {
		t.Errorf("%v, after %d calls", err, c.Calls("Multi"))
	}

	c = start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.SetHook(withoutConditions)
	for range 2 { // the connection remembers what its trial has shown
		if err := c.st.CheckVersions(c.ctx, "t", "t"); !errors.Is(err, errUnconditional) || c.Calls("Multi") != 1 {
			t.Errorf("%v, after %d calls", err, c.Calls("Multi"))
		}
	}
}

// withoutConditions makes the servers' replies those of HBase before 2.4, which carries out
// region actions without a look at their conditions.
func withoutConditions(hbasefake.Call) hbasefake.Fault {
	return hbasefake.Fault{Change: func(m proto.Message) {
		if response, ok := m.(*pb.MultiResponse); ok {
			for _, r := range response.RegionActionResult {
				r.ProtoReflect().SetUnknown(nil)
			}
		}
	}}
}

// Changes that fail each time fail in the end.
func TestChangeIf_fails(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"})
	c.disturb("Multi", 1, hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"})
	changes := []store.ConditionalChange{{
		Row: []byte("r"),
		If:  store.Condition{Stamps: []int64{100}},
		Put: []store.Cell{{Qualifier: []byte("q"), Timestamp: 100}},
	}}
	_, err := c.st.ChangeIf(c.ctx, "t", "t", changes)
	if n := c.Calls("Multi"); err == nil || n != regions.MaxUnknowns+1 {
		t.Errorf("got %v after %d calls, want an error after %d", err, n, regions.MaxUnknowns+1)
	}
}

// So do those that a region refuses each time.
func TestChangeIf_regionFails(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	c.CreateTable("t", []string{"t"})
	class := "java.io.IOException"
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		return hbasefake.Fault{Change: func(m proto.Message) {
			if response, ok := m.(*pb.MultiResponse); ok && call.N > 0 { // not the trial
				response.RegionActionResult[0].Exception = &pb.NameBytesPair{Name: &class}
			}
		}}
	})
	change := []store.ConditionalChange{{Row: []byte("r"), If: store.Condition{Stamps: []int64{1}}}}
	_, err := c.st.ChangeIf(c.ctx, "t", "t", change)
	if n := c.Calls("Multi") - 1; err == nil || n != regions.MaxUnknowns+1 {
		t.Errorf("got %v after %d calls, want an error after %d", err, n, regions.MaxUnknowns+1)
	}
}

// Whether a condition held is found among fields of any kind, and nowhere else.
func TestProcessed(t *testing.T) {
	for text, want := range map[string][2]bool{
		"":                     {false, false},
		"\x18\x01":             {true, true},
		"\x18\x00":             {false, true},
		"\x18\xac\x02":         {true, true}, // 300
		"\x08\x01\x18\x01":     {true, true}, // behind another number
		"\x1a\x01\x07\x18\x01": {true, true}, // behind bytes in the field of this name
		"\x08\x01":             {false, false},
		"\x18":                 {false, false}, // cut off
		"\x18\x80":             {false, false},
		"\x80":                 {false, false},
		"\x1a\x02\x18":         {false, false},
	} {
		if value, ok := processed([]byte(text)); value != want[0] || ok != want[1] {
			t.Errorf("%x: %v, %v, want %v", text, value, ok, want)
		}
	}
}

// Many cells that do not exist are put by few calls; a server that knows no conditions gets a call for
// each instead, and after its first reply no put that it would carry out in any case.
func TestPutAbsent_calls(t *testing.T) {
	const n = 900
	for name, old := range map[string]bool{"HBase 2.4": false, "HBase 2.3": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, hbasefake.Options{})
			c.CreateTable("t", []string{"t"}, []byte("r5"))
			c.Put("t", "r0300", "t", "a", "before")
			if old {
				c.SetHook(withoutConditions)
			}
			cells, values := make([]store.CellKey, n), make([][]byte, n)
			for i := range n {
				k := (i*7 + 3) % n // in no order
				cells[i] = store.CellKey{Row: fmt.Appendf(nil, "r%04d", k), Family: "t", Qualifier: []byte("a")}
				values[i] = fmt.Appendf(nil, "v%d", k)
			}

			wrote, err := c.st.PutAbsent(c.ctx, "t", cells, values)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range wrote {
				if want := string(cells[i].Row) != "r0300"; w != want {
					t.Errorf("row %s: written %v, want %v", cells[i].Row, w, want)
				}
			}
			// Reads, a trial or more for each server, and two calls for a part in two regions.
			if multi, one := c.Calls("Multi"),
				c.Calls("Mutate"); old && one != n-1 || !old && (one > 0 || multi > 3*putsAtOnce) {
				t.Errorf("%d calls of Multi, %d of Mutate", multi, one)
			}
			got, _, err := c.read(store.Scan{})
			if err != nil || len(got) != n || got[300] != "r0300 a before" || got[301] != "r0301 a v301" {
				t.Errorf("%d rows, %v, %v", len(got), got[300:302], err)
			}
		})
	}
}

// A cell that another writer puts after it was read as absent keeps its value.
func TestPutAbsent_race(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.Put("t", "r1", "t", "a", "theirs")
	put, err := absentPut(store.CellKey{Row: []byte("r1"), Family: "t", Qualifier: []byte("a")}, []byte("ours"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.st.sendAll(c.ctx, "t", "t", []*conditional{put}, regions.SendOnce); err != nil || put.held {
		t.Errorf("written %v, %v", put.held, err)
	}
	got, _, err := c.read(store.Scan{})
	if err != nil {
		t.Fatal(err)
	}
	c.wantLines([]string{"r1 a theirs"}, got)
}

// A put whose reply is lost is not sent again; a trial whose reply is lost is.
func TestPutAbsent_lostReply(t *testing.T) {
	cell := []store.CellKey{{Row: []byte("r1"), Family: "t", Qualifier: []byte("a")}}
	for lost, want := range map[int]string{1: "", 2: "may have been made"} {
		c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
		c.CreateTable("t", []string{"t"})
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method == "Multi" && call.N == lost { // 0 is the read, 1 the trial
				return hbasefake.Fault{Kind: hbasefake.DropAfter}
			}
			return hbasefake.Fault{}
		})
		wrote, err := c.st.PutAbsent(c.ctx, "t", cell, [][]byte{[]byte("v")})
		if want == "" && (err != nil || !wrote[0]) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("reply %d lost: %v, %v, want %q", lost, wrote, err, want)
		}
	}
}

// Where it cannot be read which cells exist, none is put: one with an empty value would be overwritten.
func TestPutAbsent_unread(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.Put("t", "r", "t", "a", "")
	cells := []store.CellKey{
		{Row: []byte("r"), Family: "t", Qualifier: []byte("a")},
		{Row: []byte("r"), Family: "t", Qualifier: []byte("b")},
	}
	values := [][]byte{[]byte("v"), []byte("w")}
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Multi" && call.N == 0 {
			return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "org.apache.hadoop.hbase.DoNotRetryIOException"}
		}
		return hbasefake.Fault{}
	})
	if wrote, err := c.st.PutAbsent(c.ctx, "t", cells, values); err == nil {
		t.Errorf("written %v, want the error of the read", wrote)
	}
	c.mustRead(store.Scan{}, []string{"r a "})
	c.SetHook(nil)
	if wrote, err := c.st.PutAbsent(c.ctx, "t", cells, values); err != nil || wrote[0] || !wrote[1] {
		t.Errorf("written %v, %v, want the second of two cells of a row", wrote, err)
	}
	c.mustRead(store.Scan{}, []string{"r a ", "r b w"})
}

// However many cells there are, no more calls are under way than a server has handlers.
func TestPutAbsent_atOnce(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	put := func(n int) int {
		t.Helper()
		before := c.Calls("Multi")
		cells, values := make([]store.CellKey, n), make([][]byte, n)
		for i := range n {
			cells[i] = store.CellKey{Row: fmt.Appendf(nil, "%d of %d", i, n), Family: "t", Qualifier: []byte("a")}
		}
		if _, err := c.st.PutAbsent(c.ctx, "t", cells, values); err != nil {
			t.Fatal(err)
		}
		return c.Calls("Multi") - before
	}
	put(1) // and the trial of the connection
	for _, n := range []int{1, putsAtOnce, putsAtOnce + 1, 2*putsAtOnce + 1} {
		if calls := put(n) - 1; calls > putsAtOnce { // one is the read
			t.Errorf("%d cells are put by %d calls", n, calls)
		}
	}
}

// Versions ends with the last region that is wanted, also if its stop is there and empty.
func TestVersions_ends(t *testing.T) {
	for _, x := range []struct{ stop, wanted, next string }{
		{"", "", ""}, {"", "r2", ""}, {"r2", "", "r2"}, {"r2", "r3", "r2"}, {"r2", "r2", ""}, {"r2", "r1", ""},
	} {
		next := afterRegion([]byte(x.stop), []byte(x.wanted))
		if string(next) != x.next || (next == nil) != (x.next == "") {
			t.Errorf("a region up to %q of a range up to %q: %q, want %q", x.stop, x.wanted, next, x.next)
		}
	}
}

// Cells that contradict their numbers, their row or what a version is are an error, and no rows.
func TestDecodeVersions(t *testing.T) {
	cell := func(row string, kind byte) []byte {
		return cellblock.Append(nil, []byte(row), "t", []byte("q"), []byte("v"), 7, kind)
	}
	two := slices.Concat(cell("a", cellblock.Put), cell("a", cellblock.DeleteColumn), cell("b", cellblock.DeleteFamily))
	for name, tc := range map[string]struct {
		block  []byte
		counts []uint32
		want   string // rows and kinds, or what the error says
	}{
		"nothing":                  {nil, nil, ""},
		"two rows":                 {two, []uint32{2, 0, 1}, "a03 b4 "},
		"a row too few":            {two, []uint32{2}, "bytes after the last cell"},
		"a row too many":           {two, []uint32{2, 1, 1}, "malformed"},
		"cells of two rows":        {two, []uint32{3}, "row 62 among cells of row 61"},
		"a row of another type":    {cell("a", 5), []uint32{1}, "a cell of type 5 in row 61"},
		"cells that are not there": {two, []uint32{2, 1 << 31}, "malformed"},
	} {
		rows, err := decodeVersions(tc.block, tc.counts)
		got := ""
		for _, r := range rows {
			got += string(r.Key)
			for _, v := range r.Versions {
				got += fmt.Sprint(v.Kind)
			}
			got += " "
		}
		if err != nil {
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
