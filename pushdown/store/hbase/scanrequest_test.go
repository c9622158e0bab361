package hbase

import (
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
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
	if m.NextCallSeq == nil || !strings.HasPrefix(fmt.Sprintf("%x", m.Scan.ProtoReflect().GetUnknown()), "b80102") {
		t.Errorf("got %v, want next_call_seq and a read type", m)
	}
}
