package lookup

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// slowStore has a row in its data table and nothing in its meta table. A scan with a filter returns the row, and then
// waits until its time is over.
type slowStore struct {
	store.Reader
	key []byte
}

func (s slowStore) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	r := &slowRows{ctx: ctx, waits: scan.Filter.Pattern != nil}
	if scan.Table == "tsdb" {
		r.rows = []store.Row{{Key: s.key}}
	}
	return r, nil
}

func (slowStore) Features() store.Features { return store.Features{} }

type slowRows struct {
	store.Scanner
	ctx   context.Context
	rows  []store.Row
	waits bool
}

func (r *slowRows) Next() ([]store.Row, error) {
	if rows := r.rows; len(rows) > 0 {
		r.rows = nil
		return rows, nil
	}
	if !r.waits {
		return nil, io.EOF
	}
	<-r.ctx.Done()
	return nil, r.ctx.Err()
}

func (*slowRows) NextBytes() int64 { return 0 }
func (*slowRows) Close() error     { return nil }

// oneName gives every name the UID 1, and every UID the name "one".
type oneName struct{}

func (oneName) Resolve(context.Context, encoding.UIDKind, string) (encoding.UID, error) {
	return encoding.UID{0, 0, 1}, nil
}

func (oneName) Names(_ context.Context, _ encoding.UIDKind, uids []encoding.UID) ([]string, error) {
	return slices.Repeat([]string{"one"}, len(uids)), nil
}

// Recent rows are read for a while, and what was found until then is the answer, which says that there may be more. A
// client whose own time is over gets its error.
func TestValues_slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schema := encoding.DefaultSchema()
		tags := schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 7}}})
		key := schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(encoding.Hour(time.Now().Unix())), tags)
		f := New(Config{
			Store:     slowStore{key: key},
			DataTable: "tsdb",
			MetaTable: "tsdb-meta",
			Schema:    schema,
			Names:     oneName{},
		})
		metric, began := "m", time.Now()
		got, err := f.Values(t.Context(), Query{Metric: &metric}, "host", 10)
		if err != nil || !slices.Equal(got.Values, []string{"one"}) || !got.More || time.Since(began) != recentTime {
			t.Errorf("got %+v, %v after %v; want one value and more after %v", got, err, time.Since(began), recentTime)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := f.Values(ctx, Query{Metric: &metric}, "host", 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a second of the client: got %+v, %v, want its end", got, err)
		}
	})
}
