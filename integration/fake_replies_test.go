//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store"
	storehbase "downpour/pushdown/store/hbase"
	hbasecalls "downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"
)

// TestFake_repliesAreReal: the fake HBase answers the calls of scans, gets and batches as a real
// one does: the same cells, in replies of the same form, and the same exceptions. A client that
// trusts the fake about a flag that HBase sets otherwise would lose rows. Heartbeats, which depend
// on time, are not compared, nor where a limit of bytes cuts a reply: HBase counts what cells take
// in its memory.
func TestFake_repliesAreReal(t *testing.T) {
	t.Parallel()
	onEachHBase(t, func(t *testing.T, h *e2e.HBase) {
		const table = "replies"
		ctx := within(t, 4*time.Minute)
		split := []byte{2}
		if err := h.Admin.CreateTable(ctx, table, "NONE", rawFamilies, split); err != nil {
			t.Fatal(err)
		}
		cluster := hbasefake.For(t, hbasefake.Options{Network: new(networktest.Memory)})
		cluster.CreateTable(table, rawFamilies, split)
		cluster.KeepVersions(table)

		cfg := must[storehbase.Config](t)(storehbase.ParseAddress(h.Quorum()))
		both := [2]*rawTable{
			openRaw(t, table, cfg),
			openRaw(t, table, storehbase.Config{Quorum: cluster.Address(), Dial: cluster.Dial}),
		}
		rng := rand.New(rand.NewPCG(seedtest.Of(t), 0))
		for range 4 {
			changes := drawRawChanges(rng)
			for _, side := range both {
				if err := side.st.Apply(ctx, table, changes); err != nil {
					t.Fatal(err)
				}
			}
		}

		if want, got := both[0].catalog(ctx, t), both[1].catalog(ctx, t); want != got {
			t.Errorf("rows of hbase:meta (-HBase +the fake)\n%s",
				gocmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}

		exchanges := 2000
		if *soak {
			exchanges = 20_000
		}
		forms, differing := map[string]int{}, 0
		for i := range exchanges {
			kind := []string{"scan", "scan", "scan", "get", "batch"}[rng.IntN(5)]
			seed := rng.Uint64()
			var answers [2]string
			for k, side := range both {
				talk := &exchange{ctx: ctx, to: side, r: rand.New(rand.NewPCG(seed, 0))}
				switch kind {
				case "scan":
					talk.scan()
				case "get":
					talk.get()
				default:
					talk.batch()
				}
				answers[k] = talk.text.String()
			}
			forms[kind]++
			if answers[0] == answers[1] {
				continue
			}
			t.Errorf("exchange %d: (-HBase +the fake)\n%s",
				i, gocmp.Diff(strings.Split(answers[0], "\n"), strings.Split(answers[1], "\n")))
			if differing++; differing == 5 {
				break
			}
		}
		t.Logf("exchanges: %v", forms)
	})
}

var rawFamilies = []string{"id", "name"}

// rawTable is a table whose region servers are called without the store that hides how they answer.
type rawTable struct {
	table  string
	st     *storehbase.Store // for what is not compared
	router *regions.Router
}

func openRaw(t *testing.T, table string, cfg storehbase.Config) *rawTable {
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	st := must[*storehbase.Store](t)(storehbase.Open(cfg))
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	life := hbasecalls.NewLife()
	router := regions.New(&regions.Config{
		Calls: &hbasecalls.Config{
			EffectiveUser: "downpour",
			Logger:        cfg.Logger,
			Dial:          cfg.Dial,
			DialTimeout:   time.Minute,
			RPCTimeout:    time.Minute,
			WriteTimeout:  time.Minute,
			ProbeAfter:    time.Minute,
		},
		Quorum: cfg.Quorum, Root: "/hbase", ZooKeeperTimeout: time.Minute, LookUpHost: net.DefaultResolver.LookupHost,
		RetryTimeout: time.Minute, Scan: st.Scan,
	}, life)
	t.Cleanup(func() {
		life.End()
		router.CloseAll()
		life.Wait()
		st.Close()
	})
	return &rawTable{table, st, router}
}

// catalog returns the columns of the table's regions in hbase:meta.
func (s *rawTable) catalog(ctx context.Context, t *testing.T) (columns string) {
	for row, err := range store.Rows(ctx, s.st, store.Scan{
		Table: regions.MetaTable,
		Start: []byte(s.table + ",,"),
		Stop:  []byte(s.table + "-,,"),
	}) {
		if err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(string(row.Key), ",")
		start, _, _ := strings.Cut(key, ",")
		columns += fmt.Sprintf("region from %x:", start)
		for _, c := range row.Cells {
			columns += fmt.Sprintf(" %s:%s", c.Family, c.Qualifier)
		}
		columns += "\n"
	}
	return columns
}

// drawRawChanges draws puts and deletions of few rows, some of them of one column.
func drawRawChanges(r *rand.Rand) (all []store.Mutation) {
	for range 60 {
		m := store.Mutation{
			Row:       drawRawKey(r),
			Family:    rawFamilies[r.IntN(2)],
			Qualifier: drawRawQualifier(r),
			Timestamp: 1000 + r.Int64N(50),
		}
		if r.IntN(6) == 0 {
			m.Kind = store.DeleteCell
		} else {
			m.Value = []byte(strings.Repeat("v", r.IntN(30)))
		}
		all = append(all, m)
	}
	return all
}

func drawRawKey(r *rand.Rand) []byte { return []byte{byte(r.IntN(4)), byte(r.IntN(6))} }

func drawRawQualifier(r *rand.Rand) []byte {
	return []byte{byte('a' + r.IntN(5)), byte('0' + r.IntN(10))}[:1+r.IntN(2)]
}

// exchange is some calls to a region server, whose answers become text. Both clusters are sent the
// same: what is drawn depends on answers only where they are equal.
type exchange struct {
	ctx  context.Context
	to   *rawTable
	r    *rand.Rand
	text strings.Builder
}

func (x *exchange) note(format string, args ...any) { fmt.Fprintf(&x.text, format+"\n", args...) }

// locate finds the region of a key.
func (x *exchange) locate(key []byte) *regions.Location {
	loc, err := x.to.router.Locate(x.ctx, x.to.table, key)
	if err != nil {
		x.note("no region of %x: %v", key, err)
		return nil
	}
	return loc
}

// call makes one call. It returns false, and notes the exception, if there was one.
func (x *exchange) call(
	loc *regions.Location, method string, request, response proto.Message, out []byte,
) (*hbasecalls.Call, bool) {
	call := hbasecalls.New(x.ctx, method, request, response)
	call.OutCells = out
	_, err := x.to.router.CallConn(x.ctx, loc, call)
	if err != nil {
		class, _, _ := strings.Cut(err.Error(), "\n")
		x.note("%s", class)
	}
	return call, err == nil
}

// cells notes the cells of a block.
func (x *exchange) cells(block []byte) {
	for len(block) > 0 {
		var c store.Cell
		row, rest, err := cellblock.Split(block, &c)
		if err != nil {
			x.note("malformed cells: %v", err)
			return
		}
		x.note("  %x %s:%s=%s@%d type %d", row, c.Family, c.Qualifier, c.Value, c.Timestamp, cellblock.Type(block))
		block = rest
	}
}

// drawFilter draws a filter, or nil. It is one that the store may send.
func (x *exchange) drawFilter() *pb.Filter {
	var f filter.Filter
	switch r := x.r; r.IntN(9) {
	case 0:
		f = filter.NewRowFilter(filter.NewCompareFilter(filter.Equal,
			filter.NewRegexStringComparator(`(?s)^.[\x00-\x02]`, 0, "ISO-8859-1", "JAVA")))
	case 1:
		a, b := byte(r.IntN(3)), byte(r.IntN(5))
		f = filter.NewMultiRowRangeFilter([]*filter.RowRange{
			filter.NewRowRange([]byte{a, b}, []byte{a, b + 1}, true, false),
			filter.NewRowRange([]byte{a + 1}, []byte{a + 1, 4}, true, false)})
	case 2:
		f = filter.NewColumnRangeFilter([]byte("b"), []byte("d"), true, false)
	case 3:
		f = filter.NewMultipleColumnPrefixFilter([][]byte{[]byte("a"), []byte("c1"), []byte("e")})
	case 4:
		first := filter.NewFirstKeyOnlyFilter()
		f = filter.NewList(filter.MustPassAll, &first, filter.NewKeyOnlyFilter(false))
	case 5:
		f = filter.NewList(filter.MustPassOne, filter.NewColumnRangeFilter(nil, []byte("b"), true, false),
			filter.NewColumnRangeFilter([]byte("d5"), nil, true, false))
	default:
		return nil
	}
	m, err := f.ConstructPBFilter()
	if err != nil {
		x.note("filter: %v", err)
	}
	return m
}

// scanned is one scan of an exchange.
type scanned struct {
	loc      *regions.Location
	scan     *pb.Scan
	partials bool
	bySize   bool // replies are limited in bytes: all cells are compared, and not where replies end
	limit    int  // of rows that are still wanted, negative without
	id       *uint64
	block    []byte // of all replies, if they are limited in bytes
}

// scan opens a scanner and takes its replies, now and then with a number that is not the next one,
// or closes it in between. Some begin outside their region.
func (x *exchange) scan() {
	r := x.r
	start := drawRawKey(r)
	loc := x.locate(start)
	if loc == nil {
		return
	}
	if r.IntN(8) == 0 {
		start = []byte{3 - start[0], start[1]}
	}
	s := &scanned{loc: loc, scan: x.drawScan(start), bySize: r.IntN(3) == 0, partials: r.IntN(4) > 0, limit: -1}
	if s.bySize {
		s.scan.MaxResultSize = proto.Uint64(uint64(40 + r.IntN(400)))
	} else if r.IntN(4) == 0 {
		s.limit = 1 + r.IntN(6)
	}
	for seq := uint64(0); ; seq++ {
		request := x.drawRequest(s, seq)
		call, ok := x.call(loc, "Scan", request, &pb.ScanResponse{}, nil)
		if !ok {
			return
		}
		response := call.Response.(*pb.ScanResponse)
		ended := !response.GetMoreResults() || !response.GetMoreResultsInRegion() || request.GetCloseScanner()
		if s.bySize {
			x.sized(s, response, call.Cells, ended)
		} else {
			x.reply(response, call.Cells)
		}
		if s.id == nil {
			s.id = response.ScannerId
		}
		if s.limit > 0 {
			s.limit -= wholeRows(response)
		}
		if close := r.IntN(6) == 0 && !s.bySize; ended || s.id == nil || close {
			if close && s.id != nil {
				x.close(s)
				x.close(s)
			}
			return
		}
	}
}

// drawScan draws what a scanner is opened with.
func (x *exchange) drawScan(start []byte) *pb.Scan {
	r := x.r
	scan := &pb.Scan{StartRow: start, Filter: x.drawFilter()}
	if r.IntN(2) == 0 {
		scan.StopRow = []byte{start[0], start[1] + byte(1+r.IntN(4))}
	}
	if r.IntN(2) == 0 {
		scan.Column = []*pb.Column{{Family: []byte(rawFamilies[r.IntN(2)])}}
	}
	if r.IntN(4) == 0 {
		scan.TimeRange = &pb.TimeRange{From: proto.Uint64(uint64(1000 + r.IntN(40))), To: proto.Uint64(math.MaxInt64)}
	}
	if r.IntN(8) == 0 {
		scan.Column = []*pb.Column{{Family: []byte("none")}}
	}
	hbasecalls.Pread(scan)
	return scan
}

// drawRequest draws a request of a scan, which opens the scanner or takes the next reply.
func (x *exchange) drawRequest(s *scanned, seq uint64) *pb.ScanRequest {
	r := x.r
	request := &pb.ScanRequest{
		Region:                  hbasecalls.RegionSpecifier(s.loc.Name),
		ScannerId:               s.id,
		NumberOfRows:            proto.Uint32(math.MaxInt32),
		NextCallSeq:             proto.Uint64(seq),
		ClientHandlesPartials:   &s.partials,
		ClientHandlesHeartbeats: proto.Bool(true),
		TrackScanMetrics:        proto.Bool(true),
	}
	if s.id == nil {
		request.Scan = s.scan
	}
	if s.bySize {
		return request
	}
	if r.IntN(3) > 0 {
		request.NumberOfRows = proto.Uint32(uint32(1 + r.IntN(4)))
	}
	if s.limit > 0 {
		request.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 11, protowire.VarintType),
			uint64(s.limit)))
	}
	switch {
	case s.id == nil && r.IntN(6) == 0:
		request.CloseScanner = proto.Bool(true) // one reply is all that is wanted
	case s.id != nil && r.IntN(12) == 0:
		request.NextCallSeq = proto.Uint64(seq - 1) // again, as after a lost reply
	}
	return request
}

// close closes a scanner, which the server may have closed already.
func (x *exchange) close(s *scanned) {
	request := &pb.ScanRequest{
		Region:       hbasecalls.RegionSpecifier(s.loc.Name),
		ScannerId:    s.id,
		CloseScanner: proto.Bool(true),
	}
	if call, ok := x.call(s.loc, "Scan", request, &pb.ScanResponse{}, nil); ok {
		x.reply(call.Response.(*pb.ScanResponse), call.Cells)
	}
}

// wholeRows is the number of rows that a reply completes.
func wholeRows(response *pb.ScanResponse) (n int) {
	for _, partial := range response.GetPartialFlagPerResult() {
		if !partial {
			n++
		}
	}
	return n
}

// reply notes all of a reply but the scanner's number and the rows that were read for it: the fake reads them at once.
func (x *exchange) reply(m *pb.ScanResponse, block []byte) {
	x.note("cells %v, partial %v, more %v, in the region %v, heartbeat %v, results %d, a scanner %t",
		m.CellsPerResult, m.PartialFlagPerResult, unlessUnset(m.MoreResults), unlessUnset(m.MoreResultsInRegion),
		m.GetHeartbeatMessage(), len(m.Results), m.ScannerId != nil)
	x.cells(block)
}

func unlessUnset(b *bool) string {
	if b == nil {
		return "unset"
	}
	return fmt.Sprint(*b)
}

// sized checks the form of a reply that a limit of bytes may have cut, and notes the cells of all with the last one.
func (x *exchange) sized(s *scanned, m *pb.ScanResponse, block []byte, ended bool) {
	n := uint32(0)
	for i, cells := range m.CellsPerResult {
		n += cells
		if m.PartialFlagPerResult[i] && (!s.partials || i+1 < len(m.CellsPerResult)) {
			x.note("result %d of %d is partial, though only the last one may be, to a client that takes it",
				i, len(m.CellsPerResult))
		}
	}
	if counted := countCells(block); int(n) != counted {
		x.note("%d cells are counted, and %d come", n, counted)
	}
	if s.block = append(s.block, block...); ended {
		x.note("all cells:")
		x.cells(s.block)
	}
}

func countCells(block []byte) (n int) {
	for len(block) > 0 {
		var c store.Cell
		_, rest, err := cellblock.Split(block, &c)
		if err != nil {
			return -1
		}
		n, block = n+1, rest
	}
	return n
}

// drawGet draws a get of a row that may not be there.
func (x *exchange) drawGet(key []byte) *pb.Get {
	g := &pb.Get{Row: key}
	if x.r.IntN(2) == 0 {
		g.Column = []*pb.Column{{Family: []byte(rawFamilies[x.r.IntN(2)])}}
	}
	if x.r.IntN(10) == 0 {
		g.Column = []*pb.Column{{Family: []byte("none")}}
	}
	if x.r.IntN(5) == 0 {
		g.ExistenceOnly = proto.Bool(true)
	}
	return g
}

// get reads a row, sometimes at a region that does not have it, or of no region at all.
func (x *exchange) get() {
	key := drawRawKey(x.r)
	loc := x.locate(key)
	if loc == nil {
		return
	}
	name := loc.Name
	switch x.r.IntN(8) {
	case 0:
		key = []byte{3 - key[0], key[1]}
	case 1:
		name = []byte("replies,,1.00000000000000000000000000000000.")
	}
	call, ok := x.call(loc, "Get", &pb.GetRequest{Region: hbasecalls.RegionSpecifier(name), Get: x.drawGet(key)},
		&pb.GetResponse{}, nil)
	if ok {
		x.result(call.Response.(*pb.GetResponse).Result)
		x.cells(call.Cells)
	}
}

func (x *exchange) result(m *pb.Result) {
	x.note("result: %d cells in the block, %d in the message, exists %t, partial %t",
		m.GetAssociatedCellCount(), len(m.GetCell()), m.GetExists(), m.GetPartial())
	for _, c := range m.GetCell() {
		x.note("  %x %s:%s=%s@%d type %v", c.Row, c.Family, c.Qualifier, c.Value, c.GetTimestamp(), c.GetCellType())
	}
}

// batch sends gets, puts and deletions of rows in one call.
func (x *exchange) batch() {
	r := x.r
	first := drawRawKey(r)
	loc := x.locate(first)
	if loc == nil {
		return
	}
	action := &pb.RegionAction{Region: hbasecalls.RegionSpecifier(loc.Name)}
	gets := r.IntN(2) == 0 // a call has either, because HBase executes gets before mutations that stand before them
	var out []byte
	for i := range 1 + r.IntN(5) {
		key := []byte{first[0], byte(r.IntN(6))}
		if r.IntN(15) == 0 {
			key[0] = 3 - key[0] // of the other region
		}
		a := &pb.Action{Index: proto.Uint32(uint32(i))}
		if gets {
			a.Get = x.drawGet(key)
		} else {
			family := rawFamilies[r.IntN(2)]
			if r.IntN(15) == 0 {
				family = "none"
			}
			kind, cellKind := pb.MutationProto_PUT, byte(cellblock.Put)
			if r.IntN(4) == 0 {
				kind, cellKind = pb.MutationProto_DELETE, cellblock.DeleteColumn
			}
			// Later than all others, so that the order of changes of one time does not matter.
			out = cellblock.Append(out, key, family, drawRawQualifier(r), []byte("batch"),
				2000+r.Int64N(1000), cellKind)
			a.Mutation = &pb.MutationProto{
				Row:                 key,
				MutateType:          kind.Enum(),
				AssociatedCellCount: proto.Int32(1),
				Durability:          pb.MutationProto_USE_DEFAULT.Enum(),
			}
		}
		action.Action = append(action.Action, a)
	}
	call, ok := x.call(loc, "Multi", &pb.MultiRequest{RegionAction: []*pb.RegionAction{action}},
		&pb.MultiResponse{}, out)
	if !ok {
		return
	}
	for i, ra := range call.Response.(*pb.MultiResponse).RegionActionResult {
		x.note("region action %d: exception %q", i, ra.GetException().GetName())
		for _, roe := range ra.ResultOrException {
			x.note("action %d: exception %q", roe.GetIndex(), roe.GetException().GetName())
			if roe.Result != nil {
				x.result(roe.Result)
			}
		}
	}
	x.cells(call.Cells)
}
