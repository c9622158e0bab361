package hbase

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// scanFaults are faults that may happen to any reply of a scan; with each the scan
// must return the same rows. DropAfter is the one by which rows are lost silently if
// the client asks again without a sequence number.
var scanFaults = map[string]func(c *cluster) hbasefake.Fault{
	"reply lost with the connection": func(*cluster) hbasefake.Fault {
		return hbasefake.Fault{
			Kind: hbasefake.DropAfter,
		}
	},
	"connection broken before": func(*cluster) hbasefake.Fault { return hbasefake.Fault{Kind: hbasefake.DropBefore} },
	"cells cut":                func(*cluster) hbasefake.Fault { return hbasefake.Fault{Kind: hbasefake.CutCells} },
	"lease expired":            refuse("org.apache.hadoop.hbase.UnknownScannerException"),
	"out of order":             refuse("org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException"),
	"scanner reset":            refuse("org.apache.hadoop.hbase.exceptions.ScannerResetException"),
	"region moved":             refuse("org.apache.hadoop.hbase.exceptions.RegionMovedException"),
	"region not served":        refuse("org.apache.hadoop.hbase.NotServingRegionException"),
	"call queue full":          refuse("org.apache.hadoop.hbase.CallQueueTooBigException"),
	"server aborted":           refuse("org.apache.hadoop.hbase.regionserver.RegionServerAbortedException"),
	"some exception":           refuse("java.io.IOException"),
}

func refuse(class string) func(*cluster) hbasefake.Fault {
	return func(*cluster) hbasefake.Fault { return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: class} }
}

// replyShapes are the shapes of replies with which every fault is combined.
var replyShapes = map[string]hbasefake.Options{
	"parts of 7 cells":       {MaxReplyCells: 7},
	"parts, heartbeats":      {MaxReplyCells: 2, HeartbeatEvery: 3},
	"partial flag on all":    {MaxReplyCells: 6, FlagCompleteRows: true},
	"without sequence check": {MaxReplyCells: 7, NoSequence: true},
}

//fault:heartbeat-taken-for-the-end isFalse(response.MoreResults) => isFalse(response.MoreResults) || response.GetHeartbeatMessage()
func TestScan_cutEveryReply(t *testing.T) {
	for shape, opts := range replyShapes {
		for name, fault := range scanFaults {
			t.Run(shape+"/"+name, func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting
				c := start(t, opts)
				want := c.fill(40, "r0013", "r0026")
				quiet := c.mustRead(store.Scan{}, want)
				if quiet.Resumes != 0 {
					t.Fatalf("without a fault: %+v, want no resume", quiet)
				}
				for n := range int(quiet.RPCs) {
					c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
						if call.Method == "Scan" && call.N == n {
							return fault(c)
						}
						return hbasefake.Fault{}
					})
					stats := c.mustRead(store.Scan{}, want)
					if stats.Resumes != 1 || stats.Rows != 40 {
						t.Fatalf("fault at call %d of %d: %+v, want 1 resume, 40 rows", n, quiet.RPCs, stats)
					}
				}
			})
		}
	}
}

// A scan goes on in the next region where a server says that there are no more results, because the
// filter, which has the ranges of its region alone, admits no more rows. In one case the server's
// time ends with the row that shows this, so that it does not know yet that the region has ended
// for the scan.
//
//fault:filter-done-taken-for-the-end s.exhausted(s.resumeKey): => s.exhausted(s.resumeKey), regionEnds && !response.GetMoreResults():
func TestScan_filterDone(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]hbasefake.Options{
		"at the region's end":  {MaxReplyCells: 6},
		"at the end of a call": {MaxReplyCells: 6, HeartbeatEvery: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, opts)
			rows := c.fill(40, "r0020")
			// Three rows of each region. Rows have one, two and three cells by turns.
			want := slices.Concat(rows[12:18], rows[39:45])
			ranges := []store.KeyRange{
				{Start: []byte("r0006"), Stop: []byte("r0009")},
				{Start: []byte("r0020"), Stop: []byte("r0023")},
			}
			ended := 0
			c.SetHook(func(hbasefake.Call) hbasefake.Fault {
				return hbasefake.Fault{Change: func(m proto.Message) {
					if r, ok := m.(*pb.ScanResponse); ok && !r.GetMoreResults() {
						ended++
					}
				}}
			})
			c.mustRead(store.Scan{Filter: store.RowFilter{Ranges: ranges}}, want)
			if ended == 0 {
				t.Error("no server said that there are no more results")
			}
		})
	}
}

// A server that closes each connection before it has answered fails the scan, and does not end it:
// the error wraps io.EOF.
func TestScan_hangsUp(t *testing.T) {
	t.Parallel()
	c := start(t, hbasefake.Options{Servers: 2}, func(cfg *Config) { cfg.RetryTimeout = 200 * time.Millisecond })
	c.fill(40, "r0020") // on the second server, which has no other region
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Server == 1 {
			return hbasefake.Fault{Kind: hbasefake.DropBefore}
		}
		return hbasefake.Fault{}
	})
	rows := 0
	for _, err := range store.Rows(c.ctx, c.st, store.Scan{Table: "t"}) {
		if err != nil {
			wantError(t, err, store.ErrUnavailable)
			wantError(t, err, io.EOF)
			return
		}
		rows++
	}
	t.Errorf("%d rows of 40, and no error", rows)
}

// A scan returns all rows, each once, though the server executes every third call and its reply is
// lost, or is an exception that nobody knows: not again and again, as rows come in between.
//
//fault:boundary-row-read-twice , 0) => )
func TestScan_manyLostReplies(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 4})
	want := c.fill(60)
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Scan" && call.N%6 == 5 {
			return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"}
		}
		if call.Method == "Scan" && call.N%6 == 2 {
			return hbasefake.Fault{Kind: hbasefake.DropAfter}
		}
		return hbasefake.Fault{}
	})
	if stats := c.mustRead(store.Scan{}, want); stats.Resumes < 3*regions.MaxUnknowns {
		t.Fatalf("%+v, want many resumes", stats)
	}
}

// A failure in each region is not a failure again and again, also where regions have no rows.
func TestScan_failureInEachRegion(t *testing.T) {
	c := start(t, hbasefake.Options{}, func(cfg *Config) { cfg.RetryTimeout = bound })
	want := c.fill(1, "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8")
	c.disturb("Scan", 2, hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"})
	if stats := c.mustRead(store.Scan{}, want); stats.Resumes <= regions.MaxUnknowns {
		t.Errorf("%d resumes, want more than %d", stats.Resumes, regions.MaxUnknowns)
	}
}

// A scan for keys gets one cell of each row, not all of them, from the server.
func TestScan_keysOnly(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	for q := range 100 {
		c.Put("t", "r", "t", fmt.Sprintf("q%02d", q), "value")
	}
	if stats := c.mustRead(store.Scan{KeysOnly: true}, []string{"r q00 "}); stats.Bytes > 100 {
		t.Errorf("%d bytes of a row of 100 cells, want one cell", stats.Bytes)
	}
	c.mustRead(store.Scan{KeysOnly: true, Columns: []store.KeyRange{{Start: []byte("q50")}}}, []string{"r q50 "})
}

// The client drops cells of other columns only where the caller knows that they are few, and no other limit
// needs the filter at the servers.
func TestScan_whoDrops(t *testing.T) {
	c := start(t, hbasefake.Options{})
	columns := []store.KeyRange{{Start: []byte("a")}}
	for _, s := range []store.Scan{
		{Columns: columns}, {MostInColumns: true}, {Columns: columns, MostInColumns: true, MaxRows: 1},
		{Columns: columns, MostInColumns: true, KeysOnly: true}, {Columns: columns, MostInColumns: true},
	} {
		sc := must(c.st.Scan(c.ctx, s)).(*scanner)
		sc.Close()
		want := s.MostInColumns && len(s.Columns) > 0 && s.MaxRows == 0 && !s.KeysOnly
		if got := sc.rows.Columns != nil; got != want {
			t.Errorf("%+v: the client drops them: %t, want %t", s, got, want)
		}
	}
}

// Regions and servers may change between any two blocks.
func TestScan_changesBetweenBlocks(t *testing.T) {
	for name, change := range map[string]func(c *cluster, key []byte){
		"leases expire": func(c *cluster, _ []byte) { c.ExpireScanners() },
		"region moves":  func(c *cluster, key []byte) { c.MoveRegion("t", key) },
		"region splits after": func(c *cluster, key []byte) {
			c.SplitRegion("t", append([]byte("r"), fmt.Sprintf("%04d", 40+len(key)%10)...))
		},
		"region splits here": func(c *cluster, key []byte) { c.SplitRegion("t", key) },
		"regions merge":      func(c *cluster, key []byte) { c.MergeRegions("t", key) },
		"server is lost": func(c *cluster, _ []byte) {
			c.StopServer(1)
			c.FailOver(1)
		},
		"server restarts": func(c *cluster, _ []byte) {
			c.StopServer(1)
			c.ExpireScanners()
			if err := c.RestartServer(1); err != nil {
				c.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range 12 {
				c := start(t, hbasefake.Options{MaxReplyCells: 11, FlagCompleteRows: at%2 == 1})
				want := c.fill(60, "r0020")
				c.readAndDisturb(want, at, change)
			}
		})
	}
}

// readAndDisturb changes the cluster after block number at.
func (c *cluster) readAndDisturb(want []string, at int, change func(*cluster, []byte)) {
	c.Helper()
	sc, err := c.st.Scan(c.ctx, store.Scan{Table: "t"})
	if err != nil {
		c.Fatal(err)
	}
	defer sc.Close()

	var got []string
	for block := 0; ; block++ {
		rows, err := sc.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			c.Fatalf("next: %v", err)
		}
		for _, r := range rows {
			for _, cell := range r.Cells {
				got = append(got, fmt.Sprintf("%s %s %s", r.Key, cell.Qualifier, cell.Value))
			}
		}
		if block == at {
			change(c, append([]byte(nil), rows[len(rows)-1].Key...))
		}
	}

	if len(got) != len(want) {
		c.Fatalf("changed after block %d: %d cells, want %d", at, len(got), len(want))
	}

	for i := range got {
		if got[i] != want[i] {
			c.Fatalf("changed after block %d: cell %d is %q, want %q", at, i, got[i], want[i])
		}
	}
}

// Scanners do not stay open at the servers, however a scan ends.
func TestScan_closesScanners(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 5})
	want := c.fill(60, "r0030")
	c.mustRead(store.Scan{}, want)
	c.mustRead(store.Scan{MaxRows: 4}, want[:7])
	for blocks := range 4 {
		sc, err := c.st.Scan(c.ctx, store.Scan{Table: "t"})
		if err != nil {
			t.Fatal(err)
		}
		for range blocks {
			if _, err := sc.Next(); err != nil {
				t.Fatal(err)
			}
		}
		sc.Close()
	}

	c.await("open scanners", func() bool { return c.OpenScanners() == 0 })
}

// await polls until done returns true.
func (c *cluster) await(what string, done func() bool) {
	c.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			c.Fatalf("waited in vain: %s", what)
		}
	}
}

// A call without a reply is given up after its timeout. Its connection stays if the
// server answers a probe on it.
func TestScan_silentCall(t *testing.T) {
	c := start(t, hbasefake.Options{MaxReplyCells: 10}, func(cfg *Config) {
		cfg.ProbeAfter, cfg.RPCTimeout = 20*time.Millisecond, 200*time.Millisecond
	})

	want := c.fill(30)
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Scan" && call.N == 2 {
			return hbasefake.Fault{Kind: hbasefake.Hang}
		}
		return hbasefake.Fault{}
	})

	c.mustRead(store.Scan{}, want) // the probe is answered: the call alone is given up
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.N == 1 || call.N == 2 {
			return hbasefake.Fault{Kind: hbasefake.Hang}
		}
		return hbasefake.Fault{}
	})

	c.mustRead(store.Scan{}, want)
}

func TestScan_stats(t *testing.T) {
	c := start(t, hbasefake.Options{})
	want := c.fill(60, "r0030")
	p := &store.KeyPattern{Head: 4, NameLen: 0, ValueLen: 1, Wants: []store.Want{{Values: [][]byte{[]byte("7")}}}}
	var some []string
	for _, w := range want {
		if w[4] == '7' {
			some = append(some, w)
		}
	}

	stats := c.mustRead(store.Scan{Filter: store.RowFilter{Pattern: p}}, some)
	if stats.Rows != 6 || stats.RowsScanned != 60 || stats.RPCs != 2 || stats.Bytes == 0 {
		t.Fatalf("%+v, want 6 rows of 60 in 2 calls", stats)
	}
	if stats := c.mustRead(store.Scan{Stop: []byte("r0005")}, want[:9]); stats.RPCs != 1 {
		t.Errorf("%+v, want 1 call: nothing behind the stop is wanted", stats)
	}
	behind := store.RowFilter{Ranges: []store.KeyRange{{Start: []byte("r0006")}}}
	if stats := c.mustRead(store.Scan{Stop: []byte("r0005"), Filter: behind}, nil); stats.RPCs != 0 {
		t.Errorf("%+v, want no call: the filter admits only keys behind the stop", stats)
	}
	if stats := c.mustRead(store.Scan{MaxRows: 4}, want[:7]); stats.RPCs != 1 {
		t.Errorf("%+v, want 1 call: no more rows are wanted", stats)
	}
	ranges := []store.KeyRange{{Start: []byte("r0031"), Stop: []byte("r0032")}}
	if stats := c.mustRead(store.Scan{Filter: store.RowFilter{Ranges: ranges}}, want[61:63]); stats.RPCs != 1 {
		t.Fatalf("%+v, want 1 call: the first region has no wanted range", stats)
	}

	// A server that does not report it has read at least what it returns.
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		return hbasefake.Fault{Change: func(m proto.Message) {
			if r, ok := m.(*pb.ScanResponse); ok {
				r.ScanMetrics = nil
			}
		}}
	})
	if stats := c.mustRead(store.Scan{Filter: store.RowFilter{Pattern: p}}, some); stats.RowsScanned != 6 {
		t.Errorf("%+v, want the 6 rows to count as read", stats)
	}
}

// For any ranges of columns, a scan returns and counts exactly their cells, also where
// replies cut rows.
func TestScan_columns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	draw := func(most int) []byte {
		b := make([]byte, 1+rnd.IntN(most))
		for i := range b {
			b[i] = "\x00\x01\x02cs\xfe\xff"[rnd.IntN(7)]
		}
		return b
	}

	for shape, opts := range replyShapes {
		c := start(t, opts)
		c.CreateTable("t", []string{"t"}, []byte("r0020"))
		var all []store.Row
		for i := range 40 {
			r := store.Row{Key: fmt.Appendf(nil, "r%04d", i)}
			for range 1 + rnd.IntN(8) {
				q := draw(3)
				c.Put("t", string(r.Key), "t", string(q), "v")
				r.Cells = append(r.Cells, store.Cell{Qualifier: q})
			}
			slices.SortFunc(r.Cells, func(a, b store.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
			r.Cells = slices.CompactFunc(r.Cells,
				func(a, b store.Cell) bool { return bytes.Equal(a.Qualifier, b.Qualifier) })
			all = append(all, r)
		}

		for range 60 {
			var columns []store.KeyRange
			prefixes := rnd.IntN(3) // 0: no range is one, 1: most are, 2: all are
			for len(columns) < 1+rnd.IntN(5) {
				from := draw(2)
				r := store.KeyRange{Start: from, Stop: encoding.PrefixEnd(from)}
				if rnd.IntN(3) > prefixes || prefixes == 0 {
					r.Stop = append(bytes.Clone(from), draw(2)...)
				}
				columns = append(columns, r)
			}
			slices.SortFunc(columns, func(a, b store.KeyRange) int { return bytes.Compare(a.Start, b.Start) })
			// Of ranges that overlap the first stays.
			kept := columns[:1]
			for _, r := range columns[1:] {
				if stop := kept[len(kept)-1].Stop; len(stop) > 0 && bytes.Compare(stop, r.Start) <= 0 {
					kept = append(kept, r)
				}
			}

			var want []string
			rows := map[string]bool{}
			for _, r := range all {
				for _, cell := range r.Cells {
					if slices.ContainsFunc(kept, func(k store.KeyRange) bool { return k.Contains(cell.Qualifier) }) {
						want = append(want, fmt.Sprintf("%s %s v", r.Key, cell.Qualifier))
						rows[string(r.Key)] = true
					}
				}
			}
			for _, most := range []bool{false, true} {
				stats := c.mustRead(store.Scan{Columns: kept, MostInColumns: most}, want)
				if stats.Cells != int64(len(want)) || stats.Rows != int64(len(rows)) || stats.Resumes != 0 {
					t.Fatalf("%s, columns %x, most %t: %+v, want %d rows of %d cells", shape, kept, most, stats,
						len(rows), len(want))
				}
			}
		}
	}
}

// A scan with MostInColumns sends no filter. If the table turns out to have many cells of other
// columns, even after its first rows, it sends one from then on. A lost reply changes no row.
func TestScan_mostInColumns(t *testing.T) {
	columns := []store.KeyRange{{Start: []byte{0}, Stop: []byte{1}}, {Start: []byte("sum:"), Stop: []byte("sum;")}}
	fill := func(c *cluster, others func(row int) bool) (want []string) {
		c.CreateTable("t", []string{"t"}, []byte("r0060"))
		for i := range 90 {
			key := fmt.Sprintf("r%04d", i)
			if others(i) {
				for q := range 9 {
					c.Put("t", key, "t", fmt.Sprintf("max:%d", q), "v")
				}
			}
			if i%7 == 3 { // 3, 10, 17 …
				continue // a row that may have other cells alone
			}
			for _, q := range []string{"\x00\x01", "\x00\x02", "sum:1"} {
				c.Put("t", key, "t", q, "v")
				want = append(want, fmt.Sprintf("%s %s v", key, q))
			}
		}
		return want
	}

	for name, test := range map[string]struct {
		others   func(row int) bool
		filtered bool
	}{
		"no others":      {func(int) bool { return false }, false},
		"a few others":   {func(row int) bool { return row%20 == 17 }, false},
		"others":         {func(int) bool { return true }, true},
		"others at last": {func(row int) bool { return row > 40 }, true},
	} {
		for shape, opts := range replyShapes {
			t.Run(name+"/"+shape, func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting
				c := start(t, opts)
				want := fill(c, test.others)
				scan := store.Scan{Columns: columns, MostInColumns: true}

				filtered := false
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					filtered = filtered || call.Filter
					return hbasefake.Fault{}
				})
				quiet := c.mustRead(scan, want)
				if filtered != test.filtered || quiet.Resumes != 0 || quiet.Rows != int64(len(want)/3) ||
					quiet.Cells != int64(len(want)) {
					t.Fatalf("filtered %t, want %t; %+v, want %d rows of 3 cells and no resume", filtered,
						test.filtered, quiet, len(want)/3)
				}

				for n := range int(quiet.RPCs) {
					c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
						if call.Method == "Scan" && call.N == n {
							return hbasefake.Fault{Kind: hbasefake.DropAfter}
						}
						return hbasefake.Fault{}
					})
					c.mustRead(scan, want)
				}
			})
		}
	}
}

// The filter is set soon after rows with other columns come, however many rows without them came
// before. Cells that the client has dropped until then do not count as read.
func TestScan_otherColumnsLate(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.CreateTable("t", []string{"t"})
	var want []string
	value := strings.Repeat("v", 100)
	for i := range 4400 {
		key := fmt.Sprintf("r%04d", i)
		if i >= 4000 && i < 4399 {
			for q := range 9 {
				c.Put("t", key, "t", fmt.Sprintf("max:%d", q), strings.Repeat("v", 1000))
			}
			continue
		}
		for _, q := range []string{"sum:1", "sum:2", "sum:3"} {
			c.Put("t", key, "t", q, value)
			want = append(want, fmt.Sprintf("%s %s %s", key, q, value))
		}
	}

	scan := store.Scan{Columns: []store.KeyRange{{Start: []byte("sum:"), Stop: []byte("sum;")}}, BlockBytes: 64 << 10}
	filtered := c.mustRead(scan, want)
	scan.MostInColumns = true
	// A third of recentBytes is two blocks; further calls are the sample and the second
	// scanner's.
	if got := c.mustRead(scan, want); got.Bytes != filtered.Bytes || got.RPCs > filtered.RPCs+6 {
		t.Errorf("%+v, want the same bytes and at most 6 more calls than with the filter from the start: %+v", got,
			filtered)
	}
}

func TestScan_errors(t *testing.T) {
	c := start(t, hbasefake.Options{})
	c.fill(3)
	_, err := c.st.Scan(c.ctx, store.Scan{
		Table:   "t",
		Columns: []store.KeyRange{{Start: []byte("b"), Stop: []byte("a")}},
	})
	if err == nil {
		t.Error("a range that ends before it begins: no error")
	}
	_, _, err = c.read(store.Scan{Family: "other"})
	if err == nil || calls.Classify(err) != calls.ClassFatal {
		t.Errorf("unknown family: %v, want a final error", err)
	}

	c.SetHook(func(hbasefake.Call) hbasefake.Fault {
		return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"}
	})

	sc := must(c.st.Scan(c.ctx, store.Scan{Table: "t"}))
	defer sc.Close()
	_, first := sc.Next()
	c.SetHook(nil)
	if _, again := sc.Next(); first == nil || again != first {
		t.Errorf("an exception every time: %v, and then %v, want an error that stays", first, again)
	}

	c.Disable("t")
	_, _, err = c.read(store.Scan{})
	wantError(t, err, store.ErrUnavailable)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	sc, err = c.st.Scan(ctx, store.Scan{Table: "t"})
	if err == nil {
		_, err = sc.Next()
	}

	wantError(t, err, context.Canceled)
}

// Replies that contradict their request: after a single one the scanner is opened
// again, and if all are like that the scan fails after some attempts.
func TestScan_lies(t *testing.T) {
	for name, lie := range map[string]func(m *pb.ScanResponse){
		"no scanner, but more rows": func(m *pb.ScanResponse) { m.ScannerId = nil },
		"a row of too many cells":   func(m *pb.ScanResponse) { m.CellsPerResult[0]++ },
		"a row too few":             func(m *pb.ScanResponse) { m.CellsPerResult = m.CellsPerResult[1:] },
		"rows without number":       func(m *pb.ScanResponse) { m.CellsPerResult = nil },
		"results in the message":    func(m *pb.ScanResponse) { m.Results = []*pb.Result{{}} },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, hbasefake.Options{MaxReplyCells: 7})
			want := c.fill(40, "r0013", "r0026")
			lieAt := func(n func(int) bool) {
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					if call.Method != "Scan" || !n(call.N) {
						return hbasefake.Fault{}
					}
					return hbasefake.Fault{Change: func(m proto.Message) { lie(m.(*pb.ScanResponse)) }}
				})
			}
			for at := range 4 {
				lieAt(func(n int) bool { return n == at })
				c.mustRead(store.Scan{}, want)
				lieAt(func(n int) bool { return n == at })
				c.mustRead(store.Scan{MostInColumns: true, Columns: []store.KeyRange{{Start: []byte("q")}}}, want)
			}
			lieAt(func(int) bool { return true })
			if _, _, err := c.read(store.Scan{}); err == nil {
				t.Error("every reply so: no error")
			}
			if n := c.Calls("Scan"); n > regions.MaxUnknowns+2 {
				t.Errorf("%d calls, want at most %d", n, regions.MaxUnknowns+2)
			}
		})
	}
}

// Rows that the server has sent already, or rows of another region, are refused.
func TestScan_otherRows(t *testing.T) {
	s := &scanner{
		resumeKey: []byte("r0005"),
		server:    serverScanner{loc: &regions.Location{Addr: "s:1", Stop: []byte("r0009")}},
	}
	for _, x := range []struct {
		keys []string
		ok   bool
	}{
		{nil, true}, {[]string{"r0005", "r0006"}, true}, {[]string{"r0005\x00"}, true}, {[]string{"r0008\xff"}, true},
		{[]string{"r0004", "r0006"}, false}, {[]string{"r0006", "r0009"}, false},
	} {
		var rows []store.Row
		for _, k := range x.keys {
			rows = append(rows, store.Row{Key: []byte(k)})
		}
		if err := s.checkKeys(rows); (err == nil) != x.ok {
			t.Errorf("%q: %v, want fine: %t", x.keys, err, x.ok)
		}
		s.scan.Table = regions.MetaTable // has another order
		if err := s.checkKeys(rows); err != nil {
			t.Errorf("%q of hbase:meta: %v", x.keys, err)
		}
		s.scan.Table = ""
	}
}
