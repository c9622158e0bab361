// Package putroutes is /api/put: it reads bodies of points, hands the points to the
// writer and answers once they are durable.
//
// A body is read in one of two ways that mean the same. Bodies as collectors write
// them are scanned in place (scan.go); every other body goes through
// encoding/json (put.go), which is slower by a factor of ten.
// Source: PutDataPointRpc, HttpJsonSerializer.parsePutV1.
package putroutes

import (
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/write"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the put route. All fields are set before a request comes.
type Handlers struct {
	Writer *write.Writer
	Count  Counter
}

// Counter counts points.
type Counter interface {
	Puts(ok, failed int)
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/put": {Scope: auth.Write, Serve: h.put, Reads: httpio.NoVerb},
	}
}
