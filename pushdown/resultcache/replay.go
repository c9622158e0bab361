package resultcache

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding/batch"
	"downpour/pushdown/operator"
)

// replay is an operator that returns a cached answer. It ends with ErrUnproven if the answer's
// version token proves wrong. It spends as much of the query's budget as reading the rows would,
// because whether a query is refused must not depend on earlier queries.
type replay struct {
	answer *answer
	opts   operator.Options
	inner  operator.Operator // of the same part; it has read nothing
	proof  func() error      // that the rows have not changed since

	spent  bool // of the budget, to be refunded by end
	next   int  // index of the next batch
	bytes  int64
	closed bool
	err    error
}

// Next returns the next batch; see operator.Operator.
func (r *replay) Next(ctx context.Context) (batch.Record, error) {
	if r.err == nil && r.closed {
		r.err = operator.ErrClosed
	}
	if r.err != nil {
		return nil, r.err
	}

	record, err := r.decodeNext(ctx)
	r.err = err
	return record, err
}

// decodeNext returns the next batch, or io.EOF.
func (r *replay) decodeNext(ctx context.Context) (batch.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}

	// The whole answer is spent before its first batch. A replay that ends early
	// refunds it, also if Spend refuses, which counts all the same.
	if r.next == 0 {
		r.spent = true
		if err := r.opts.Budget.Spend(ctx, r.answer.stats.Points, r.answer.stats.Bytes); err != nil {
			return nil, err
		}
	}

	// A receiver uses no batch before the end mark: so batches may go ahead of the
	// proof, which takes as long as sending them, and the end mark must not.
	if r.next == len(r.answer.batches) {
		if err := r.proof(); err != nil { //fault:end-mark-before-proven TestOpen_unproven
			return nil, fmt.Errorf("%w: %w", ErrUnproven, err)
		}
		r.spent = false // there is nothing to refund
		return nil, io.EOF
	}

	mem := r.opts.Mem
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	record, err := batch.Decode(r.answer.batches[r.next], mem)
	if err != nil {
		return nil, err
	}

	r.next++
	r.bytes += operator.RecordBytes(record)
	return record, nil
}

// end refunds the budget if not all of the answer was returned.
func (r *replay) end() {
	if !r.closed {
		r.closed = true
		if r.spent {
			r.opts.Budget.Refund(r.answer.stats.Points, r.answer.stats.Bytes)
		}
	}
}

// stats returns the counts of the cached answer, without the calls and the time
// that it has not cost now.
func (r *replay) stats() operator.Stats {
	s := r.answer.stats
	s.RPCs, s.Resumes = 0, 0 // rows and bytes are kept: the gateway cuts plans into parts by them
	s.ScanTime, s.DecodeTime, s.EmitTime = 0, 0, 0
	s.Batches, s.ShippedBytes = int64(r.next), r.bytes
	return s
}
