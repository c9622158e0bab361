package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/wire"
)

// frozenForm is what a gateway and a pushdown server of the release before, 0.1.0, have said to each other about a
// part of tableBefore. It was recorded with the programs of that release, and never changes. testdata/before has one
// of each form that the release had.
type frozenForm struct {
	Ticket   string
	Messages []struct{ Header, Body []byte }
	Complete string
}

// partsBefore are the parts of the frozen forms.
var partsBefore = map[string]func(p *scanplan.Part){
	"points": func(*scanplan.Part) {},
	"rate":   func(p *scanplan.Part) { p.Plan.Rate = &scanplan.Rate{Counter: true, CounterMax: 1000} },
	"buckets": func(p *scanplan.Part) {
		p.Plan.Downsample = &scanplan.Downsample{Interval: 420_000, Function: "avg", Fill: "none"}
	},
	"partial": func(p *scanplan.Part) {
		p.Plan.Downsample = &scanplan.Downsample{
			Interval: 600_000, Count: 10, Unit: "m", Function: "avg", Fill: "none",
		}
		p.Plan.GroupBy = []encoding.UID{operatortest.UID(1)}
		p.Range.Stop = encoding.DefaultSchema().AppendRangeKey(nil, 0, metric, base+3600)
		p.Mode = scanplan.PartialAggregation
	},
}

func partBefore(change func(*scanplan.Part)) *scanplan.Part {
	plan := operatortest.Plan(encoding.DefaultSchema(), metric, base, base+2*3600)
	p := &scanplan.Part{Plan: plan, Range: plan.Ranges[0]}
	change(p)
	return p
}

func tableBefore() *operatortest.Store {
	m := &operatortest.Store{BlockRows: 2}
	for i := range 3 {
		m.Load(encoding.DefaultSchema(), metric, operatortest.Series{
			Tags: []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base+int64(i)*100, base+2*3600, 300,
				func(j int) float64 { return float64(i*1000+j) / 8 }),
		})
	}
	return m
}

func fileBefore(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "before", name+".json"))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// asLiar is a server of the release before, which answers its part alone.
func (f frozenForm) asLiar() *liar {
	l := &liar{ticket: f.Ticket, trailer: metadata.Pairs(wire.TrailerComplete, f.Complete)}
	for _, m := range f.Messages {
		l.messages = append(l.messages, &flight.FlightData{DataHeader: m.Header, DataBody: m.Body})
	}
	return l
}

// dial returns a Flight client that sends no metadata, as a gateway of the release before.
func dial(t *testing.T, addr string) flight.FlightServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return flight.NewFlightServiceClient(conn)
}

// values are the rows of a part's batches.
func values(op operator.Operator) (string, error) {
	var b strings.Builder
	err := operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		for i, c := range r.Columns() {
			fmt.Fprintf(&b, "%s %s\n", r.ColumnName(i), c)
		}
		return nil
	})
	return b.String(), err
}

// here are the rows of a part as this process answers it.
func here(t *testing.T, part *scanplan.Part) string {
	t.Helper()
	op, err := operator.New(tableBefore(), part, operator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := values(op)
	if err != nil || len(text) < 100 {
		t.Fatalf("%q, error %v", text, err)
	}
	return text
}

// A gateway of the release before gets from this server what it got from its own: the same hello, and streams that
// begin with the bytes that it wants, with the rows of this process. The schema says so to Arrow's reader, too.
//
//fault:another-version-in-the-hello wire.BatchVersion(md), => wire.BatchVersion(md) + "0",
//fault:new-batches-for-all wire.BatchVersion(md) == batch.Version { => true {
func TestGatewayBefore(t *testing.T) {
	p := start(t, tableBefore(), nil)
	c := dial(t, p.addr)
	actions, err := c.DoAction(t.Context(), &flight.Action{Type: wire.ActionHello})
	if err != nil {
		t.Fatal(err)
	}
	hello, err := actions.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	fileBefore(t, "hello", &want)
	if err := json.Unmarshal(hello.GetBody(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for name, change := range partsBefore {
		t.Run(name, func(t *testing.T) {
			var f frozenForm
			fileBefore(t, name, &f)
			stream, err := c.DoGet(t.Context(), &flight.Ticket{Ticket: []byte(f.Ticket)})
			if err != nil {
				t.Fatal(err)
			}
			first := &firstHeader{FlightService_DoGetClient: stream}
			r, err := flight.NewRecordReader(first, ipc.WithAllocator(p.mem))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if !bytes.Equal(first.header, f.Messages[0].Header) {
				t.Errorf("the stream begins with\n%q, want\n%q", first.header, f.Messages[0].Header)
			}
			var b strings.Builder
			for r.Next() {
				for i, c := range r.Record().Columns() {
					if c.Len() > 0 {
						fmt.Fprintf(&b, "%s %s\n", r.Record().ColumnName(i), c)
					}
				}
			}
			if diff := cmp.Diff(here(t, partBefore(change)), b.String()); diff != "" || r.Err() != nil {
				t.Errorf("error %v, %s", r.Err(), diff)
			}
			if _, err := wire.ParseComplete(stream.Trailer(), 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// firstHeader keeps the header of the first message.
type firstHeader struct {
	flight.FlightService_DoGetClient
	header []byte
}

func (f *firstHeader) Recv() (*flight.FlightData, error) {
	m, err := f.FlightService_DoGetClient.Recv()
	if f.header == nil {
		f.header = bytes.Clone(m.GetDataHeader())
	}
	return m, err
}

// A gateway that names a version gets batches of that one: the version before, or else this one. Batches that the
// version before does not have are refused: no such gateway wants them.
//
//fault:new-batches-in-the-version-before schema == nil { => false {
func TestBatchVersions(t *testing.T) {
	p := start(t, tableBefore(), nil)
	c := dial(t, p.addr)
	points := partBefore(partsBefore["points"])
	aligned := partBefore(func(p *scanplan.Part) { p.Mode = scanplan.Aligned })
	for _, v := range []struct{ sent, want, wantAligned string }{
		{"", batch.Previous, ""},
		{batch.Previous, batch.Previous, ""},
		{batch.Version, batch.Version, batch.Version},
		{"4", batch.Version, batch.Version}, // of the release after this one
	} {
		for part, want := range map[*scanplan.Part]string{points: v.want, aligned: v.wantAligned} {
			ctx := t.Context()
			if v.sent != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, wire.BatchKey, v.sent)
			}
			ticket, err := part.MarshalTicket()
			if err != nil {
				t.Fatal(err)
			}
			stream, err := c.DoGet(ctx, &flight.Ticket{Ticket: ticket})
			if err != nil {
				t.Fatal(err)
			}
			r, err := flight.NewRecordReader(stream, ipc.WithAllocator(p.mem))
			if err != nil {
				if err := wire.Error(err, stream.Trailer()); want != "" || !errors.Is(err, operator.ErrBadPlan) {
					t.Errorf("sent %q, mode %s: %v, want version %q", v.sent, part.Mode, err, want)
				}
				continue
			}
			m := r.Schema().Metadata()
			if got := m.Values()[m.FindKey("downpour.batch")]; got != want {
				t.Errorf("sent %q, mode %s: version %q, want %q", v.sent, part.Mode, got, want)
			}
			for r.Next() {
			}
			r.Release()
		}
	}
}

// A server of the release before answers this gateway: it is sent the bytes that it was sent by its own, its batches
// are read as if this process had made them, and its hello is understood.
//
//fault:batches-of-the-version-before-unread before != nil && => false &&
func TestServerBefore(t *testing.T) {
	for name, change := range partsBefore {
		t.Run(name, func(t *testing.T) {
			var f frozenForm
			fileBefore(t, name, &f)
			c := serveLiar(t, f.asLiar())
			part := partBefore(change)
			op, err := c.Open(part, operator.NewBudget(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			got, err := values(op)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(here(t, part), got); diff != "" {
				t.Error(diff)
			}
			if s := op.Stats(); s.Points == 0 || s.Rows == 0 {
				t.Errorf("stats %+v, want what the server has counted", s)
			}
		})
	}
	// What begins as another form does is refused: a plan of points is not answered with partial aggregates.
	var f frozenForm
	fileBefore(t, "partial", &f)
	l := f.asLiar()
	l.ticket = ""
	op, err := serveLiar(t, l).Open(partBefore(partsBefore["points"]), operator.NewBudget(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values(op); !errors.Is(err, wire.ErrServer) {
		t.Errorf("partial aggregates in place of points: %v, want %v", err, wire.ErrServer)
	}
}

// serveLiar starts a liar and returns a client of it.
func serveLiar(t *testing.T, l *liar) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	flight.RegisterFlightServiceServer(s, l)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	c, err := client.New(listener.Addr().String(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}
