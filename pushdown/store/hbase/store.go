package hbase

import (
	"context"
	"sync/atomic"

	"downpour/pushdown/process/list"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"
	"downpour/pushdown/store/hbase/unchanged"
)

// Store is one HBase cluster. It implements store.Store.
type Store struct {
	// Version, Mark and Unchanged are the prover's.
	*prover

	cfg  Config
	life *calls.Life

	router *regions.Router
	nonces nonces
	pacer  pacer

	// appendResults is set once the cluster is known to be HBase 1, or a server has left an
	// append out of its reply: from then on appends want their result.
	appendResults atomic.Bool
}

// prover is embedded under a name that is not exported.
type prover = unchanged.Prover

// Open prepares a store. It does not connect: a cluster that is down now may
// be up for the first call.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	list.Warn(cfg.Logger, "DOWNPOUR_STORE", cfg.Unusable)

	st := &Store{cfg: cfg, life: calls.NewLife(), nonces: newNonces()}
	st.router = regions.New(cfg.routing(st.Scan), st.life)
	st.prover = unchanged.New(unchanged.Config{Timeout: cfg.VersionTimeout, Proof: cfg.Proof}, st.router, st.life)
	if cfg.Security != nil {
		st.life.Run(func() { cfg.Security.Client.Keep(st.life.Context()) })
	}
	return st, nil
}

// Close ends every operation with store.ErrClosed, closes the connections and
// waits for the store's goroutines.
func (st *Store) Close() error {
	st.life.End()
	st.router.CloseAll()
	st.life.Wait()

	// The last operations may have opened connections since.
	st.router.CloseAll()
	return nil
}

// Regions lists the regions that overlap [start, stop). Later scans and writes find them in
// the region cache.
func (st *Store) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	return st.router.List(ctx, table, start, stop)
}
