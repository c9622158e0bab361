package hbase

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
)

func TestClassify(t *testing.T) {
	java := func(class string) error { return fmt.Errorf("%s%s:\n%s: text\n\tat a.b", javaPrefix, class, class) }
	for _, x := range []struct {
		err  error
		want retryClass
	}{
		{java("org.apache.hadoop.hbase.CallQueueTooBigException"), classBusy},
		{java("org.apache.hadoop.hbase.exceptions.RegionOpeningException"), classRetry},
		{java("org.apache.hadoop.hbase.NotServingRegionException"), classRelocate},
		{java("org.apache.hadoop.hbase.UnknownScannerException"), classReopen},
		{java("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException"), classFatal},
		{java("org.apache.hadoop.hbase.quotas.SpaceLimitingException"), classFatal},
		{java("org.apache.hadoop.hbase.regionserver.RegionServerStoppedException"), classReconnect},
		{java("org.apache.hadoop.hbase.regionserver.SomethingNewException"), classUnknown},
		{&javaError{"org.apache.hadoop.hbase.RegionTooBusyException", "x"}, classBusy},
		{&lostError{addr: "s:1", err: errors.New("x")}, classReconnect},
		{&dialError{"s:1", errors.New("x")}, classReconnect},
		{fmt.Errorf("%w: x", errMeta), classRelocate},
		{fmt.Errorf("%w: x", errZooKeeper), classRelocate},
		{fmt.Errorf("%w: x", store.ErrNoTable), classFatal},
		{fmt.Errorf("%w: x", cellblock.ErrMalformed), classUnknown},
	} {
		if got := classify(x.err); got != x.want {
			t.Errorf("%v: got %d, want %d", x.err, got, x.want)
		}
	}
}

func TestWithoutStack(t *testing.T) {
	err := fmt.Errorf("%sa.b.CException:\na.b.CException: the text\n\tat x.y(Z.java:1)\n", javaPrefix)
	if got, want := withoutStack(err).Error(), "a.b.CException: the text"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := withoutStack(errors.New("plain")).Error(); got != "plain" {
		t.Errorf("got %q, want \"plain\"", got)
	}
}

// Requests have the read type and the row limit as raw fields, because gohbase's schema lacks
// them: field 23 of Scan and field 11 of ScanRequest.
func TestOpenRequest_unknownFields(t *testing.T) {
	if got := fmt.Sprintf("%x", readType); got != "b80102" {
		t.Errorf("read type: got %s, want b80102 (pread)", got)
	}
	f, err := newScanFilters(&store.Scan{})
	if err != nil {
		t.Fatal(err)
	}

	s := &scanner{scan: store.Scan{MaxRows: 300}, filters: f}
	m, err := s.openRequest(&location{name: []byte("r")})
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
