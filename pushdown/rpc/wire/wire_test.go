package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"

	"downpour/pushdown/operator"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

//fault:lost-batch-not-counted c.Batches != batches => false
func TestComplete(t *testing.T) {
	want := Complete{Batches: 3, Stats: operator.Stats{Rows: 6000, Points: 2_160_000, ShippedBytes: 1 << 40}}
	got, err := ParseComplete(want.Trailer(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, trailer := range []metadata.MD{nil, metadata.Pairs(TrailerComplete, "3"),
		metadata.Join(want.Trailer(), want.Trailer())} {
		if _, err := ParseComplete(trailer, 3); !errors.Is(err, ErrIncomplete) {
			t.Errorf("trailer %v: %v, want %v", trailer, err, ErrIncomplete)
		}
	}
	if _, err := ParseComplete(want.Trailer(), 2); !errors.Is(err, ErrIncomplete) {
		t.Errorf("a batch is missing: %v, want %v", err, ErrIncomplete)
	}
}

// Every kind of error keeps its sentinel and its text.
func TestError(t *testing.T) {
	for _, sentinel := range []error{
		operator.ErrBadPlan, ErrMisfit, ErrEnding, ErrBusy, resultcache.ErrUnproven, store.ErrNoTable,
		store.ErrUnavailable, context.Canceled, context.DeadlineExceeded,
	} {
		err := fmt.Errorf("because: %w: ünïcode", sentinel)
		s, trailer := Status(err)
		if got := Error(s.Err(), trailer); !errors.Is(got, sentinel) || got.Error() != err.Error() {
			t.Errorf("%v became %v, want the same kind and text", err, got)
		}
	}
	s, trailer := Status(fmt.Errorf("x: %w", &operator.LimitError{Limit: 5, Need: 7}))
	var limit *operator.LimitError
	if got := Error(s.Err(), trailer); !errors.As(got, &limit) || *limit != (operator.LimitError{Limit: 5, Need: 7}) {
		t.Errorf("limit became %v, want the same LimitError", got)
	}
	s, trailer = Status(&operator.DataError{Row: []byte{1, 2}, Text: "row 0102"})
	var data *operator.DataError
	if got := Error(s.Err(), trailer); !errors.As(got, &data) || data.Text != "row 0102" ||
		string(data.Row) != "\x01\x02" {
		t.Errorf("data became %v, want the same DataError", got)
	}
	s, trailer = Status(errors.New("surprise"))
	if got := Error(s.Err(), trailer); !errors.Is(got, ErrServer) {
		t.Errorf("surprise became %v, want ErrServer", got)
	}
	if got := Error(errors.New("no status"), metadata.Pairs(TrailerError, "{")); !errors.Is(got, ErrServer) {
		t.Errorf("got %v, want %v", got, ErrServer)
	}
}
