package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"google.golang.org/grpc/metadata"

	"downpour/encoding/batch"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// remote is the operator of a part that a server executes.
type remote struct {
	client *Client
	ticket []byte
	schema *arrow.Schema
	budget operator.Budget

	inner   context.Context // of the call; begins with the first Next
	cancel  context.CancelCauseFunc
	stream  *schemaGuard   // nil until the call has begun
	reader  *flight.Reader // the same
	batches int64          // with rows, received
	stats   operator.Stats
	closed  bool
	err     error // what each further Next returns
}

// Next returns the next batch with rows; see operator.Operator.
func (r *remote) Next(ctx context.Context) (batch.Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.closed {
		r.err = operator.ErrClosed
		return nil, r.err
	}

	rec, err := r.next(ctx)
	if err != nil {
		r.err = err
		r.end()
		return nil, err
	}

	r.batches++
	r.stats.Batches, r.stats.ShippedBytes = r.batches, r.stream.bytes
	return rec, nil
}

// next returns the next batch with rows. It fails if the server is silent for too
// long.
func (r *remote) next(ctx context.Context) (batch.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}

	// The call belongs to the first context. While a later Next runs, the end of its
	// context ends the call too.
	if r.cancel == nil {
		r.inner, r.cancel = context.WithCancelCause(ctx)
	} else {
		defer context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })()
	}

	stall := time.AfterFunc(r.client.opts.Stall, func() { r.cancel(wire.ErrStalled) })
	defer stall.Stop()
	for {
		rec, err := r.receive()
		if err != nil {
			return nil, r.endError(ctx, err)
		}
		if rec.NumRows() > 0 {
			rec.Retain()
			return rec, nil
		}
		stall.Reset(r.client.opts.Stall) // a batch without rows is a heartbeat
	}
}

// receive returns the next batch; one without rows is a heartbeat. The reader reuses
// the batch for the next one: Retain it to keep it.
func (r *remote) receive() (batch.Record, error) {
	if r.reader == nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	if r.reader.Next() {
		return r.reader.Record(), validate(r.reader.Record())
	}
	if err := r.reader.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// open begins the call.
func (r *remote) open() (err error) {
	stream, err := r.client.flight.DoGet(withBudget(r.client.withMetadata(r.inner), r.budget),
		&flight.Ticket{Ticket: r.ticket})
	if err != nil {
		return err
	}
	r.stream = &schemaGuard{FlightService_DoGetClient: stream, schema: r.schema}
	r.reader, err = flight.NewRecordReader(r.stream, ipc.WithAllocator(r.client.opts.Mem))
	return err
}

// endError returns the operator's error for what the stream ended with: io.EOF if the
// answer is complete.
func (r *remote) endError(ctx context.Context, err error) error {
	if r.stream != nil && err == io.EOF {
		return r.complete(ctx)
	}

	// The cause of the end comes before its effects: the end of this Next's context, or of the
	// call, such as wire.ErrStalled.
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), wire.Error(err, nil))
	}
	if cause := context.Cause(r.inner); cause != nil {
		return cause
	}
	// The call has not begun, so there is no trailer.
	if r.stream == nil {
		return wire.Error(err, nil)
	}

	failure := wire.Error(err, r.stream.Trailer())
	var limit *operator.LimitError
	if errors.As(failure, &limit) {
		// The server knows the rest of the budget, the client all of it.
		failure = r.budget.Refusal(limit)
	}
	return failure //fault:error-named-after-its-server TestStories/same_errors
}

// withBudget adds what the part may read to the call's metadata.
func withBudget(ctx context.Context, budget operator.Budget) context.Context {
	b := wire.Budget{Query: operator.QueryOf(ctx)}
	b.Points, b.Bytes = budget.Left()
	if b == (wire.Budget{}) {
		return ctx
	}
	key, value := b.Metadata()
	return metadata.AppendToOutgoingContext(ctx, key, value)
}

// complete returns io.EOF if the server has marked the end, and the reads are within the budget.
func (r *remote) complete(ctx context.Context) error {
	c, err := wire.ParseComplete(r.stream.Trailer(), r.batches)
	if err != nil { //fault:end-of-stream-error-ignored TestClient_incomplete
		return err
	}
	shipped := r.stats.ShippedBytes
	// Received data are counted here; only the server knows the rest, such as the rows read.
	r.stats = c.Stats
	r.stats.Batches, r.stats.ShippedBytes = r.batches, shipped

	if err := r.budget.Spend(ctx, c.Stats.Points, c.Stats.Bytes); err != nil {
		return err
	}
	return io.EOF
}

// Stats returns the server's counts. Before the end it has only what has arrived.
func (r *remote) Stats() operator.Stats { return r.stats }

// end frees the stream. On the server the context of the call ends.
func (r *remote) end() {
	if r.closed {
		return
	}
	r.closed = true
	if r.cancel != nil {
		r.cancel(operator.ErrClosed)
	}
	if r.reader != nil {
		r.reader.Release()
	}
}

// Close ends the work, also on the server; see operator.Operator.
func (r *remote) Close() error {
	r.end()
	return nil
}
