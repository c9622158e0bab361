// Package putroutes is /api/put, /api/rollup and /api/histogram: it reads bodies of
// points, rollups or histograms, hands them to the writer and answers once they are durable.
//
// A body is read in one of two ways that mean the same. Bodies as collectors write
// them are scanned in place (scan.go); every other body goes through
// encoding/json (put.go), which is slower by a factor of ten.
// Source: PutDataPointRpc, RollupDataPointRpc, HistogramDataPointRpc,
// HttpJsonSerializer.parsePutV1.
package putroutes

import (
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/write"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes. All fields are set before a request comes.
type Handlers struct {
	Writer  *write.Writer
	Rollups *write.Rollups
	Count   Counter
}

// Counter counts points.
type Counter interface {
	Puts(ok, failed int)
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/put":       {Scope: auth.Write, Serve: h.put, Reads: httpio.NoVerb},
		"api/rollup":    {Scope: auth.Write, Serve: h.rollup, Reads: httpio.NoVerb},
		"api/histogram": {Scope: auth.Write, Serve: h.histogram, Reads: httpio.NoVerb},
	}
}
