// Package wire has the conventions between gateway and pushdown server, which speak
// Arrow Flight over gRPC:
//
//	DoGet       ticket: scanplan.Part.MarshalTicket. Stream of series batches.
//	            A batch without rows is a heartbeat. The trailer
//	            downpour-complete ends a complete stream. Without it the stream
//	            must be thrown away, whatever its status.
//	DoAction    hello: one result, Hello as JSON.
//	            drop-caches: no result; the server has dropped its cached answers.
//	errors      status code and text; the trailer downpour-error has the kind.
//	metadata    authorization: Bearer TOKEN
//	            downpour-budget: what the part may read, and which query it
//	            belongs to; a server may ignore it
//	            downpour-batch: the version of batches that the gateway reads,
//	            in addition to the one before it; see BatchVersion
//	health      grpc.health.v1 Check, without a token
//	HTTP/1      GET /healthz, /readyz, /metrics on the same port
//	proof       before any of it, on connections to a server that was found: see package proof
//
// The keys that begin with downpour- hold JSON in ASCII:
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
	"downpour/encoding/batch"
	"downpour/pushdown/operator"
)

// Names of the conventions above.
const (
	ActionHello      = "hello"
	ActionDropCaches = "drop-caches"
	TrailerComplete  = "downpour-complete"
	TrailerError     = "downpour-error"
	BudgetKey        = "downpour-budget"
	BatchKey         = "downpour-batch"
	Authorization    = "authorization"
	Bearer           = "Bearer "
	FlightService    = "arrow.flight.protocol.FlightService"
)

// MaxMessage bounds a gRPC message on both sides. Batches hold about 4 MiB, but
// one row of one series may be larger.
const MaxMessage = 64 << 20

// MaxTicket bounds the wire form of a part, which may hold long lists of tag values
// or of series. The gateway executes a larger part itself.
const MaxTicket = 16 << 20

// Heartbeat is how often a server sends an empty batch while it has nothing else to
// send. A client gives up when several of them are missing.
const Heartbeat = 250 * time.Millisecond

// Hello is a server's description of itself.
type Hello struct {
	Program string `json:"program"` // "pushdown" and its version
	Plan    int    `json:"plan"`    // scanplan.Version
	Batch   string `json:"batch"`   // version of the batches that it sends to who asks
	Beside  string `json:"beside"`  // region server, host:port, or ""
	Table   string `json:"table"`   // data table
	// Rollups are the tables of rollups and pre-aggregates that the server reads, too.
	Rollups []string        `json:"rollups,omitempty"`
	Schema  encoding.Schema `json:"schema"`
}

// BatchVersion returns the version of batches that a server sends to the gateway of a call, in its hello and in parts:
// batch.Previous to one of the release before, which names that version or none, and batch.Version to all others. One
// that does not read it finds out by the hello.
func BatchVersion(md metadata.MD) string {
	if v := md.Get(BatchKey); len(v) == 0 || v[0] == batch.Previous {
		return batch.Previous
	}
	return batch.Version
}

// Complete ends a stream. It has the number of batches with rows that were sent, and their cost.
type Complete struct {
	Batches int64          `json:"batches"`
	Stats   operator.Stats `json:"stats"`
}

// Trailer returns the trailer of a complete stream.
func (c Complete) Trailer() metadata.MD {
	b, _ := json.Marshal(c) // numbers only
	return metadata.Pairs(TrailerComplete, string(b))
}

// ParseComplete reads the trailer of a stream that ended without an error. batches is
// the number of batches with rows received. The error is an ErrIncomplete if the
// trailer is missing, cannot be parsed or names another number.
func ParseComplete(trailer metadata.MD, batches int64) (c Complete, err error) {
	v := trailer.Get(TrailerComplete)
	if len(v) != 1 {
		return c, fmt.Errorf("%w: it ends without %s", ErrIncomplete, TrailerComplete)
	}
	if err := json.Unmarshal([]byte(v[0]), &c); err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrIncomplete, TrailerComplete, err)
	}
	if c.Batches != batches { //fault:lost-batch-not-counted TestComplete
		return c, fmt.Errorf("%w: %d batches came, %d were sent", ErrIncomplete, batches, c.Batches)
	}
	return c, nil
}
