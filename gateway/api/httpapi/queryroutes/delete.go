package queryroutes

import (
	"context"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/pushdown/rpc/auth"
)

// checkDelete refuses a query that deletes the rows it reads unless the setting and the
// request's token allow it. A query deletes by its verb or by a field of its body;
// OpenTSDB checks permission only in the first case.
// Source: QueryRpc.execute.
func (h *Handlers) checkDelete(w http.ResponseWriter, r *http.Request) error {
	if !h.AllowDelete {
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Bad request",
			Details: "Deleting data is not enabled (tsd.http.query.allow_delete=false)",
		}
	}
	return h.Guard.MayChange(w, r, auth.Admin)
}

// deleteRows deletes the rows that a query has read, if the query requests it. It is called before
// the answer is sent.
func (h *Handlers) deleteRows(ctx context.Context, q *query.Query) error {
	if !q.Delete {
		return nil
	}
	rows, err := h.Engine.Delete(ctx, q, h.Rows)
	switch {
	case err == nil:
		h.Log.Info("a query deleted what it read", "rows", rows, "request", httpio.RequestID(ctx), "start", q.Start,
			"end", q.End)
	case rows > 0: // the client gets the error, but the rows are deleted
		h.Log.Warn("a query deleted a part of what it read", "rows", rows, "request", httpio.RequestID(ctx), "start",
			q.Start, "end", q.End, "error", err)
	}
	return err
}
