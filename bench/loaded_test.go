package bench

import (
	"context"
	"slices"

	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// LoadedQueries asks a data set in this process, for Go benchmarks.
type LoadedQueries struct {
	local *local
	data  workload.Devops
}

// NewQueries writes a data set into a store, appended as a gateway would.
func NewQueries(ctx context.Context, st store.Store, d workload.Devops) (*LoadedQueries, error) {
	l, err := newLocal(ctx, st, encoding.DefaultSchema(), ScanTable)
	if err != nil {
		return nil, err
	}
	return &LoadedQueries{l, d}, l.load(ctx, d, write.Appended, 60, nil)
}

// Ask asks one of Queries over the whole data set. It fails if fewer points were read
// than one metric has.
func (q *LoadedQueries) Ask(ctx context.Context, m string) error {
	parsed, err := parse(q.data.Whole(m))
	if err != nil {
		return err
	}
	_, err = q.local.ask(ctx, q.local.engine, parsed, int64(q.data.Points()/q.data.MetricCount))
	return err
}

// Replace changes the text of a payload in memory, so that a test can send what
// a server must refuse.
func (p Payload) Replace(change func([]byte) []byte) {
	for i, part := range p.parts {
		var all []workload.Chunk
		for c := range part {
			all = append(all, workload.Chunk{Text: change(c.Text), Points: c.Points})
		}
		p.parts[i] = slices.Values(all)
	}
}
