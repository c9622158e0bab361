package calls

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"

	"github.com/tsuna/gohbase/region"
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
		// Of exceptions that are not listed gohbase's types count.
		{region.NotServingRegionError{}, ClassRelocate},
		{region.ServerError{}, ClassReconnect},
		{region.RetryableError{}, ClassRetry},
	} {
		if got := Classify(x.err); got != x.want {
			t.Errorf("%v: got %d, want %d", x.err, got, x.want)
		}
	}
}

// A message of 200 bytes is whole, and a longer one is cut. Only the exceptions that mean it say that a
// right or a method is lacking.
func TestNewJavaError(t *testing.T) {
	const denial = "Insufficient permissions (user=us, action=READ)"
	lacking := "/10.0.0.1:16000 is unable to read call parameter; " + unknownMethod + ": GetActiveMaster"
	whole := strings.Repeat("x", 200)
	for _, e := range [][3]string{ // class, message, want
		{"a.B", whole, whole},
		{"a.B", whole + "y", whole + "…"},
		{"a.B", denial, denial},
		{"a.B", lacking, lacking},
		{"org.apache.hadoop.hbase.DoNotRetryIOException", lacking, "GetActiveMaster"},
	} {
		got := NewJavaError(e[0], e[0]+": "+e[1]+"\n\tat x.y")
		if got.Message != e[2] || LacksMethod(got) != (e[2] == "GetActiveMaster") {
			t.Errorf("%s: %s: got %q, lacks a method %v, want %q", e[0], e[1], got.Message, LacksMethod(got), e[2])
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
