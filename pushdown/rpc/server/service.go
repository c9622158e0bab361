package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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
	cfg   Config
	store store.Reader
	slots *fairSlots
	queue chan struct{} // holds a value for each part that runs or waits
	drain chan struct{} // closed when the server is ending
	count *counters
}

func newService(cfg Config, st store.Reader) *service {
	if cfg.Mem == nil {
		cfg.Mem = arrowmemory.DefaultAllocator
	}
	count := newCounters(cfg.ResultCache, cfg.Memory)
	count.registry.MustRegister(cfg.Metrics...)
	return &service{
		cfg: cfg, store: st, count: count,
		slots: newFairSlots(cfg.Parts), queue: make(chan struct{}, cfg.Parts+cfg.Waiting), drain: make(chan struct{}),
	}
}

// ending reports whether the server refuses new parts.
func (s *service) ending() bool {
	select {
	case <-s.drain:
		return true
	default:
		return false
	}
}

// startEnding has new parts refused from now on, and those that wait for a slot.
func (s *service) startEnding() {
	s.count.ending.Set(1)
	close(s.drain)
}

// ListActions lists the actions of DoAction.
func (s *service) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	for _, a := range []*flight.ActionType{
		{Type: wire.ActionHello, Description: "what this server is and where it runs, as JSON"},
		{Type: wire.ActionDropCaches, Description: "drop the cached answers"},
	} {
		if err := stream.Send(a); err != nil {
			return err
		}
	}
	return nil
}

// DoAction executes an action: hello or drop-caches.
func (s *service) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	// A gateway checks the server's health by hello: it must no longer use this one.
	if s.ending() {
		return status.Error(codes.Unavailable, wire.ErrEnding.Error())
	}

	switch a.Type {
	case wire.ActionHello:
		return s.hello(stream)
	case wire.ActionDropCaches:
		s.cfg.ResultCache.Drop()
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "action %q, want %s or %s", a.Type, wire.ActionHello,
		wire.ActionDropCaches)
}

// hello sends what this server is.
func (s *service) hello(stream flight.FlightService_DoActionServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	body, err := json.Marshal(wire.Hello{
		Program: s.cfg.Program, Plan: scanplan.Version,
		Batch:  wire.BatchVersion(md), //fault:another-version-in-the-hello TestGatewayBefore
		Beside: s.cfg.Beside, Table: s.cfg.Table, Rollups: s.cfg.Rollups, Schema: s.cfg.Schema,
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
	s.count.countPart(time.Since(began), complete.Stats, err)
	if err != nil {
		st, trailer := wire.Status(err)
		stream.SetTrailer(trailer)
		return st.Err()
	}
	stream.SetTrailer(complete.Trailer())
	return nil
}

// executePart executes a part, unless the server is ending or too many parts wait.
func (s *service) executePart(t *flight.Ticket, stream flight.FlightService_DoGetServer) (_ wire.Complete, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = operator.Recovered(v)
		}
		var fault *operator.PanicError
		if errors.As(err, &fault) {
			s.cfg.Log.Error("a part panicked, which is a fault of the program", "panic", fault.Value, "part",
				string(t.GetTicket()), "stack", fault.Stack)
		}
	}()
	if s.ending() {
		return wire.Complete{}, wire.ErrEnding
	}

	// A full queue refuses immediately: another server can begin sooner.
	select {
	case s.queue <- struct{}{}:
		defer func() { <-s.queue }()
	default:
		return wire.Complete{}, fmt.Errorf("%w: %d parts run or wait", wire.ErrBusy, cap(s.queue))
	}
	return s.streamPart(t, stream)
}

// streamPart executes a part and sends its batches.
func (s *service) streamPart(t *flight.Ticket, stream flight.FlightService_DoGetServer) (c wire.Complete, err error) {
	part, err := scanplan.ParseTicket(t.GetTicket())
	if err != nil {
		return c, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}
	if err := s.checkLayout(&part.Plan); err != nil {
		return c, err
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	heartbeat := s.emptyBatch(part)
	defer heartbeat.Release()
	schema, err := schemaFor(md, heartbeat)
	if err != nil {
		return c, err
	}

	// The part's reads and memory are bounded: by the query's budget, which comes with the call,
	// and by this process's memory.
	budget := wire.ParseBudget(md)
	// Before the operator is opened, which takes its bound from the plan.
	limitError := s.limitMemory(&part.Plan)
	op, err := resultcache.Open(s.cfg.ResultCache, s.store, part,
		operator.Options{
			Mem:        s.cfg.Mem,
			FlushBytes: s.cfg.FlushBytes,
			Prefixes:   s.cfg.Seek,
			Budget:     operator.NewBudget(budget.Points, budget.Bytes),
		})
	if err != nil {
		return c, err
	}

	account := s.cfg.Memory.Open(memory.Query)
	defer account.Close()
	ctx, cancel := context.WithCancel(memory.With(stream.Context(), account))

	p := s.startPump(ctx, op, budget.Query)
	// Before the account is closed: until the pump has stopped, its operator holds memory.
	defer p.stop(cancel)

	w := flight.NewRecordWriter(stream, s.writerOptions(part.Mode, schema)...)
	write := w.Write
	if schema == batch.NarrowSchema() {
		write = func(r batch.Record) error {
			r = batch.Narrow(r, s.cfg.Mem)
			defer r.Release()
			return w.Write(r)
		}
	}
	n, err := s.send(write, p, heartbeat)
	if err != nil {
		return c, limitError(memoryError(err))
	}
	return wire.Complete{Batches: n, Stats: p.stats}, nil
}

// schemaFor returns the schema of a part's stream to the gateway of a call, whose batches are like one of ours. Series
// are sent as narrow batches. To a gateway of the release before, the schema's version is all that may differ, and only
// the beginning of a stream has it.
func schemaFor(md metadata.MD, like batch.Record) (*arrow.Schema, error) {
	schema := like.Schema()
	if wire.BatchVersion(md) == batch.Version { //fault:new-batches-for-all TestGatewayBefore
		if schema == batch.SeriesSchema() {
			schema = batch.NarrowSchema()
		}
		return schema, nil
	}
	if schema = batch.AsPrevious(schema); schema == nil { //fault:new-batches-in-the-version-before TestBatchVersions
		return nil, fmt.Errorf("%w: the part is answered with batches that version %s does not have",
			operator.ErrBadPlan, batch.Previous)
	}
	return schema, nil
}

// writerOptions returns how a part's batches are written. Batches of partial
// aggregates are mostly names of series, which have much in common, so they are
// compressed. (With zstd they are smaller still, and the query is a third slower.)
func (s *service) writerOptions(mode scanplan.Mode, schema *arrow.Schema) []ipc.Option {
	opts := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(s.cfg.Mem)}
	if mode != scanplan.PerSeries {
		opts = append(opts, ipc.WithLZ4(), ipc.WithMinSpaceSavings(0.01))
	}
	return opts
}

// checkLayout returns an error if a plan is for a table or layout that is not this
// server's: with the wrong layout rows are read wrongly, and no error shows it.
func (s *service) checkLayout(p *scanplan.Plan) error {
	if p.Table != s.cfg.Table && !slices.Contains(s.cfg.Rollups, p.Table) {
		return fmt.Errorf("%w: plan reads table %q, this server %q", wire.ErrMisfit, p.Table, s.cfg.Table)
	}
	if got, want := layout(p.Schema), layout(s.cfg.Schema); got != want {
		return fmt.Errorf("%w: plan has %s, this server %s", wire.ErrMisfit, got, want)
	}
	return nil
}

// limitMemory lowers a plan's memory bound to that of this server's parts. It returns
// a function for the errors of the part. If the plan allows more than the server,
// a part that needs too much memory is no fault of the query: the error becomes
// wire.ErrBusy, because the gateway itself may have the memory. Too many partial
// aggregates stay an error of the query: with per-series aggregation it needs less
// memory, on this server too.
func (s *service) limitMemory(p *scanplan.Plan) func(error) error {
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

// memoryError returns wire.ErrBusy for a part that does not get the memory that it
// needs from the server's pool: that is no fault of the query either.
func memoryError(err error) error {
	if memory.Refused(err) {
		return fmt.Errorf("%w: %w", wire.ErrBusy, err)
	}
	return err
}

// layout describes a schema's layout of row keys.
func layout(s encoding.Schema) string {
	salt := "no salt"
	if s.SaltWidth > 0 {
		salt = fmt.Sprintf("salt width %d, buckets %d", s.SaltWidth, s.SaltBuckets)
	}
	return fmt.Sprintf("%s, UID widths %d, %d, %d", salt, s.MetricWidth, s.TagKWidth, s.TagVWidth)
}

// send writes batches as they come, and a heartbeat whenever nothing was sent for
// Config.Heartbeat. The first one is sent immediately, because it carries the schema,
// with which each stream begins. It returns the number of batches without heartbeats.
func (s *service) send(write func(batch.Record) error, p *pump, heartbeat batch.Record) (batches int64, err error) {
	if err := write(heartbeat); err != nil {
		return 0, err
	}

	ticker := time.NewTicker(s.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case o, ok := <-p.out:
			if !ok { // the pump ends without an outcome only if ctx has ended
				return batches, context.Canceled
			}
			if o.err == io.EOF {
				return batches, nil
			}
			if o.err != nil {
				return batches, o.err
			}

			err := write(o.record)
			o.record.Release()
			if err != nil {
				return batches, err
			}
			batches++
			ticker.Reset(s.cfg.Heartbeat)
		case <-ticker.C:
			if err := write(heartbeat); err != nil {
				return batches, err
			}
		}
	}
}

// emptyBatch returns a heartbeat: a batch without rows, with the schema of the part's
// answer. The caller releases it.
func (s *service) emptyBatch(part *scanplan.Part) batch.Record {
	// Before the mode: parts of histograms answer in the same form in each.
	if part.Plan.Histograms != nil {
		w := batch.NewHistogramWriter(s.cfg.Mem)
		defer w.Release()
		return w.Record()
	}

	if part.Mode.IsPartial() {
		w := batch.NewPartialWriter(s.cfg.Mem)
		defer w.Release()
		return w.Record()
	}

	if part.Mode == scanplan.Aligned {
		w := batch.NewAlignedWriter(s.cfg.Mem)
		defer w.Release()
		return w.Record()
	}

	w := batch.NewSeriesWriter(s.cfg.Mem)
	defer w.Release()
	return w.Record()
}
