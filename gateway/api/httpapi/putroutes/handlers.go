// Package putroutes is /api/put, /api/rollup and /api/histogram: it reads bodies of
// points, rollups or histograms, passes them to the writer and answers once they are
// durable.
//
// A body is read in one of two ways that mean the same. Bodies as collectors write
// them are scanned in place (scan.go); every other body goes through
// gateway/jackson (put.go), which is slower by a factor of ten.
// Source: PutDataPointRpc, RollupDataPointRpc, HistogramDataPointRpc,
// HttpJsonSerializer.parsePutV1.
package putroutes

import (
	"encoding/json"
	"errors"
	"net/http"

	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes. All fields are set before a request comes.
type Handlers struct {
	Writer  *write.Writer
	Rollups *write.Rollups
	Count   Counter
	// Log, if set, gets refused points.
	Log *putlog.Log
}

// Counter counts points.
type Counter interface {
	Puts(ok, failed int)
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/put": {
			Scope:  auth.Write,
			Serve:  h.put,
			Reads:  httpio.NoVerb,
			Memory: memory.Write,
			Denied: h.denied,
			Absent: httpio.ReadOnly,
		},
		"api/rollup": {
			Scope:  auth.Write,
			Serve:  h.rollup,
			Reads:  httpio.NoVerb,
			Memory: memory.Write,
			Denied: h.denied,
			Absent: httpio.ReadOnly,
		},
		"api/histogram": {
			Scope:  auth.Write,
			Serve:  h.histogram,
			Reads:  httpio.NoVerb,
			Memory: memory.Write,
			Denied: h.denied,
			Absent: httpio.ReadOnly,
		},
	}
}

// denied logs a request that may not put.
func (h *Handlers) denied(r *http.Request, err error) {
	h.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: route(r), Reason: "unauthorized", Err: err})
}

// unread logs a request whose points could not be read, and returns the error.
func (h *Handlers) unread(r *http.Request, err error) error {
	h.Log.Refused(putlog.Refusal{Client: r.RemoteAddr, Via: route(r), Reason: "body", Err: err})
	return err
}

// route is the route of a request as the log shows it.
func route(r *http.Request) string { return "/" + httpio.Path(r) }

// logRefused logs the points of a request that were refused, by their reasons.
func (h *Handlers) logRefused(r *http.Request, res *putResult) {
	for _, of := range res.reasons {
		// The answer does not name the unknown name.
		if unknown := (*uid.NoSuchNameError)(nil); errors.As(of.err, &unknown) {
			of.err = unknown
		}
		h.Log.Refused(putlog.Refusal{
			Client: r.RemoteAddr,
			Via:    route(r),
			Reason: of.reason,
			Points: of.points,
			Err:    of.err,
			Example: func() string {
				b, err := json.Marshal(of.example.echo())
				if err != nil {
					return "" // it cannot be shown
				}
				return string(b)
			},
		})
	}
}
