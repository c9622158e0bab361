// Package wire is what gateway and pushdown server say to each other beside the
// batches: Arrow Flight over gRPC, with these conventions.
//
//	DoGet       ticket: scanplan.Part.MarshalTicket. Stream of series batches.
//	            A batch without rows is a heartbeat. The trailer
//	            downpour-complete ends a complete stream; without it the stream
//	            is worth nothing, whatever its status.
//	DoAction    hello: one result, Hello as JSON.
//	            drop-caches: no result; the server has forgotten the answers that
//	            it remembered.
//	errors      status code and text; the trailer downpour-error tells the kind.
//	metadata    authorization: Bearer TOKEN
//	            downpour-budget: what the part may read, and who asks for it; a
//	            server may ignore it
//	health      grpc.health.v1 Check, without a token
//	HTTP/1      GET /healthz, /readyz, /metrics on the same port
//
// All three of ours hold JSON in ASCII:
//
//	downpour-budget:   {"query":"6f1c…","points":1000000}
//	downpour-complete: {"batches":3,"stats":{"rows":6000,…}}
//	downpour-error:    {"kind":"limit","limit":1048576,"need":1049000}
package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"

	"downpour/encoding"
	"downpour/pushdown/operator"
)

// Names of the conventions above.
const (
	ActionHello      = "hello"
	ActionDropCaches = "drop-caches"
	TrailerComplete  = "downpour-complete"
	TrailerError     = "downpour-error"
	BudgetKey        = "downpour-budget"
	Authorization    = "authorization"
	Bearer           = "Bearer "
	FlightService    = "arrow.flight.protocol.FlightService"
)

// MaxMessage bounds a gRPC message on both sides. Batches hold about 4 MiB, but
// one row of one series may be larger.
const MaxMessage = 64 << 20

// MaxTicket bounds a part as it is sent: lists of tag values or of series. The
// gateway executes a larger one by itself.
const MaxTicket = 16 << 20

// Heartbeat is how often a server shows that it lives while it has nothing to
// send; a client gives up after several of them did not come.
const Heartbeat = 250 * time.Millisecond

// Hello is what a server tells about itself.
type Hello struct {
	Program string          `json:"program"` // "pushdown" and its version
	Plan    int             `json:"plan"`    // scanplan.Version
	Batch   string          `json:"batch"`   // batch.Version
	Beside  string          `json:"beside"`  // region server, host:port, or ""
	Table   string          `json:"table"`   // data table
	Schema  encoding.Schema `json:"schema"`
}

// Complete ends a stream: how many batches with rows it held, and what they cost.
type Complete struct {
	Batches int64          `json:"batches"`
	Stats   operator.Stats `json:"stats"`
}

// Trailer is the trailer of a complete stream.
func (c Complete) Trailer() metadata.MD {
	b, _ := json.Marshal(c) // numbers only
	return metadata.Pairs(TrailerComplete, string(b))
}

// ParseComplete reads the trailer of a stream that ended without an error, and
// compares it with the number of batches received.
func ParseComplete(trailer metadata.MD, batches int64) (c Complete, err error) {
	v := trailer.Get(TrailerComplete)
	if len(v) != 1 {
		return c, fmt.Errorf("%w: it ends without %s", ErrIncomplete, TrailerComplete)
	}
	if err := json.Unmarshal([]byte(v[0]), &c); err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrIncomplete, TrailerComplete, err)
	}
	if c.Batches != batches {
		return c, fmt.Errorf("%w: %d batches came, %d were sent", ErrIncomplete, batches, c.Batches)
	}
	return c, nil
}
