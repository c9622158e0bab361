// Package metaroutes is the routes about series and names instead of points:
// annotations, UIDs, UIDMeta and TSMeta, lookups, last points, suggestions.
// Source: AnnotationRpc, UniqueIdRpc, SearchRpc, SuggestRpc,
// QueryRpc.handleLastDataPointQuery.
package metaroutes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/uid"
	"downpour/gateway/uid/completion"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes of metadata. All fields are set before a request
// comes.
type Handlers struct {
	Names       *uid.Dictionary
	Completion  *completion.Index
	Meta        *meta.Catalog
	Annotations *annotation.Catalog
	Lookup      *lookup.Finder
	Last        *last.Points
	// FlushMeta writes the metadata that puts have still to record; nil if puts
	// record none. It returns a *httpio.WriteTimeError once it has taken as long as a write may.
	FlushMeta func(context.Context) error
	// Described, if set, is called for a series that a client has given a TSMeta.
	Described func(ctx context.Context, tsuid encoding.UID)
	// Allowed are characters that names may have in addition to OpenTSDB's.
	// Source: tsd.core.tag.allow_specialchars.
	Allowed []rune

	// Guard checks requests that change something.
	Guard *access.Guard
	// Timeout bounds a request that may read as much as a query.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Zone is the zone of dates without one; nil is UTC.
	Zone *time.Location
}

// Endpoints returns the routes by path. All are open to readers; a handler that changes something
// requires more itself, for any verb.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	const restricted = httpio.ReadOnly | httpio.WriteOnly
	return map[string]httpio.Endpoint{
		"api/uid":          {Scope: auth.Read, Serve: h.otherUID, Reads: httpio.NoVerb, Absent: restricted},
		"api/uid/":         {Scope: auth.Read, Serve: h.otherUID, Reads: httpio.NoVerb, Absent: restricted},
		"api/uid/assign":   {Scope: auth.Read, Serve: h.uidAssign, Reads: httpio.NoVerb, Absent: restricted},
		"api/uid/rename":   {Scope: auth.Read, Serve: h.uidRename, Reads: httpio.NoVerb, Absent: restricted},
		"api/uid/uidmeta":  {Scope: auth.Read, Serve: h.uidMeta, Reads: httpio.Get, Absent: restricted},
		"api/uid/tsmeta":   {Scope: auth.Read, Serve: h.tsMeta, Reads: httpio.Get, Absent: restricted},
		"api/search":       {Scope: auth.Read, Serve: h.search, Reads: httpio.GetOrPost, Absent: httpio.WriteOnly},
		"api/search/":      {Scope: auth.Read, Serve: h.search, Reads: httpio.GetOrPost, Absent: httpio.WriteOnly},
		"api/annotation":   {Scope: auth.Read, Serve: h.annotations, Reads: httpio.Get, Absent: restricted},
		"api/annotation/":  {Scope: auth.Read, Serve: h.annotations, Reads: httpio.Get, Absent: restricted},
		"api/annotations":  {Scope: auth.Read, Serve: h.annotations, Reads: httpio.Get, Absent: restricted},
		"api/annotations/": {Scope: auth.Read, Serve: h.annotations, Reads: httpio.Get, Absent: restricted},
		"api/query/last":   {Scope: auth.Read, Serve: h.queryLast, Reads: httpio.GetOrPost, Absent: httpio.WriteOnly},
		"api/suggest":      {Scope: auth.Read, Serve: h.suggest, Reads: httpio.GetOrPost, Absent: httpio.WriteOnly},
		"suggest":          {Scope: auth.Read, Serve: h.suggest, Reads: httpio.GetOrPost, Absent: httpio.WriteOnly},
	}
}

// timeout returns a request's context with the timeout of a query, if it only reads.
func (h *Handlers) timeout(r *http.Request) (context.Context, context.CancelFunc) {
	return httpio.WithQueryTime(r.Context(), h.Timeout)
}

// AwaitRecorded writes the metadata that puts have still to record, so that a client finds what it has
// put. Its only error is that this takes too long: later reads would be short. Others are not
// reported here, because the later reads meet them too.
func (h *Handlers) AwaitRecorded(ctx context.Context) error {
	if h.FlushMeta == nil {
		return nil
	}
	err := h.FlushMeta(ctx)
	if late := (*httpio.WriteTimeError)(nil); errors.As(err, &late) {
		return err
	}
	return ctx.Err()
}

// nameNotFound turns the error of a name without a UID into a 404 with the route's
// message, and returns other errors as they are.
func nameNotFound(err error, message string) error {
	var unknown *uid.NoSuchNameError
	if errors.As(err, &unknown) {
		return &httpio.Error{Code: http.StatusNotFound, Message: message, Details: err.Error()}
	}
	return err
}
