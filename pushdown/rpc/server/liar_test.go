package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/rpc/wire"
)

// liar is a Flight server that answers every part with the given messages and trailer.
type liar struct {
	flight.BaseFlightServer
	messages []*flight.FlightData
	trailer  metadata.MD
	ticket   string // the only one that it answers; "" for any
}

func (l *liar) DoGet(t *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	if got := string(t.GetTicket()); l.ticket != "" && got != l.ticket {
		return fmt.Errorf("ticket %s, want %s", got, l.ticket)
	}
	for _, m := range l.messages {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	stream.SetTrailer(l.trailer)
	return nil
}

// record returns a liar that sends what the server sends for a part, messages and trailer.
func record(t *testing.T, addr string, part *scanplan.Part) *liar {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ticket, err := part.MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := flight.NewFlightServiceClient(conn).DoGet(t.Context(), &flight.Ticket{Ticket: ticket})
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{}
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			l.trailer = stream.Trailer()
			return l
		}
		if err != nil {
			t.Fatal(err)
		}
		l.messages = append(l.messages, m)
	}
}

// spoil returns the messages with one of them damaged: cut, left out, sent twice, made longer, or
// with other bytes or bits.
func spoil(rng *rand.Rand, messages []*flight.FlightData) []*flight.FlightData {
	out := make([]*flight.FlightData, len(messages))
	for i, m := range messages {
		out[i] = proto.Clone(m).(*flight.FlightData)
	}
	i := rng.IntN(len(out))
	field := &out[i].DataHeader
	if rng.IntN(2) == 0 && len(out[i].DataBody) > 0 {
		field = &out[i].DataBody
	}
	b := *field
	switch rng.IntN(6) {
	case 0:
		*field = b[:rng.IntN(len(b)+1)]
	case 1:
		return append(out[:i], out[i+1:]...)
	case 2:
		return append(out[:i:i], append([]*flight.FlightData{out[i]}, out[i:]...)...)
	case 3:
		*field = append(b, make([]byte, rng.IntN(1000))...)
	case 4:
		for k := range min(8, len(b)) { // a length, or an offset, of nearly 2^63
			b[(rng.IntN(len(b))&^7+k)%len(b)] = 0xFF
		}
	default:
		for range 1 + rng.IntN(8) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
	}
	return out
}

// Whatever a server sends in place of batches, the client neither panics nor
// hangs nor takes much memory, and a stream without one of its batches is an error.
//
//fault:borders-in-a-message-believed || => &&
func TestClient_badBatches(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := start(t, points(60), func(c *server.Config, _ *client.Options) { c.FlushBytes = 2000 })
	whole := record(t, p.addr, part())
	l := &liar{trailer: whole.trailer}
	c := serveLiar(t, l)
	l.messages = whole.messages
	wholeRows, err := readAll(t.Context(), c)
	if err != nil || wholeRows == 0 {
		t.Fatalf("%d rows, %v", wholeRows, err)
	}
	refused := 0
	for i := range 400 {
		l.messages = spoil(rng, whole.messages)
		rows, err := readAll(t.Context(), c)
		if err != nil {
			refused++
		} else if len(l.messages) < len(whole.messages) && rows != wholeRows {
			t.Errorf("try %d: a message is missing, and the client is content with %d rows, want %d", i, rows,
				wholeRows)
		}
		if errors.Is(err, errUnsound) {
			t.Errorf("try %d: %v", i, err)
		}
	}
	if refused < 100 {
		t.Errorf("%d of 400 spoilt streams are refused, want at least 100", refused)
	}
}

// errUnsound marks what the client should have refused before it did harm.
var errUnsound = errors.New("a stream that does harm")

// readAll reads a part to its end, as a gateway does, and counts its rows.
func readAll(ctx context.Context, c *client.Client) (rows int64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer func() {
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
			err = fmt.Errorf("%w: %d bytes allocated", errUnsound, n)
		}
	}()
	op, err := c.Open(part(), operator.NewBudget(0, 0))
	if err != nil {
		return 0, err
	}
	defer op.Close()
	for {
		r, err := op.Next(ctx)
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			if !errors.Is(err, wire.ErrServer) && !errors.Is(err, wire.ErrIncomplete) {
				return rows, fmt.Errorf("%w: an error of no kind: %w", errUnsound, err)
			}
			return rows, err
		}
		rows += r.NumRows()
		err = decode(r)
		r.Release()
		if err != nil {
			return rows, err
		}
	}
}

// decode reads a batch as the merge does.
func decode(r batch.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errUnsound, p)
		}
	}()
	reader, err := batch.NewSeriesReader(r)
	if err != nil {
		return err
	}
	var s batch.Series
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			return err
		}
	}
	return nil
}
