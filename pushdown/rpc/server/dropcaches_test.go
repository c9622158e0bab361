package server_test

import (
	"context"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store"
)

// resting is a store whose rows never change.
type resting struct{ *operatortest.Store }

func (r resting) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(r.Version)}
}

// Version always returns the same token.
func (resting) Version(context.Context, string, string, store.KeyRange) (string, error) {
	return "1", nil
}

// After drop-caches a server answers nothing from memory, until a part has been queried
// twice again.
func TestDoAction_dropCaches(t *testing.T) {
	m := points(100)
	p := startOn(t, resting{m}, m,
		func(c *server.Config, _ *client.Options) { c.ResultCache = resultcache.New(1<<20, nil) })
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3600)
	asks := func(want ...int64) {
		t.Helper()
		for i, want := range want {
			op := p.open(&scanplan.Part{Plan: plan, Range: plan.Ranges[0]})
			if err := operatortest.Drain(t.Context(), op, func(batch.Record) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if got := op.Stats().CacheHits; got != want {
				t.Errorf("ask %d: %d answers from memory, want %d", i+1, got, want)
			}
		}
	}
	asks(0, 0, 1, 1)
	if err := p.client.DropCaches(t.Context()); err != nil {
		t.Fatal(err)
	}
	asks(0, 0, 1)
}
