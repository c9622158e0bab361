package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/google/go-cmp/cmp"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// disturb gives the fault to every n-th call of a method, from the first on.
func (c *cluster) disturb(method string, every int, fault hbasefake.Fault) {
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == method && call.N%every == 0 {
			return fault
		}
		return hbasefake.Fault{}
	})
}

// Writes are executed exactly once in spite of faults, appends too.
//
//fault:log-skipped Int32(0), => Int32(0), Durability: pb.MutationProto_SKIP_WAL.Enum(),
func TestApply_faults(t *testing.T) {
	for name, x := range map[string]struct {
		every int
		fault hbasefake.Fault
	}{
		"reply lost": {2, hbasefake.Fault{Kind: hbasefake.DropAfter}},
		"cut before": {2, hbasefake.Fault{Kind: hbasefake.DropBefore}},
		"queue full": {9, hbasefake.Fault{
			Kind:      hbasefake.Refuse,
			Exception: "org.apache.hadoop.hbase.CallQueueTooBigException",
		}},
		"moved": {2, hbasefake.Fault{
			Kind:      hbasefake.Refuse,
			Exception: "org.apache.hadoop.hbase.exceptions.RegionMovedException",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, hbasefake.Options{})
			c.CreateTable("t", []string{"t"}, []byte("r0005"))
			c.disturb("Multi", x.every, x.fault)
			var want []string
			for round := range 5 {
				var ms []store.Mutation
				for i := range 10 {
					row := fmt.Appendf(nil, "r%04d", i)
					ms = append(ms,
						store.Mutation{
							Row:       row,
							Family:    "t",
							Qualifier: []byte("put"),
							Value:     []byte{byte('a' + round)},
						},
						store.Mutation{
							Kind:      store.Append,
							Row:       row,
							Family:    "t",
							Qualifier: []byte("app"),
							Value:     []byte{byte('a' + round)},
						})
				}
				if err := c.st.Apply(c.ctx, "t", ms); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 10 {
				want = append(want, fmt.Sprintf("r%04d app abcde", i), fmt.Sprintf("r%04d put e", i))
			}
			c.SetHook(nil)
			c.mustRead(store.Scan{}, want)
		})
	}
}

// Mutations that fail for good are named in the error, and so are those that would have come after
// them; the others are written.
func TestApply_partialError(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	err := c.st.Apply(c.ctx, "t", []store.Mutation{
		{Row: []byte("a"), Family: "t", Qualifier: []byte("q"), Value: []byte("1")},
		{Row: []byte("b"), Family: "wrong", Qualifier: []byte("q")},
		{Row: []byte("c"), Family: "t", Qualifier: []byte("q"), Value: []byte("2")},
		{Row: []byte("c"), Family: "t", Qualifier: []byte("q"), Value: []byte("3"), Kind: store.Append},
	})

	var partial *store.ApplyError
	if !errors.As(err, &partial) || !cmp.Equal(partial.Failed, []int{1, 3}) || len(partial.Errs) != 2 {
		t.Fatalf("got %v, want a partial error of mutations 1 and 3", err)
	}

	c.mustRead(store.Scan{}, []string{"a q 1", "c q 2"})
	for _, m := range []store.Mutation{
		{Family: "t"}, {Row: []byte("r")}, {Row: []byte("r"), Family: "t", Kind: 9},
		{Row: []byte("r"), Family: "t", Timestamp: -1},
	} {
		if c.st.Apply(c.ctx, "t", []store.Mutation{m}) == nil {
			t.Errorf("%+v: no error", m)
		}
	}
}

// An increment whose reply is lost counts once.
func TestIncrement_lostReply(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.disturb("Mutate", 2, hbasefake.Fault{Kind: hbasefake.DropAfter})
	for want := int64(1); want <= 6; want++ {
		got, err := c.st.Increment(c.ctx, "t", store.CellKey{Row: []byte("r"), Family: "t", Qualifier: []byte("c")}, 1)
		if err != nil || got != want {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
	}
}

// A conditional put whose reply is lost is not sent again: the second one would
// report that it had not written.
func TestCompareAndPut_lostReply(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	c.disturb("Mutate", 1, hbasefake.Fault{Kind: hbasefake.DropAfter})
	cell := store.CellKey{Row: []byte("r"), Family: "t", Qualifier: []byte("c")}
	_, err := c.st.CompareAndPut(c.ctx, "t", cell, nil, []byte("1"))
	wantError(t, err, store.ErrUnavailable)
	if n := c.Calls("Mutate"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}

	c.disturb("Mutate", 2, hbasefake.Fault{
		Kind:      hbasefake.Refuse,
		Exception: "org.apache.hadoop.hbase.CallQueueTooBigException",
	})
	ok, err := c.st.CompareAndPut(c.ctx, "t", cell, []byte("1"), []byte("2"))
	if err != nil || !ok {
		t.Fatalf("refused once, then accepted: got %v, %v, want true and no error", ok, err)
	}
}

// unreachable is an address where nobody listens: its port is given to nobody who asks for any.
const unreachable = "127.0.0.1:1"

// Without ZooKeeper every operation ends with its context, and its error says why.
func TestUnavailable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	for name, addr := range map[string]string{"nobody listens": unreachable, "nobody answers": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			st, err := Open(Config{Quorum: addr})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for op, f := range map[string]func(context.Context) error{
				"regions": func(ctx context.Context) error { _, err := st.Regions(ctx, "t", nil, nil); return err },
				"get": func(ctx context.Context) error {
					_, err := st.Get(ctx, "t", "",
						[][]byte{{1}})
					return err
				},
				"apply": func(ctx context.Context) error {
					return st.Apply(ctx, "t", []store.Mutation{{Row: []byte{1}, Family: "t"}})
				},
				"increment": func(ctx context.Context) error {
					_, err := st.Increment(ctx, "t", store.CellKey{Row: []byte{1}, Family: "t"}, 1)
					return err
				},
				"create": func(ctx context.Context) error {
					return st.CreateTable(ctx, store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}})
				},
				"scan": func(ctx context.Context) error {
					sc, err := st.Scan(ctx, store.Scan{Table: "t"})
					if err != nil {
						return err
					}
					defer sc.Close()
					_, err = sc.Next()
					return err
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				if err := f(ctx); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: got %v, want store unavailable and the deadline", op, err)
				}
				cancel()
			}
		})
	}
}

// A cluster that was down is used again as soon as it is back. RetryTimeout ends an
// operation whose context has no deadline.
func TestHealing(t *testing.T) {
	logs := new(logtest.Log)
	c := start(t, hbasefake.Options{}, func(cfg *Config) {
		cfg.RetryTimeout, cfg.Logger = 50*time.Millisecond, slog.New(slog.NewTextHandler(logs, nil))
	})

	want := c.fill(10, "r0005")
	c.mustRead(store.Scan{}, want)
	servers := map[string]bool{}
	for _, r := range must(c.st.Regions(c.ctx, "t", nil, nil)) {
		servers[r.Server] = true
	}

	for i := range 2 {
		c.StopServer(i)
	}

	c.StopZooKeeper()
	_, err := c.st.Get(context.Background(), "t", "", [][]byte{[]byte("r0000")})
	wantError(t, err, store.ErrUnavailable)
	for i := range 2 {
		if err := c.RestartServer(i); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.RestartZooKeeper(); err != nil {
		t.Fatal(err)
	}

	c.await("rows are there again", func() bool { _, _, err := c.read(store.Scan{}); return err == nil })
	c.mustRead(store.Scan{}, want)
	for server := range servers { // however many attempts were made to connect again
		if n := strings.Count(logs.String(), "connection lost\" server="+server); n != 1 {
			t.Errorf("%d lines of the connection to %s, want 1 in\n%s", n, server, logs)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRegions(t *testing.T) {
	c := start(t, hbasefake.Options{Servers: 3})
	c.CreateTable("t", []string{"t"}, []byte("b"), []byte("c,\x00,"), []byte("x"))
	c.CreateTable("t-other", []string{"t"})
	c.CreateTable("t2", []string{"t"}, []byte("k"))
	c.SplitRegion("t", []byte("m"))
	bounds := func(start, stop string) string {
		regions, err := c.st.Regions(c.ctx, "t", []byte(start), []byte(stop))
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, r := range regions {
			s += fmt.Sprintf("[%q,%q) ", r.Start, r.Stop)
			if r.Server == "" || r.Name == "" {
				t.Errorf("region without server or name: %+v", r)
			}
		}
		return s
	}
	for _, x := range []struct{ start, stop, want string }{
		{"", "", `["","b") ["b","c,\x00,") ["c,\x00,","m") ["m","x") ["x","") `},
		{"b", "c", `["b","c,\x00,") `},
		{"m", "", `["m","x") ["x","") `},
		{"a", "b\x00", `["","b") ["b","c,\x00,") `},
	} {
		if got := bounds(x.start, x.stop); got != x.want {
			t.Errorf("[%q,%q): got %s, want %s", x.start, x.stop, got, x.want)
		}
	}
}

// Attributes are read back: an attribute that the master drops is an error.
func TestCreateTable_attributes(t *testing.T) {
	spec := store.TableSpec{Name: "t", Splits: [][]byte{[]byte("m")}, Families: []store.FamilySpec{
		{
			Name:       "t",
			Attributes: map[string]string{"BLOOMFILTER": "ROW", "VERSIONS": "2", "MOB_THRESHOLD": "7"},
		}}}

	c := start(t, hbasefake.Options{})
	if err := c.st.CreateTable(c.ctx, spec); err != nil {
		t.Fatal(err)
	}
	if regions, err := c.st.Regions(c.ctx, "t", nil, nil); err != nil || len(regions) != 2 {
		t.Errorf("%d regions, %v, want 2", len(regions), err)
	}

	wantError(t, c.st.CreateTable(c.ctx, spec), store.ErrTableExists)
	spec.Name = "ns:other"
	if err := c.st.CreateTable(c.ctx, spec); err != nil {
		t.Errorf("in a namespace: %v", err)
	}
	c = start(t, hbasefake.Options{IgnoreAttributes: []string{"MOB_THRESHOLD"}})
	if err := c.st.CreateTable(c.ctx, spec); err == nil {
		t.Error("an attribute was lost, no error")
	}

	c.Disable(spec.Name)
	_, err := c.st.TableExists(c.ctx, spec.Name)
	wantError(t, err, store.ErrUnavailable)
}

// A table is created once the master says that it has finished, and not if it says otherwise.
func TestCreateTable_procedure(t *testing.T) {
	const running, finished = pb.GetProcedureResultResponse_RUNNING, pb.GetProcedureResultResponse_FINISHED
	for name, tc := range map[string]struct {
		states []pb.GetProcedureResultResponse_State // one after another, the last one without end
		class  string                                // of the exception
		want   error
		says   string
	}{
		"takes long": {states: []pb.GetProcedureResultResponse_State{running, running, running, finished}},
		"never":      {states: []pb.GetProcedureResultResponse_State{running}, want: store.ErrUnavailable},
		"unknown": {states: []pb.GetProcedureResultResponse_State{pb.GetProcedureResultResponse_NOT_FOUND},
			says: "does not know procedure 1"},
		"exists": {states: []pb.GetProcedureResultResponse_State{running, finished},
			class: "org.apache.hadoop.hbase.TableExistsException", want: store.ErrTableExists},
		"refused":      {states: []pb.GetProcedureResultResponse_State{finished}, class: doNotRetry, says: doNotRetry},
		"not answered": {says: doNotRetry},
	} {
		slowly(t, func(c *cluster) {
			c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
				if call.Method != "getProcedureResult" {
					return hbasefake.Fault{}
				}
				if len(tc.states) == 0 {
					return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: doNotRetry}
				}
				return hbasefake.Fault{Change: func(m proto.Message) {
					r := m.(*pb.GetProcedureResultResponse)
					r.State = tc.states[min(call.N, len(tc.states)-1)].Enum()
					if tc.class != "" && r.GetState() == finished {
						r.Exception = &pb.ForeignExceptionMessage{
							GenericException: &pb.GenericExceptionMessage{ClassName: &tc.class},
						}
					}
				}}
			})
			err := c.st.CreateTable(c.ctx, store.TableSpec{Name: "new", Families: []store.FamilySpec{{Name: "t"}}})
			if (err != nil) != (tc.want != nil || tc.says != "") || tc.want != nil && !errors.Is(err, tc.want) ||
				errors.Is(err, store.ErrTableExists) != (tc.want == store.ErrTableExists) ||
				tc.says != "" && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want %v %s", name, err, tc.want, tc.says)
			}
			if n := c.Calls("getProcedureResult"); n < len(tc.states) || n > int(bound/time.Second)+10 {
				t.Errorf("%s: asked %d times, want %d, or about once a second", name, n, len(tc.states))
			}
		})
	}
}

// A table whose regions no server has opened is not created yet.
func TestCreateTable_regionsNotOpen(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.DelayCatalog()
	ctx, cancel := context.WithTimeout(c.ctx, 300*time.Millisecond)
	defer cancel()
	err := c.st.CreateTable(ctx, store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}})
	if err == nil {
		t.Error("no error")
	}
}

// A put that follows a deletion of its cell is not hidden by it: the server's clock has moved on.
func TestApply_putAfterDelete(t *testing.T) {
	slowly(t, func(c *cluster) {
		c.KeepVersions("t")
		m := store.Mutation{Row: []byte("r"), Family: "t", Qualifier: []byte("q"), Value: []byte("1")}
		deletion := m
		deletion.Kind = store.DeleteCell
		if err := c.st.Apply(c.ctx, "t", []store.Mutation{m, deletion, m}); err != nil {
			c.Fatal(err)
		}
		c.mustRead(store.Scan{}, []string{"r q 1"})
	})
}

// A column that occurs twice in one operation is sent once: with the last put, or
// with the joined appends. The deletion of a row and that of a cell are different
// columns, although their names are equal.
func TestApply_columnTwice(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	m := func(kind store.MutationKind, row, qualifier, value string) store.Mutation {
		return store.Mutation{
			Kind:      kind,
			Row:       []byte(row),
			Family:    "t",
			Qualifier: []byte(qualifier),
			Value:     []byte(value),
		}
	}

	apply := func(ms ...store.Mutation) {
		t.Helper()
		if err := c.st.Apply(c.ctx, "t", ms); err != nil {
			t.Fatal(err)
		}
	}

	apply(m(store.Put, "a", "q", "1"), m(store.Put, "a", "p", "2"), m(store.Put, "a", "q", "3"),
		m(store.Append, "b", "q", "1"), m(store.Append, "b", "q", "2"), m(store.Append, "b", "p", "3"),
		m(store.Append, "b", "q", "4"))

	c.mustRead(store.Scan{}, []string{"a p 2", "a q 3", "b p 3", "b q 124"})
	old := m(store.Put, "a", "q", "4")
	old.Timestamp = 1
	apply(m(store.Put, "a", "q", "5"), old) // another cell
	c.mustRead(store.Scan{}, []string{"a p 2", "a q 5", "b p 3", "b q 124"})
	apply(m(store.DeleteRow, "a", "q", ""), m(store.DeleteCell, "a", "q", ""), m(store.DeleteCell, "b", "p", ""))
	c.mustRead(store.Scan{}, []string{"b q 124"})
}

// Regions that move or split between two calls are found again, by reads and
// writes. What the other regions of a call have executed is not sent again.
func TestMulti_regionsMove(t *testing.T) {
	c := start(t, hbasefake.Options{Servers: 3})
	c.CreateTable("t", []string{"t"}, []byte("r0003"), []byte("r0006"))
	var keys [][]byte
	var appends []store.Mutation
	for i := range 9 {
		keys = append(keys, fmt.Appendf(nil, "r%04d", i))
		appends = append(appends,
			store.Mutation{Kind: store.Append, Row: keys[i], Family: "t", Qualifier: []byte("q"), Value: []byte("x")})
	}

	for round, change := range []func(){
		func() {},
		func() { c.MoveRegion("t", keys[4]) },
		func() { c.SplitRegion("t", keys[1]) },
		func() { c.MoveRegion("t", keys[1]); c.MoveRegion("t", keys[8]) },
	} {
		change()
		if err := c.st.Apply(c.ctx, "t", appends); err != nil {
			t.Fatalf("round %d: apply: %v", round, err)
		}
		c.MoveRegion("t", keys[5])
		rows, err := c.st.Get(c.ctx, "t", "t", keys)
		if err != nil || len(rows) != len(keys) {
			t.Fatalf("round %d: get: %d rows, %v, want all", round, len(rows), err)
		}
		for _, r := range rows {
			if len(r.Cells[0].Value) != round+1 {
				t.Fatalf("round %d: row %s holds %s, want an x for each round so far", round, r.Key, r.Cells[0].Value)
			}
		}
	}
}

// A region is found although the parent of a split, which hbase:meta still lists,
// starts after it: the parent's first daughter has been merged into it. Two such
// parents lie behind one another here.
func TestLookUp_parentOfSplit(t *testing.T) {
	c := start(t, hbasefake.Options{})
	rows := c.fill(9)
	c.SplitRegion("t", []byte("r0003")) // the empty key, r0003
	c.SplitRegion("t", []byte("r0005")) // the parent starts at r0003
	c.SplitRegion("t", []byte("r0004")) // the second parent as well
	c.MergeRegions("t", []byte("r0000"))

	keys := [][]byte{[]byte("r0003"), []byte("r0000"), []byte("r0004"), []byte("r0008")}
	got, err := c.st.Get(c.ctx, "t", "t", keys)
	if err != nil || len(got) != len(keys) {
		t.Fatalf("got %d rows, %v, want %d", len(got), err, len(keys))
	}
	c.mustRead(store.Scan{}, rows)
}

// If hbase:meta lacks a region that follows the parent of a split, the region is waited for,
// because the table exists.
func TestLookUp_hole(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(9)
	c.SplitRegion("t", []byte("r0003"))
	c.LoseRegion("t", []byte("r0001"))

	ctx, cancel := context.WithTimeout(c.ctx, 200*time.Millisecond)
	defer cancel()
	_, err := c.st.Get(ctx, "t", "t", [][]byte{[]byte("r0001")})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNoTable) {
		t.Errorf("%v, want %v", err, store.ErrUnavailable)
	}
	_, err = c.st.Get(c.ctx, "u", "t", [][]byte{[]byte("r0001")})
	wantError(t, err, store.ErrNoTable)
}

// Close ends operations that wait for a server that does not answer.
func TestClose_ends(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	c.SetHook(func(hbasefake.Call) hbasefake.Fault { return hbasefake.Fault{Kind: hbasefake.Hang} })
	results := make(chan error, 3)
	go func() { _, _, err := c.read(store.Scan{}); results <- err }()
	go func() { _, err := c.st.Get(c.ctx, "t", "", [][]byte{[]byte("r0000")}); results <- err }()
	go func() {
		_, err := c.st.Increment(c.ctx, "t", store.CellKey{Row: []byte("r"), Family: "t"}, 1)
		results <- err
	}()

	c.await("three calls are out", func() bool { return c.Calls("Scan")+c.Calls("Multi")+c.Calls("Mutate") == 3 })
	if err := c.st.Close(); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		wantError(t, <-results, store.ErrClosed)
	}
}

// Each row is read once before cells of it are put if they are absent, whatever their order.
func TestExisting_readsOnce(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	read := 0
	c.SetHook(func(hbasefake.Call) hbasefake.Fault {
		return hbasefake.Fault{Change: func(m proto.Message) {
			read += len(m.(*pb.MultiResponse).RegionActionResult[0].ResultOrException)
		}}
	})
	var cells []store.CellKey
	for _, row := range []string{"r0002", "r0001", "r0002", "r0009"} {
		cells = append(cells, store.CellKey{Row: []byte(row), Family: "t", Qualifier: []byte("q2")})
	}
	got, err := c.st.existing(c.ctx, "t", cells)
	if diff := cmp.Diff([]bool{true, false, true, false}, got); err != nil || diff != "" || read != 3 {
		t.Errorf("%v, %d rows read, want 3; -want +got:\n%s", err, read, diff)
	}
}
