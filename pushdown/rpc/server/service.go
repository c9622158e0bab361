package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// service is the Flight service.
type service struct {
	flight.BaseFlightServer
	cfg    Config
	store  store.Reader
	shares *shares
	queue  chan struct{} // as many as may run or wait
	drain  chan struct{} // closed when the server ends
	count  *counters
}

func newService(cfg Config, st store.Reader) *service {
	if cfg.Mem == nil {
		cfg.Mem = arrowmemory.DefaultAllocator
	}
	return &service{
		cfg: cfg, store: st, count: newCounters(cfg.ResultCache, cfg.Memory),
		shares: newShares(cfg.Parts), queue: make(chan struct{}, cfg.Parts+cfg.Waiting), drain: make(chan struct{}),
	}
}

// ending tells whether the server takes no more parts.
func (s *service) ending() bool {
	select {
	case <-s.drain:
		return true
	default:
		return false
	}
}

// end makes it so; parts that have not begun are refused.
func (s *service) end() {
	s.count.ending.Set(1)
	close(s.drain)
}

// ListActions lists the actions.
func (s *service) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	for _, a := range []*flight.ActionType{
		{Type: wire.ActionHello, Description: "what this server is and where it runs, as JSON"},
		{Type: wire.ActionDropCaches, Description: "forget the answers that are remembered"},
	} {
		if err := stream.Send(a); err != nil {
			return err
		}
	}
	return nil
}

// DoAction answers hello, and drops what is remembered.
func (s *service) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	if s.ending() { // gateways that ask whether to use it should not
		return status.Error(codes.Unavailable, wire.ErrEnding.Error())
	}
	switch a.Type {
	case wire.ActionHello:
		return s.hello(stream)
	case wire.ActionDropCaches:
		s.cfg.ResultCache.Drop()
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "action %q, want %s or %s", a.Type, wire.ActionHello, wire.ActionDropCaches)
}

func (s *service) hello(stream flight.FlightService_DoActionServer) error {
	body, err := json.Marshal(wire.Hello{
		Program: s.cfg.Program, Plan: scanplan.Version, Batch: batch.Version,
		Beside: s.cfg.Beside, Table: s.cfg.Table, Schema: s.cfg.Schema,
	})
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

// DoGet executes the part that the ticket holds.
func (s *service) DoGet(t *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	began := time.Now()
	complete, err := s.executePart(t, stream)
	s.count.part(time.Since(began), complete.Stats, err)
	if err != nil {
		st, trailer := wire.Status(err)
		stream.SetTrailer(trailer)
		return st.Err()
	}
	stream.SetTrailer(complete.Trailer())
	return nil
}

// executePart lets a part in if the server takes parts and not too many wait.
func (s *service) executePart(t *flight.Ticket, stream flight.FlightService_DoGetServer) (wire.Complete, error) {
	if s.ending() {
		return wire.Complete{}, wire.ErrEnding
	}
	select {
	case s.queue <- struct{}{}:
		defer func() { <-s.queue }()
	default:
		return wire.Complete{}, fmt.Errorf("%w: %d parts run or wait", wire.ErrBusy, cap(s.queue))
	}
	return s.get(t, stream)
}

func (s *service) get(t *flight.Ticket, stream flight.FlightService_DoGetServer) (c wire.Complete, err error) {
	part, err := scanplan.ParseTicket(t.GetTicket())
	if err != nil {
		return c, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}
	if err := s.fits(&part.Plan); err != nil {
		return c, err
	}
	bounded := s.bound(&part.Plan)
	op, err := resultcache.Open(s.cfg.ResultCache, s.store, part, operator.Options{Mem: s.cfg.Mem, FlushBytes: s.cfg.FlushBytes, Prefixes: s.cfg.Seek})
	if err != nil {
		return c, err
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	budget := wire.ParseBudget(md)
	account := s.cfg.Memory.Open(memory.Query)
	defer account.Close()
	ctx, cancel := context.WithCancel(memory.With(operator.WithBudget(stream.Context(), operator.NewBudget(budget.Points, budget.Bytes)), account))
	p := s.start(ctx, op, budget.Query)
	defer p.stop(cancel)
	beat := s.emptyBatch(part.Mode)
	defer beat.Release()
	w := flight.NewRecordWriter(stream, s.writing(part.Mode, beat.Schema())...)
	n, err := s.send(w, p, beat)
	if err != nil {
		return c, bounded(outOfMemory(err))
	}
	return wire.Complete{Batches: n, Stats: p.stats}, nil
}

// writing is how a part's batches are written. Those of a partial part are mostly
// names of series, which have much in common, so they are compressed. (zstd makes
// them smaller still, and the query a third slower.)
func (s *service) writing(mode scanplan.Mode, schema *arrow.Schema) []ipc.Option {
	opts := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(s.cfg.Mem)}
	if mode == scanplan.PartialAggregation {
		opts = append(opts, ipc.WithLZ4(), ipc.WithMinSpaceSavings(0.01))
	}
	return opts
}

// fits refuses plans for a table or layout that is not this server's.
func (s *service) fits(p *scanplan.Plan) error {
	if p.Table != s.cfg.Table {
		return fmt.Errorf("%w: plan reads table %q, this server %q", wire.ErrMisfit, p.Table, s.cfg.Table)
	}
	if got, want := layout(p.Schema), layout(s.cfg.Schema); got != want {
		return fmt.Errorf("%w: plan has %s, this server %s", wire.ErrMisfit, got, want)
	}
	return nil
}

// bound keeps a plan within the server's own memory. What exceeds that alone is
// no fault of the query: the gateway may have the memory. States that do are told
// as they are: series by series the query needs less, here too.
func (s *service) bound(p *scanplan.Plan) func(error) error {
	if p.MaxBytes > 0 && p.MaxBytes <= s.cfg.PartBytes {
		return func(err error) error { return err }
	}
	p.MaxBytes = s.cfg.PartBytes
	return func(err error) error {
		var limit *operator.LimitError
		if errors.As(err, &limit) && limit.What == operator.Memory {
			return fmt.Errorf("%w: the part needs more than this server's %d bytes", wire.ErrBusy, limit.Limit)
		}
		return err
	}
}

// outOfMemory says of a part that does not get the memory it needs that there is
// no room for it here, which is no fault of the query either.
func outOfMemory(err error) error {
	if memory.Refused(err) {
		return fmt.Errorf("%w: %w", wire.ErrBusy, err)
	}
	return err
}

// layout is what of a schema decides where things lie in a row key.
func layout(s encoding.Schema) string {
	salt := "no salt"
	if s.SaltWidth > 0 {
		salt = fmt.Sprintf("salt width %d, buckets %d", s.SaltWidth, s.SaltBuckets)
	}
	return fmt.Sprintf("%s, UID widths %d, %d, %d", salt, s.MetricWidth, s.TagKWidth, s.TagVWidth)
}

// send writes batches as they come and an empty one whenever nothing has been
// sent for a heartbeat, the first at once.
func (s *service) send(w *flight.Writer, p *pump, beat batch.Record) (batches int64, err error) {
	if err := w.Write(beat); err != nil {
		return 0, err
	}
	ticker := time.NewTicker(s.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case o, ok := <-p.out:
			if !ok {
				return batches, context.Canceled
			}
			if errors.Is(o.err, io.EOF) {
				return batches, nil
			}
			if o.err != nil {
				return batches, o.err
			}
			err := w.Write(o.record)
			o.record.Release()
			if err != nil {
				return batches, err
			}
			batches++
			ticker.Reset(s.cfg.Heartbeat)
		case <-ticker.C:
			if err := w.Write(beat); err != nil {
				return batches, err
			}
		}
	}
}

// emptyBatch is a heartbeat; it has the schema of the part's answer.
func (s *service) emptyBatch(mode scanplan.Mode) batch.Record {
	if mode == scanplan.PartialAggregation {
		w := batch.NewPartialWriter(s.cfg.Mem)
		defer w.Release()
		return w.Record()
	}
	w := batch.NewSeriesWriter(s.cfg.Mem)
	defer w.Release()
	return w.Record()
}
