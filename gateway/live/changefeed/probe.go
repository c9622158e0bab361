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

// A store that tells what changes is not read while nobody writes, and would not
// be missed if it could not be read any more. So some rows of the plan are, the
// next ones each time: a few blocks every few seconds.
const (
	probeEvery = 3 * time.Second
	probeRows  = 64
)

// probe reads the rows of a plan, a few at a time, round and round.
type probe struct {
	store store.Reader
	plan  *scanplan.Plan
	last  time.Time
	part  int    // the plan's range under way
	from  []byte // where to go on in it, nil at its start
}

// look reads the next rows if it is time, and returns why they cannot be read.
func (p *probe) look(ctx context.Context, now time.Time) error {
	if now.Sub(p.last) < probeEvery || len(p.plan.Ranges) == 0 {
		return nil
	}
	p.last = now
	r := p.plan.Ranges[p.part]
	if p.from != nil {
		r.Start = p.from
	}
	rows, err := p.read(ctx, r)
	if err != nil {
		return unreadable(ctx, err)
	}
	if len(rows) < probeRows {
		p.part, p.from = (p.part+1)%len(p.plan.Ranges), nil
		return nil
	}
	p.from = append(append([]byte(nil), rows[len(rows)-1]...), 0)
	return nil
}

// read returns the keys of the first rows of a range.
func (p *probe) read(ctx context.Context, r scanplan.KeyRange) (keys [][]byte, err error) {
	scan := store.Scan{Table: p.plan.Table, Family: encoding.FamilyData, Start: r.Start, Stop: r.Stop, MaxRows: probeRows, KeysOnly: true}
	for row, err := range store.Rows(ctx, p.store, scan) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, bytes.Clone(row.Key))
	}
	return keys, nil
}

// unreadable words a fault of a store in this process: asking whole would only
// try again for as long as a query may take, and the subscriber is to know.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", dispatch.ErrUnreachable, err)
}
