package hbase

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"
)

// Requests have the read type and the row limit as raw fields, because gohbase's schema lacks
// them: field 23 of Scan (pread) and field 11 of ScanRequest.
func TestOpenRequest_unknownFields(t *testing.T) {
	f, err := newScanFilters(&store.Scan{})
	if err != nil {
		t.Fatal(err)
	}

	s := &scanner{scan: store.Scan{MaxRows: 300}, filters: f}
	m, err := s.openRequest(&regions.Location{Name: []byte("r")})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", m.ProtoReflect().GetUnknown()); got != "58ac02" {
		t.Errorf("row limit: got %s, want 58ac02 (300)", got)
	}
	if m.Scan.GetMaxResultSize() != 2<<20 || m.Scan.TimeRange != nil {
		t.Errorf("got %v, want replies of 2 MiB and cells of all times", m.Scan)
	}
	block := cellblock.Append(nil, []byte("r"), "t", []byte("q"), nil, 1, cellblock.Put)
	ranges := []store.KeyRange{{Start: []byte("q")}}
	for _, columns := range []*cellblock.ColumnSet{nil, cellblock.NewColumnSet(ranges)} {
		s.rows = cellblock.Assembler{Columns: columns}
		want := uint32(math.MaxInt32)
		if columns != nil {
			want = cellblock.SampleRows // of the first reply, which is a sample
		}
		if n := s.newRequest().GetNumberOfRows(); n != want {
			t.Errorf("columns %v: %d rows, want %d", columns, n, want)
		}
		if err := s.rows.AddReply(block, []uint32{1}); err != nil {
			t.Fatal(err)
		}
		// The server may have counted the row that is incomplete.
		m := s.newRequest()
		n, limit := m.GetNumberOfRows(), fmt.Sprintf("%x", m.ProtoReflect().GetUnknown())
		if limit != "58ad02" || n != math.MaxInt32 {
			t.Errorf("columns %v, behind a part of a row: limit %s, %d rows, want 58ad02 (301)", columns, limit, n)
		}
	}
	versions := versionsRequest(&regions.Location{}, "t", store.KeyRange{}, 5).Scan
	if got := fmt.Sprintf("%x", versions.ProtoReflect().GetUnknown()); !strings.Contains(got, "b80102") {
		t.Errorf("versions: got %s, want a read type", got)
	}
	s.scan.BlockBytes, s.scan.Since = 77, 5
	if m, err := s.openRequest(&regions.Location{}); err != nil || m.Scan.GetMaxResultSize() != 77 ||
		m.Scan.GetTimeRange().GetFrom() != 5 {
		t.Errorf("got %v, %v, want replies of 77 bytes and cells from 5 on", m, err)
	}
	if m.NextCallSeq == nil || !strings.HasPrefix(fmt.Sprintf("%x", m.Scan.ProtoReflect().GetUnknown()), "b80102") {
		t.Errorf("got %v, want next_call_seq and a read type", m)
	}
}
