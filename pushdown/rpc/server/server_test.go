package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = 1356998400

var metric = operatortest.UID(1)

// peer is a server on loopback and a client of it; both count their memory.
type peer struct {
	t      *testing.T
	store  *operatortest.Store
	addr   string
	client *client.Client
	stop   context.CancelFunc
	served chan error
	mem    *memory.CheckedAllocator
}

func start(t *testing.T, m *operatortest.Store, change func(*server.Config, *client.Options)) *peer {
	t.Helper()
	return startOn(t, m, m, change)
}

// startOn is start with a reader around the store.
func startOn(t *testing.T, from store.Reader, m *operatortest.Store,
	change func(*server.Config, *client.Options)) *peer {
	t.Helper()
	p := &peer{t: t, store: m, served: make(chan error, 1), mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	cfg := server.Config{
		Program: "test",
		Beside:  "rs1:16020",
		Table:   operatortest.Table,
		Schema:  encoding.DefaultSchema(),
		Mem:     p.mem,
		Drain:   5 * time.Minute,
	}
	opts := client.Options{Mem: operatortest.Poisoned(p.mem), Stall: 5 * time.Minute}
	if change != nil {
		change(&cfg, &opts)
	}
	s, err := server.NewServer(cfg, from)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.served <- s.Serve(ctx, l) }()
	if p.client, err = client.New(p.addr, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

func (p *peer) end() {
	if err := p.client.Close(); err != nil {
		p.t.Errorf("client: %v", err)
	}
	p.stop()
	if err := <-p.served; err != nil {
		p.t.Errorf("server: %v", err)
	}
	if n := p.store.Open.Load(); n != 0 {
		p.t.Errorf("%d scanners are open", n)
	}
	if n := p.mem.CurrentAlloc(); n != 0 {
		p.t.Errorf("%d bytes leaked", n)
	}
}

func (p *peer) open(part *scanplan.Part) operator.Operator {
	return p.openWithin(part, operator.NewBudget(0, 0))
}

func (p *peer) openWithin(part *scanplan.Part, budget operator.Budget) operator.Operator {
	p.t.Helper()
	op, err := p.client.Open(part, budget)
	if err != nil {
		p.t.Fatal(err)
	}
	return operatortest.Checked(op, p.t.Errorf)
}

func points(seconds int64) *operatortest.Store {
	m := &operatortest.Store{BlockRows: 2}
	for i := range 5 {
		m.Load(encoding.DefaultSchema(), metric, operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base, base+3*3600, seconds, func(j int) float64 { return float64(i*1000 + j) }),
		})
	}
	return m
}

func part() *scanplan.Part {
	p := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+3*3600)
	return &scanplan.Part{Plan: p, Range: p.Ranges[0]}
}

// text is everything an operator yields, in order.
func text(op operator.Operator) (string, error) {
	var b strings.Builder
	err := operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		reader, err := batch.NewSeriesReader(r)
		if err != nil {
			return err
		}
		var s batch.Series
		for i := range reader.Len() {
			if err := reader.At(i, &s); err != nil {
				return err
			}
			fmt.Fprintf(&b, "%X %v %v %v %s\n", s.Span, s.Time, s.Value, s.Raw, s.Notes)
		}
		fmt.Fprintln(&b, "--")
		return nil
	})
	return b.String(), err
}

// A part that comes over the wire has the batches and the counts that its operator yields in
// process.
func TestDoGet(t *testing.T) {
	m := points(10)
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.FlushBytes = 10_000 })
	for _, d := range []*scanplan.Downsample{nil, {Interval: 60_000, Function: "avg", Fill: scanplan.FillNone}} {
		part := part()
		part.Plan.Downsample = d
		here, err := operator.New(m, part, operator.Options{FlushBytes: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		want, err := text(here)
		if err != nil {
			t.Fatal(err)
		}
		there := p.open(part)
		got, err := text(there)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 1000 {
			t.Errorf("%d characters: %s", len(got), diff)
		}
		if diff := cmp.Diff(here.Stats(), there.Stats(),
			cmpopts.IgnoreFields(operator.Stats{}, "ShippedBytes", "ScanTime", "DecodeTime", "EmitTime")); diff != "" {
			t.Errorf("stats: %s", diff)
		}
	}
}

func TestHello(t *testing.T) {
	p := start(t, points(100), nil)
	got, err := p.client.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Hello{
		Program: "test",
		Plan:    scanplan.Version,
		Batch:   batch.Version,
		Beside:  "rs1:16020",
		Table:   operatortest.Table,
		Schema:  encoding.DefaultSchema(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Errors keep their kind, and their text, over the wire.
func TestDoGet_errors(t *testing.T) {
	f := func(m *operatortest.Store, change func(*scanplan.Part), is error, want string) error {
		t.Helper()
		p := start(t, m, nil)
		part := part()
		if change != nil {
			change(part)
		}
		_, err := text(p.open(part))
		if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %v, %q", err, is, want)
		}
		return err
	}
	f(points(100), func(p *scanplan.Part) { p.Plan.Version = 2 }, operator.ErrBadPlan, "version 2, want 1")
	f(points(100), func(p *scanplan.Part) { p.Range.Start = p.Range.Start[:1] }, operator.ErrBadPlan, "part from 00")
	f(points(100), func(p *scanplan.Part) { p.Plan.Table = "other" }, wire.ErrMisfit, `table "other"`)
	f(points(100), func(p *scanplan.Part) { p.Plan.Schema.SaltWidth = 1 }, wire.ErrMisfit, "salt width 1, buckets 20")

	var limit *operator.LimitError
	if err := f(points(1), func(p *scanplan.Part) { p.Plan.MaxBytes = 5000 }, nil, "5000"); !errors.As(err, &limit) ||
		limit.Limit != 5000 {
		t.Errorf("got %v, want a limit error", err)
	}
	duplicate := points(100)
	duplicate.Cell(duplicate.Rows[0].Key, []byte{0x00, 0x01}, []byte{99, 1}, 2)
	var data *operator.DataError
	if err := f(duplicate, nil, nil, "Duplicate timestamp for key=[0, 0, 1, 80,"); !errors.As(err, &data) ||
		string(data.Row) != string(duplicate.Rows[0].Key) {
		t.Errorf("got %v, want a data error", err)
	}
	failing := func(err error) *operatortest.Store {
		m := points(100)
		m.Fail = func(_ context.Context, block int) error {
			if block == 2 {
				return fmt.Errorf("region is moving: %w", err)
			}
			return nil
		}
		return m
	}
	f(failing(store.ErrUnavailable), nil, store.ErrUnavailable, "region is moving")
	f(failing(store.ErrNoTable), nil, store.ErrNoTable, "region is moving")
	f(failing(io.ErrUnexpectedEOF), nil, wire.ErrServer, "Internal")
	panics := points(100)
	panics.Fail = func(context.Context, int) error { panic("boom") }
	var fault *operator.PanicError
	if err := f(panics, nil, nil, "boom"); !errors.As(err, &fault) || fault.Value != "boom" {
		t.Errorf("got %v, want a panic error", err)
	}
}

// always returns what gives a token that does not change.
func always(token string) func() string { return func() string { return token } }

func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	allow := func(got string) bool { return got == token }
	f := func(sent string, ok bool) {
		t.Helper()
		p := start(t, points(100), func(c *server.Config, o *client.Options) { c.Allow, o.Token = allow, always(sent) })
		_, err := text(p.open(part()))
		_, helloErr := p.client.Hello(t.Context())
		if ok != (err == nil) || ok != (helloErr == nil) {
			t.Errorf("token %q: part %v, hello %v, want both accepted or both refused", sent, err, helloErr)
		}
		if !ok && (!errors.Is(err, wire.ErrServer) || !strings.Contains(err.Error(), "authorization")) {
			t.Errorf("token %q: %v, want an error about the authorization", sent, err)
		}
	}
	f(token, true)
	f("", false)
	f("0123456789abcdeF", false)
}

// A client that goes away ends the scan.
func TestDoGet_cancel(t *testing.T) {
	m := points(100)
	scanning, ended := make(chan struct{}), make(chan struct{})
	m.Fail = func(ctx context.Context, block int) error {
		if block == 1 {
			close(scanning)
			<-ctx.Done()
			close(ended)
		}
		return ctx.Err()
	}
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.FlushBytes = 1; c.Heartbeat = time.Millisecond })
	op := p.open(part())
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("client is gone")
	go func() { <-scanning; cancel(gone) }()
	var err error
	for err == nil {
		var r batch.Record
		if r, err = op.Next(ctx); err == nil {
			r.Release()
		}
	}
	if !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	<-ended
	op.Close()
}

// While the store is slow, heartbeats keep the client waiting. If nothing comes, no heartbeat
// either, it gives up.
func TestDoGet_stall(t *testing.T) {
	m := points(100)
	m.Fail = func(ctx context.Context, block int) error {
		if block == 1 {
			select {
			case <-ctx.Done():
			case <-time.After(11 * time.Second):
			}
		}
		return ctx.Err()
	}
	p := start(t, m, func(c *server.Config, o *client.Options) {
		c.Heartbeat, o.Stall = 10*time.Millisecond, 10*time.Second
	})
	if _, err := text(p.open(part())); err != nil {
		t.Errorf("with heartbeats: %v", err)
	}
	p = start(t, m, func(c *server.Config, o *client.Options) { c.Heartbeat, o.Stall = time.Hour, 50*time.Millisecond })
	if _, err := text(p.open(part())); !errors.Is(err, wire.ErrStalled) {
		t.Errorf("without heartbeats: %v, want %v", err, wire.ErrStalled)
	}
}

// The server executes only as many parts at once as it has slots. The others wait and are executed
// later.
func TestDoGet_slots(t *testing.T) {
	m := points(100)
	var mu sync.Mutex
	running, most := 0, 0
	m.Fail = func(_ context.Context, block int) error {
		mu.Lock()
		defer mu.Unlock()
		if block == 0 {
			running++
			most = max(most, running)
		}
		if block == 3 {
			running--
		}
		return nil
	}
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.Parts = 2 })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := text(p.open(part())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most > 2 {
		t.Errorf("%d parts at once, want at most 2", most)
	}
}

// relay passes bytes between clients and a server. It cuts each connection after n bytes of the
// server's.
func relay(t *testing.T, to string, n int64) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pass(in, to, n) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func pass(in net.Conn, to string, n int64) {
	out, err := net.Dial("tcp", to)
	if err != nil {
		in.Close()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(out, in); out.Close() })
	_, _ = io.CopyN(in, out, n)
	in.Close()
	out.Close()
	wg.Wait()
}

// A stream that is cut anywhere is an error, never a short answer.
func TestDoGet_cutAnywhere(t *testing.T) {
	p := start(t, points(60), func(c *server.Config, _ *client.Options) { c.FlushBytes = 2000 })
	whole, err := text(p.open(part()))
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for n := int64(0); ; n += 1499 {
		c, err := client.New(relay(t, p.addr, n), client.Options{Mem: p.mem})
		if err != nil {
			t.Fatal(err)
		}
		op, err := c.Open(part(), operator.NewBudget(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		got, err := text(operatortest.Checked(op, t.Errorf))
		c.Close()
		if err == nil {
			if got != whole {
				t.Fatalf("cut after %d bytes: a short answer without an error", n)
			}
			break
		}
		if !errors.Is(err, wire.ErrServer) {
			t.Fatalf("cut after %d bytes: %v, want ErrServer", n, err)
		}
		cut++
	}
	if cut < 10 {
		t.Errorf("only %d cuts hit the stream, want at least 10", cut)
	}
}

// silent is a Flight server that ends its streams without an error, but sends no end mark.
type silent struct{ flight.BaseFlightServer }

func (*silent) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	w := flight.NewRecordWriter(stream, ipc.WithSchema(batch.NarrowSchema()))
	b := batch.NewSeriesWriter(memory.DefaultAllocator)
	defer b.Release()
	b.Append(&batch.Series{Span: []byte{1}})
	r := b.Record()
	defer r.Release()
	narrow := batch.Narrow(r, memory.DefaultAllocator)
	defer narrow.Release()
	return w.Write(narrow)
}

// A stream that ends without an error, but also without the end mark, is an error.
//
//fault:end-of-stream-error-ignored err != nil => err != nil && false
func TestClient_incomplete(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	flight.RegisterFlightServiceServer(g, &silent{})
	done := make(chan error)
	go func() { done <- g.Serve(l) }()
	c, err := client.New(l.Addr().String(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	op, err := c.Open(part(), operator.NewBudget(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text(operatortest.Checked(op, t.Errorf)); !errors.Is(err, wire.ErrIncomplete) {
		t.Errorf("got %v, want %v", err, wire.ErrIncomplete)
	}
	c.Close()
	g.Stop()
	<-done
}

// A server that ends finishes its parts and takes no new ones.
func TestServe_drain(t *testing.T) {
	m := points(100)
	scanning, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.Fail = func(_ context.Context, block int) error {
		if block == 1 {
			once.Do(func() { close(scanning) })
			<-proceed
		}
		return nil
	}
	p := start(t, m, nil)
	op := p.open(part())
	result := make(chan error)
	go func() {
		_, err := text(op)
		result <- err
	}()
	<-scanning
	p.stop()
	late, err := client.New(p.addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for { // until the listener is closed
		if _, err := late.Hello(t.Context()); err != nil {
			break
		}
	}
	late.Close()
	close(proceed)
	if err := <-result; err != nil {
		t.Errorf("the running part: %v", err)
	}
}

// Any Flight client can list the server's actions. Unknown actions and tickets that cannot be
// parsed are refused with a status.
func TestFlight_strangers(t *testing.T) {
	p := start(t, points(100), nil)
	conn, err := grpc.NewClient("passthrough:///"+p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := flight.NewFlightServiceClient(conn)
	list, err := c.ListActions(t.Context(), &flight.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		a, err := list.Recv()
		if err != nil {
			break
		}
		names = append(names, a.Type)
	}
	if !slices.Equal(names, []string{wire.ActionHello, wire.ActionDropCaches}) {
		t.Errorf("actions %q, want hello and drop-caches", names)
	}
	do, err := c.DoAction(t.Context(), &flight.Action{Type: "drop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("action drop: %v, want InvalidArgument", err)
	}
	for _, ticket := range []string{"", "{", `{"Plan":{"Version":1,"New":true}}`} {
		get, err := c.DoGet(t.Context(), &flight.Ticket{Ticket: []byte(ticket)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("ticket %q: %v, want InvalidArgument", ticket, err)
		}
	}
}

func TestNewServer_config(t *testing.T) {
	if _, err := server.NewServer(server.Config{Schema: encoding.DefaultSchema()}, nil); err == nil {
		t.Error("no table: accepted")
	}
	if _, err := server.NewServer(server.Config{Table: "tsdb"}, nil); err == nil {
		t.Error("no schema: accepted")
	}
}

// A server stops reading where the budget ends, though the gateway learns only at the end of a part
// what was read. The error names the whole budget. The part has 54,000 points.
func TestBudget(t *testing.T) {
	m := points(1)
	blocks := 0
	m.Fail = func(_ context.Context, block int) error { blocks = max(blocks, block); return nil }
	p := start(t, m, nil)
	f := func(points, bytes, spent int64, want *operator.LimitError) {
		t.Helper()
		b := operator.NewBudget(points, bytes)
		if err := b.Spend(t.Context(), spent, 0); err != nil {
			t.Fatal(err)
		}
		op := p.openWithin(part(), b)
		err := operatortest.Drain(t.Context(), op, func(batch.Record) error { return nil })
		var limit *operator.LimitError
		if want == nil {
			if left, _ := b.Left(); err != nil || points > 0 && left != max(1, points-spent-54_000) {
				t.Errorf("budget of %d points: %v, %d left, want no error and what the part has not used", points, err,
					left)
			}
			return
		}
		if !errors.As(err, &limit) || limit.What != want.What || limit.Limit != want.Limit ||
			limit.Need <= limit.Limit {
			t.Errorf("%d points, %d bytes: got %v, want %v", points, bytes, err, want)
		}
	}
	f(0, 0, 0, nil)
	f(54_000, 0, 0, nil)
	f(60_000, 1<<40, 6000, nil)
	all := blocks
	blocks = 0
	f(20_000, 0, 10_000, &operator.LimitError{What: operator.Points, Limit: 20_000})
	f(0, 100, 0, &operator.LimitError{What: operator.Bytes, Limit: 100})
	if blocks == 0 || blocks >= all {
		t.Errorf("%d blocks were read where the budget was too small, want some, and fewer than all %d", blocks, all)
	}
}
