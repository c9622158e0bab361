package changefeed

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/store"
)

// Without writes, a watched store is not read, and an unreadable store would go
// unnoticed. So every few seconds a probe reads the next few rows of the plan.
const (
	probeEvery = 3 * time.Second
	probeRows  = 64 // in one probe
)

// probe reads the rows of a plan, a few at a time, over and over.
type probe struct {
	store store.Reader
	plan  *scanplan.Plan
	last  time.Time // of the last probe
	part  int       // index of the plan's range to read next
	from  []byte    // key at which to continue in that range; nil at its start
}

// run reads the next rows if it is time to. It returns why they cannot be read.
func (p *probe) run(ctx context.Context, now time.Time) error {
	if now.Sub(p.last) < probeEvery || len(p.plan.Ranges) == 0 {
		return nil
	}
	p.last = now

	r := p.plan.Ranges[p.part]
	if p.from != nil {
		r.Start = p.from
	}
	rows, err := p.readKeys(ctx, r)
	if err != nil {
		return unreadable(ctx, err)
	}

	// Fewer rows than requested: the range is read to its end.
	if len(rows) < probeRows {
		p.part, p.from = (p.part+1)%len(p.plan.Ranges), nil
		return nil
	}
	p.from = append(append([]byte(nil), rows[len(rows)-1]...), 0) // the next key
	return nil
}

// readKeys returns the keys of the first probeRows rows of a range.
func (p *probe) readKeys(ctx context.Context, r scanplan.KeyRange) (keys [][]byte, err error) {
	scan := store.Scan{
		Table:    p.plan.Table,
		Family:   encoding.FamilyData,
		Start:    r.Start,
		Stop:     r.Stop,
		MaxRows:  probeRows,
		KeysOnly: true,
	}
	for row, err := range store.Rows(ctx, p.store, scan) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, bytes.Clone(row.Key))
	}
	return keys, nil
}

// unreadable marks a read error of a store in this process as dispatch.ErrUnreachable.
// Running the query in full would only try again for as long as a query may take, while
// the subscriber should get the error immediately.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil { // the tick was ended, which is no fault of the store
		return err
	}
	return fmt.Errorf("%w: %w", dispatch.ErrUnreachable, err)
}
