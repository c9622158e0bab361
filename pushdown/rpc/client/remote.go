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

// remote is the operator of a part on a server.
type remote struct {
	client *Client
	ticket []byte
	schema *arrow.Schema

	cancel  context.CancelCauseFunc
	inner   context.Context
	stream  *guarded
	reader  *flight.Reader
	batches int64
	stats   operator.Stats
	closed  bool
	err     error
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

func (r *remote) next(ctx context.Context) (batch.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
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
			return nil, r.reason(ctx, err)
		}
		if rec.NumRows() > 0 {
			rec.Retain()
			return rec, nil
		}
		stall.Reset(r.client.opts.Stall) // a heartbeat
	}
}

// receive returns the next batch, which belongs to the reader.
func (r *remote) receive() (batch.Record, error) {
	if r.reader == nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	if r.reader.Next() {
		return r.reader.Record(), sound(r.reader.Record())
	}
	if err := r.reader.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

func (r *remote) open() (err error) {
	stream, err := r.client.flight.DoGet(budgeted(r.client.outgoing(r.inner)), &flight.Ticket{Ticket: r.ticket})
	if err != nil {
		return err
	}
	r.stream = guard(stream, r.schema)
	// The first message is the schema; another one than ours is an error.
	r.reader, err = flight.NewRecordReader(r.stream, ipc.WithSchema(r.schema), ipc.WithAllocator(r.client.opts.Mem))
	return err
}

// reason is the error of the operator for what the stream ended with.
func (r *remote) reason(ctx context.Context, err error) error {
	if r.stream != nil && errors.Is(err, io.EOF) {
		return r.complete(ctx)
	}
	if ctx.Err() != nil {
		return r.client.named(fmt.Errorf("%w: %w", context.Cause(ctx), wire.Error(err, nil)))
	}
	if cause := context.Cause(r.inner); cause != nil {
		return r.client.named(cause)
	}
	if r.stream == nil {
		return r.client.named(wire.Error(err, nil))
	}
	failure := wire.Error(err, r.stream.Trailer())
	var limit *operator.LimitError
	if errors.As(failure, &limit) {
		failure = operator.BudgetOf(r.inner).Refusal(limit)
	}
	return r.client.named(failure)
}

// budgeted adds what the part may read.
func budgeted(ctx context.Context) context.Context {
	b := wire.Budget{Query: operator.QueryOf(ctx)}
	b.Points, b.Bytes = operator.BudgetOf(ctx).Left()
	if b == (wire.Budget{}) {
		return ctx
	}
	key, value := b.Metadata()
	return metadata.AppendToOutgoingContext(ctx, key, value)
}

// complete returns io.EOF if the server said that all was sent, and the budget
// allows it.
func (r *remote) complete(ctx context.Context) error {
	c, err := wire.ParseComplete(r.stream.Trailer(), r.batches)
	if err != nil {
		return r.client.named(err)
	}
	shipped := r.stats.ShippedBytes
	r.stats = c.Stats
	r.stats.Batches, r.stats.ShippedBytes = r.batches, shipped
	if err := operator.BudgetOf(r.inner).Spend(ctx, c.Stats.Points, c.Stats.Bytes); err != nil {
		return err
	}
	return io.EOF
}

// Stats are the server's; before the end only what has arrived is known.
func (r *remote) Stats() operator.Stats { return r.stats }

// end frees the stream; the server sees its context end.
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

// Close ends the work, on the server too; see operator.Operator.
func (r *remote) Close() error {
	r.end()
	return nil
}
