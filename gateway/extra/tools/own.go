package tools

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/dashboards/dashboard"
	"downpour/gateway/extra/dashboards/dashboardroutes"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/query/limit"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store/drystore"
)

// serve returns a client of the routes that commands use, on a store that this process has open for
// one command. Closing it closes the store.
func (c *call) serve(st Store, p purpose) *remote {
	importing, opened := c.command.Name == "import", st
	if importing && c.dryRun { // all of its requests are one dry run, whose later ones see the names of earlier ones
		st = drystore.New(st, c.unread(c.Tables.Meta, c.Tables.Tree)...)
	}
	s := Served{Settings: c.Settings, Store: st, Own: true, Now: c.Now, Turns: c.retentionTurns(st)}
	s.Auto.Metrics = s.Auto.Metrics || c.autoMetric

	var tracker *meta.Tracker // nil if puts record no meta data
	s.Names = uid.New(uid.Config{
		Store:   st,
		Table:   c.Tables.UID,
		Schema:  c.Schema,
		MaxName: c.MaxName,
		Shared:  !c.Embedded,

		MappingTimes: c.mappingTimes(),
		Assigned: func(kind encoding.UIDKind, name string, u encoding.UID) {
			if tracker != nil {
				tracker.Assigned(kind, name, u)
			}
		},
	})
	s.Forest = s.forest()
	if p == creating && (c.Meta.Tracking || c.Meta.RealtimeUID) {
		cfg := meta.TrackerConfig{
			Config: meta.Config{
				Store:     st,
				UIDTable:  c.Tables.UID,
				MetaTable: c.Tables.Meta,
				Schema:    c.Schema,
				Names:     s.Names,

				MappingTimes: c.mappingTimes(),
			},
			Flags: c.Meta,
			Wait:  c.Embedded,
		}
		if c.Trees {
			cfg.Described = s.forest().Add
		}
		tracker = meta.NewTracker(cfg)
		s.Flush, s.Forget = tracker.Flush, tracker.Forget
	}
	if importing {
		s.importInto(tracker, c.outOfOrder)
	}

	own := &ownTransport{handler: ownRoutes(s)}
	return &remote{url: "http://own", own: true, client: &http.Client{Transport: own}, end: func() error {
		own.running.Wait()
		if s.Points != nil {
			s.Points.Close()
		}
		var err error
		if tracker != nil {
			err = tracker.Close()
		}
		return errors.Join(err, opened.Close())
	}}
}

// mappingTimes is what the gateway of these settings gives meta.Config and uid.Config.
func (c *Settings) mappingTimes() bool { return c.Embedded && c.Meta.RealtimeUID }

// The writer gathers points longer than it does for a client's put, because an
// import has many points of a row, and a cell that holds several is much cheaper
// than several cells.
const (
	importWindow = 100 * time.Millisecond
	importBytes  = 4 << 20
	importShards = 4
)

// importInto has points go to a writer for an import. It appends them where the store or the settings
// want that; otherwise it writes cells of many points, to which each series must come in order.
func (s *Served) importInto(tracker *meta.Tracker, outOfOrder bool) {
	// Staged, as in a gateway: where the store can order its writes, a new series does not
	// wait until its UIDs are on the disk.
	s.Series = write.NewSeries(write.SeriesConfig{
		Schema: s.Schema,
		Names:  uid.Staged{Dictionary: s.Names},
		Auto:   s.Auto,
	})
	cfg := write.Config{
		Schema:      s.Schema,
		Table:       s.Tables.Data,
		Form:        write.MultiPoint,
		Window:      importWindow,
		WindowBytes: importBytes,
		Shards:      importShards,
		Allowed:     s.Allowed,
	}
	if tracker != nil { // a nil pointer in the interface would be an observer
		cfg.Observer = tracker
	}
	switch {
	case s.Embedded:
		// The embedded store merges what is appended to a row. All writes share its log, so
		// that several shards would only wait for one another.
		cfg.Form, cfg.Shards, cfg.WindowBytes = write.Appended, 1, 1<<20
	case s.Appends:
		cfg.Form = write.Appended
	case !outOfOrder:
		// Cells of several points on HBase must not have a time twice, see inOrder.
		s.last = map[string]int64{}
	}
	s.Points = write.New(cfg, s.Store, s.Series)
}

// ownRoutes are the routes that commands use: those of the tools, and of a gateway's API.
func ownRoutes(s Served) http.Handler {
	guard := &access.Guard{Log: slog.New(slog.DiscardHandler)} // who can open the store may do everything
	const unbounded = time.Duration(math.MaxInt64)
	limits := limit.New(limit.Config{})
	work := work{Served: s}
	query := queryroutes.Handlers{
		Engine:  work.engine(),
		Guard:   guard,
		Limits:  limits,
		Timeout: unbounded,
		Now:     work.now,
		Zone:    s.Zone,
		Running: &querylog.Log{},
		Counter: uncounted{},
		Log:     guard.Log,
	}
	dashboards := dashboardroutes.Handlers{
		Store:   &dashboard.Store{Cells: s.Store, Table: s.Tables.State, Now: work.now},
		Guard:   guard,
		Timeout: unbounded,
	}

	mux := http.NewServeMux()
	mux.Handle("/api/tools/", Handler(s))
	series := work.seriesRoute()
	routes := map[string]httpio.Endpoint{
		"api/query":      query.Endpoints()["api/query"],
		"api/ops/series": series.Endpoints()["api/ops/series"],
	}
	maps.Copy(routes, dashboards.Endpoints())
	for path, e := range routes {
		mux.HandleFunc("/"+path, func(w http.ResponseWriter, r *http.Request) {
			if err := e.Serve(w, r); err != nil {
				writeFault(w, err)
			}
		})
	}
	return mux
}

// uncounted counts no queries.
type uncounted struct{}

func (uncounted) Query(string, time.Duration) {}

// ownTransport hands requests to a handler of this process. An answer is read while it is written. It
// ends when the handler has ended, also if the request's context is over: then it says how far the work has come.
type ownTransport struct {
	handler http.Handler
	running sync.WaitGroup
}

// RoundTrip implements http.RoundTripper.
func (t *ownTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	served := r.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	from, to := io.Pipe()
	w := &ownAnswer{header: http.Header{}, body: to, begun: make(chan *http.Response, 1)}
	t.running.Go(func() {
		defer cancel()
		defer func() {
			switch p := recover(); p {
			case nil:
				w.WriteHeader(http.StatusOK)
				to.Close()
			case http.ErrAbortHandler:
				w.WriteHeader(http.StatusOK)
				to.CloseWithError(io.ErrUnexpectedEOF)
			default:
				panic(p)
			}
		}()
		t.handler.ServeHTTP(w, served)
	})
	resp := <-w.begun
	resp.Request, resp.Body = r, ownBody{from, cancel}
	return resp, nil
}

// ownAnswer is the answer of a handler of this process.
type ownAnswer struct {
	header http.Header
	body   *io.PipeWriter
	begun  chan *http.Response
	status int
}

// Header implements http.ResponseWriter.
func (a *ownAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *ownAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		a.begun <- &http.Response{
			StatusCode:    status,
			ProtoMajor:    1,
			ProtoMinor:    1,
			Header:        a.header.Clone(),
			ContentLength: -1,
		}
	}
}

// Write implements http.ResponseWriter. It returns once the client has read all.
func (a *ownAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush implements http.Flusher: nothing is kept back.
func (a *ownAnswer) Flush() { a.WriteHeader(http.StatusOK) }

// ownBody is the body of an answer. Closing it ends the work, as leaving a gateway does.
type ownBody struct {
	*io.PipeReader
	leave func()
}

// Close implements io.Closer.
func (b ownBody) Close() error {
	b.leave()
	return b.PipeReader.Close()
}
