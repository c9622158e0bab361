package httpapi

import (
	"context"
	"net/http"

	"downpour/gateway/query"
	"downpour/pushdown/rpc/auth"
)

// mayDelete checks a query that deletes what it reads, by its verb or by its
// body: both need the same permission, where OpenTSDB asks for it by verb
// alone. Source: QueryRpc.execute.
func (a *API) mayDelete(w http.ResponseWriter, r *http.Request) error {
	if !a.AllowDelete {
		return &apiError{Code: http.StatusBadRequest, Message: "Bad request", Details: "Deleting data is not enabled (tsd.http.query.allow_delete=false)"}
	}
	return a.mayChange(w, r, auth.Admin)
}

// deleteRead removes the rows that an answered query has read, before it is
// answered.
func (a *API) deleteRead(ctx context.Context, q *query.Query) error {
	if !q.Delete {
		return nil
	}
	rows, err := a.Engine.Delete(ctx, q, a.Rows)
	a.Log.Info("a query deleted what it read", "rows", rows, "start", q.Start, "end", q.End)
	return err
}
