package calls

import (
	"errors"
	"fmt"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
)

func TestClassify(t *testing.T) {
	java := func(class string) error { return fmt.Errorf("%s%s:\n%s: text\n\tat a.b", javaPrefix, class, class) }
	for _, x := range []struct {
		err  error
		want RetryClass
	}{
		{java("org.apache.hadoop.hbase.CallQueueTooBigException"), ClassBusy},
		{java("org.apache.hadoop.hbase.exceptions.RegionOpeningException"), ClassRetry},
		{java("org.apache.hadoop.hbase.NotServingRegionException"), ClassRelocate},
		{java("org.apache.hadoop.hbase.UnknownScannerException"), ClassReopen},
		{java("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException"), ClassFatal},
		{java("org.apache.hadoop.hbase.quotas.SpaceLimitingException"), ClassFatal},
		{java("org.apache.hadoop.hbase.regionserver.RegionServerStoppedException"), ClassReconnect},
		{java("org.apache.hadoop.hbase.regionserver.SomethingNewException"), ClassUnknown},
		{&JavaError{"org.apache.hadoop.hbase.RegionTooBusyException", "x"}, ClassBusy},
		{&LostError{addr: "s:1", err: errors.New("x")}, ClassReconnect},
		{&dialError{"s:1", errors.New("x")}, ClassReconnect},
		{fmt.Errorf("%w: x", NewFault(ClassRelocate, "hbase:meta")), ClassRelocate},
		{fmt.Errorf("%w: x", NewFault(ClassRetry, "busy")), ClassRetry},
		{fmt.Errorf("%w: x", store.ErrNoTable), ClassFatal},
		{fmt.Errorf("%w: x", cellblock.ErrMalformed), ClassUnknown},
	} {
		if got := Classify(x.err); got != x.want {
			t.Errorf("%v: got %d, want %d", x.err, got, x.want)
		}
	}
}

func TestWithoutStack(t *testing.T) {
	err := fmt.Errorf("%sa.b.CException:\na.b.CException: the text\n\tat x.y(Z.java:1)\n", javaPrefix)
	if got, want := WithoutStack(err).Error(), "a.b.CException: the text"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := WithoutStack(errors.New("plain")).Error(); got != "plain" {
		t.Errorf("got %q, want \"plain\"", got)
	}
}
