package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"downpour/gateway"
	"downpour/pushdown/store"
)

// earlyStore gives version tokens before they are proven, as HBase does. Once it is
// stale it gives the old tokens, whose proofs fail.
type earlyStore struct {
	gateway.Store
	tokens sync.Map // by table, family and start
	stale  atomic.Bool
	failed atomic.Int64 // proofs
}

func (s *earlyStore) Version(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	return s.Store.(store.Versioner).Version(ctx, table, family, r)
}

func (s *earlyStore) EarlyVersion(ctx context.Context, table, family string, r store.KeyRange) (string, func() error, error) {
	key := table + family + string(r.Start)
	if s.stale.Load() {
		token, _ := s.tokens.LoadOrStore(key, "")
		return token.(string), func() error { s.failed.Add(1); return errors.New("the region was opened again") }, nil
	}
	token, err := s.Version(ctx, table, family, r)
	s.tokens.Store(key, token)
	return token, func() error { return nil }, err
}

// An answer from the result cache that turns out to be unproven after it was written is
// not sent: the rows are read. That holds whether the answer gets an ETag, and so is
// held back, or is sent as it comes.
func TestQuery_unproven(t *testing.T) {
	for _, end := range []string{"1357000000", "4000000000"} {
		cfg := config(0)
		cfg.ResultCache = "1048576"
		st := &earlyStore{Store: memoryStore(t, cfg)}
		b := &bench{T: t, cfg: cfg, g: start(t, cfg, st)}
		b.put("m 1356998400 1 host=a")
		query := "/api/query?start=1356998400&m=sum:5m-sum:m&end=" + end
		for range 4 {
			if a := b.get(query); !strings.Contains(a.body, `"1356998400":1`) {
				t.Fatalf("%d %s, want the value 1", a.status, a.body)
			}
		}

		b.put("m 1356998401 2 host=a")
		st.stale.Store(true)
		if a := b.get(query); a.err != nil || a.status != 200 || !strings.Contains(a.body, `"1356998400":3`) || strings.Count(a.body, "[{") != 1 {
			t.Errorf("until %s: %d %s, error %v, want the value 3 alone", end, a.status, a.body, a.err)
		}
		// Once while the answer was written, once before the parts were asked for, and once
		// for each part.
		if n := st.failed.Load(); n < 3 {
			t.Errorf("until %s: %d proofs failed, want 3 or more: the answer was not in the result cache", end, n)
		}
	}
}
