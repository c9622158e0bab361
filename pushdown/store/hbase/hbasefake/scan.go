package hbasefake

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/region"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// scanner is a scanner that is open at a server. It holds the remaining rows of its region, as they
// were and passed the filter when the scanner was opened.
type scanner struct {
	region  *regionState // nil for hbase:meta
	rows    []*row
	cell    int    // index in rows[0] of the next cell to send
	seq     uint64 // next_call_seq of the next request
	replies int
	size    int    // bytes of a reply
	scanned int64  // rows read since the last reply
	slow    bool   // see SetSlow
	passed  int    // bytes of values before the first that passes the filter
	plain   bool   // the scan names no read type
	began   string // the row at which it was opened
	done    bool   // behind its rows is one that shows that the filter admits no more
	// last returns the last row that it comes to, though its filter may not admit it. It looks when it is first called.
	last func() []byte
}

// scan executes the Scan method: it opens, continues or closes a scanner.
func (s *server) scan(m *pb.ScanRequest) (proto.Message, []byte, error) {
	var sc *scanner
	id := m.GetScannerId()
	if m.ScannerId == nil {
		var err error
		if sc, err = s.openScanner(m); err != nil {
			return nil, nil, err
		}
		s.c.lastScanner++
		id = uint64(s.c.lastScanner)
		s.c.scanners[id] = sc
	} else if sc = s.c.scanners[id]; sc == nil {
		// A server remembers the scanners that it has closed, and ignores another close.
		if !s.c.closedScanners[id] {
			return nil, nil, throw(unknownScan, "scanner %d", id)
		}
		if m.NextCallSeq != nil {
			return nil, nil, throw(outOfOrder, "scanner %d is closed", id)
		}
		return &pb.ScanResponse{ScannerId: &id}, nil, nil
	}

	// An opening request that also closes is answered with rows first.
	if m.GetCloseScanner() && m.ScannerId != nil {
		s.closeScanner(id)
		return &pb.ScanResponse{ScannerId: &id, MoreResults: proto.Bool(true), MoreResultsInRegion: proto.Bool(true)},
			nil, nil
	}

	// HBase would accept such a client, which then loses rows. A scan of hbase:meta,
	// which has no region here, may go without.
	if m.NextCallSeq == nil && sc.region != nil {
		return nil, nil, throw(doNotRetry, "a scan without next_call_seq: HBase would let it lose rows")
	}
	if m.NextCallSeq != nil && m.GetNextCallSeq() != sc.seq && !s.c.opts.NoSequence {
		delete(s.c.scanners, id)
		return nil, nil, throw(outOfOrder, "expected %d, got %d", sc.seq, m.GetNextCallSeq())
	}

	sc.seq++
	response, cells := s.nextReply(sc, m)
	response.ScannerId = &id
	if m.ScannerId == nil && !s.c.opts.NoReadPoint { // field 11, which gohbase's schema does not have
		unknown := protowire.AppendTag(nil, 11, protowire.VarintType)
		point := s.c.catalogPoint
		if sc.region != nil {
			point = sc.region.point
		}
		response.ProtoReflect().SetUnknown(protowire.AppendVarint(unknown, point))
	}

	if !response.GetMoreResults() || !response.GetMoreResultsInRegion() || m.GetCloseScanner() {
		s.closeScanner(id)
	}
	return response, cells, nil
}

func (s *server) closeScanner(id uint64) {
	s.c.closedScanners[id] = true
	delete(s.c.scanners, id)
}

// openScanner returns a new scanner with the rows that pass the scan's filter.
func (s *server) openScanner(m *pb.ScanRequest) (*scanner, error) {
	spec := m.GetScan()
	sc := &scanner{size: int(spec.GetMaxResultSize()), began: string(spec.GetStartRow())}
	if string(m.GetRegion().GetValue()) == metaRegion {
		if err := s.servesMeta(); err != nil {
			return nil, err
		}
		if m.GetNumberOfRows() == 0 { // it requests only the read point
			s.c.calls[catalogPointRead]++
			return sc, nil
		}
		s.c.calls[catalogRowRead]++
		sc.rows = s.c.metaRange(spec)
		all := sc.rows
		sc.last = func() []byte { return all[len(all)-1].key }
		return sc, nil
	}

	t, r, err := s.servedRegion(m.GetRegion())
	if err != nil {
		return nil, err
	}
	for _, col := range spec.Column {
		if !t.families[string(col.Family)] {
			return nil, throw(noFamily, "%s in table %s", col.Family, t.name)
		}
	}

	f, err := newFilter(spec)
	if err != nil {
		return nil, err
	}

	sc.region = r
	rows := t.rows
	if len(spec.Attribute) > 0 && spec.Attribute[0].GetName() == "_raw_" {
		s.c.rawScans++
		rows = t.rawRows()
		if t.versions != nil {
			rows = t.rawVersions()
		}
		sc.slow = spec.GetTimeRange().GetFrom() < uint64(s.c.slowUntil)
		sc.plain = unknownVarint(spec, 23) < 0
	}
	inRange := func(key []byte) bool {
		return r.contains(key) && bytes.Compare(key, spec.StartRow) >= 0 &&
			(len(spec.StopRow) == 0 || bytes.Compare(key, spec.StopRow) < 0)
	}
	sc.last = sync.OnceValue(func() []byte { return t.lastRow(inRange, f.ofFamily) })
	sc.done = f.last != nil && f.endsBefore(sc.last())
	for _, row := range rows {
		if !inRange(row.key) {
			continue
		}
		// Counted before the filter, as HBase counts ROWS_SCANNED.
		sc.scanned++
		if kept := f.apply(row); len(kept.cells) > 0 {
			sc.rows = append(sc.rows, kept)
		}
		if len(sc.rows) == 0 {
			for _, c := range row.cells {
				sc.passed += len(c.value)
			}
		}
	}

	return sc, nil
}

// lastRow returns the last row in a range that has cells of some families, deleted ones too if they
// are kept; nil without one.
func (t *table) lastRow(inRange func(key []byte) bool, ofFamily func(cell) bool) (last []byte) {
	for _, row := range t.rows {
		if inRange(row.key) && slices.ContainsFunc(row.cells, ofFamily) {
			last = row.key
		}
	}
	for key, all := range t.versions {
		if k := []byte(key); bytes.Compare(k, last) > 0 && inRange(k) &&
			slices.ContainsFunc(all, func(s stored) bool { return ofFamily(s.cell) }) {
			last = k
		}
	}
	return last
}

// metaRange returns the rows of hbase:meta, in its own order, that a scan wants; a
// reversed scan gets all from its start row down.
func (c *Cluster) metaRange(spec *pb.Scan) []*row {
	var rows []*row
	for _, r := range c.metaRows() {
		below := len(spec.StartRow) > 0 && region.Compare(r.key, spec.StartRow) < 0
		if spec.GetReversed() {
			if region.Compare(r.key, spec.StartRow) <= 0 {
				rows = append(rows, r)
			}
		} else if !below && (len(spec.StopRow) == 0 || region.Compare(r.key, spec.StopRow) < 0) {
			rows = append(rows, r)
		}
	}

	if spec.GetReversed() {
		slices.Reverse(rows)
	}
	return rows
}

// limits returns the limits of one reply: bytes, cells and rows.
func (s *server) limits(sc *scanner, m *pb.ScanRequest) (size, cells, rows int) {
	size, cells, rows = math.MaxInt, math.MaxInt, int(m.GetNumberOfRows())
	if sc.size > 0 {
		size = sc.size
	}

	// Replies of hbase:meta stay whole: the options are about the scans of tables.
	if o := s.c.opts; sc.region != nil {
		if o.MaxReplyBytes > 0 {
			size = min(size, o.MaxReplyBytes)
		}
		if o.MaxReplyCells > 0 {
			cells = o.MaxReplyCells
		}
	}

	return size, cells, rows
}

// nextReply returns the next reply of a scanner and its cell block: as many cells as
// the limits allow, or a heartbeat.
func (s *server) nextReply(sc *scanner, m *pb.ScanRequest) (*pb.ScanResponse, []byte) {
	response := &pb.ScanResponse{MoreResults: proto.Bool(true), MoreResultsInRegion: proto.Bool(true)}
	if m.GetTrackScanMetrics() {
		response.ScanMetrics = &pb.ScanMetrics{
			Metrics: []*pb.NameInt64Pair{{Name: proto.String("ROWS_SCANNED"), Value: proto.Int64(sc.scanned)}},
		}
		sc.scanned = 0
	}

	sc.replies++
	toStream := sc.plain && sc.passed > preadBytes && sc.replies == 1
	if n := s.c.opts.HeartbeatEvery; sc.slow || toStream || n > 0 && sc.replies%n == 0 && sc.region != nil {
		response.HeartbeatMessage = proto.Bool(true)
		return response, nil
	}

	// A reply ends with the row, or inside it with the cell, that reaches a limit. The next reply
	// continues with cell sc.cell of the first remaining row.
	size, cells, rows := s.limits(sc, m)
	limit := limitOfRows(m)
	if s.c.version.before(2, 0) {
		limit = -1
	}
	var block []byte
	var end []byte // the last whole row
	for sent := 0; len(sc.rows) > 0 && rows > 0; rows-- {
		r, n := sc.rows[0], uint32(0)
		for sc.cell < len(r.cells) && (len(block) < size && sent < cells || !m.GetClientHandlesPartials()) {
			block = appendCell(block, r.key, r.cells[sc.cell])
			sc.cell, sent, n = sc.cell+1, sent+1, n+1
		}

		full := len(block) >= size || sent >= cells
		whole := sc.cell == len(r.cells)
		if n > 0 {
			response.CellsPerResult = append(response.CellsPerResult, n)
			response.PartialFlagPerResult = append(response.PartialFlagPerResult,
				!whole || full && s.c.opts.FlagCompleteRows)
		}

		if whole {
			sc.rows, sc.cell, end = sc.rows[1:], 0, r.key
			// Without a limit it is negative, and never 0.
			if limit--; limit == 0 {
				response.MoreResults = proto.Bool(false)
				response.MoreResultsInRegion = proto.Bool(!bytes.Equal(end, sc.last()))
				return response, block
			}
		}

		if full {
			return response, block
		}
	}

	// A server that stops at the last row it wants to send does not know which of the rows behind it the filter admits.
	response.MoreResultsInRegion = proto.Bool(len(sc.rows) > 0 ||
		rows == 0 && end != nil && !bytes.Equal(end, sc.last()))
	// HBase says only without results that the filter is done. If its time for the reply ends at
	// the row that shows it, it has not seen yet that this was all of the region.
	if sc.done && len(sc.rows) == 0 && len(response.CellsPerResult) == 0 {
		response.MoreResults = proto.Bool(false)
		response.MoreResultsInRegion = proto.Bool(s.c.opts.HeartbeatEvery > 0)
	}
	return response, block
}

// preadBytes is hbase.storescanner.pread.max.bytes: a server ends the first reply of a scan
// without a read type there, and continues with streaming reads. The fake counts as if all
// cells were in one file.
const preadBytes = 256 << 10

// limitOfRows returns field 11 of a request, the rows that the client still wants; -1 if it is
// absent.
func limitOfRows(m *pb.ScanRequest) int { return unknownVarint(m, 11) }

// unknownVarint returns a field of a message that gohbase's schema lacks; -1 if it is absent.
func unknownVarint(m proto.Message, field protowire.Number) int {
	for b := []byte(m.ProtoReflect().GetUnknown()); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		if number == field && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b[n:])
			return int(v)
		}

		skip := protowire.ConsumeFieldValue(number, kind, b[n:])
		if skip < 0 {
			break
		}
		b = b[n+skip:]
	}

	return -1
}
