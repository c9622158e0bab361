package querylog

import (
	"net/http"
	"time"
)

// Done is a query that has ended, for Log.Done.
type Done struct {
	Route, Client, Token, Request string
	Start                         time.Time
	Took                          time.Duration
	Status                        int
	Failure                       string // "" for a query that was answered
	Rows, Points, Bytes           int64  // read; of a query that failed what its limits have counted
	Answered                      int    // points of the answer

	query any
}

// Query returns the query as JSON, without empty members, shortened.
func (d *Done) Query() string { return shortened(compactJSON(d.query)) }

// done describes a query that has ended. It is called before the entry leaves the running ones.
func (e *Entry) done() *Done {
	d := &Done{
		Route:    e.route,
		Client:   e.remote,
		Token:    e.origin.Token,
		Request:  e.id,
		Start:    e.start,
		Took:     e.end.Sub(e.start),
		Status:   e.status,
		Rows:     e.Stats.Rows,
		Points:   e.Stats.Points,
		Bytes:    e.Stats.Bytes,
		Answered: e.Stats.PointsOut,
		query:    e.query,
	}
	if e.status != http.StatusOK {
		// The engine has no counts of a query that it could not answer.
		cost := e.cost()
		d.Failure, d.Points, d.Bytes = e.failure, max(d.Points, cost.Points), max(d.Bytes, cost.Bytes)
	}
	return d
}
