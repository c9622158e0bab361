package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store/drystore"
)

// Served is what a process that has the store open lends to tools: a gateway to other processes, or
// a command's process to itself.
type Served struct {
	Settings
	Store  Store
	Names  *uid.Dictionary
	Series *write.SeriesCache
	Forest *forest.Forest
	// Points takes the points of imports, nil where there are none. Count counts them, and Refused logs
	// those that are refused; nil if nobody does.
	Points  *write.Writer
	Count   func(stored, refused int)
	Refused *putlog.Log
	// Flush writes meta data of puts that is still pending. It is nil if puts record
	// no meta data.
	Flush func(context.Context) error
	// Forget makes puts record deleted meta data again. It is nil if they record none.
	Forget func()
	// Turns are those of deleting rows that are past, which the gateway does by itself, too.
	Turns retention.Turns
	// Now is the clock; nil for the system's.
	Now func() time.Time
	// Ending is closed when the gateway begins to end. Nil, if it never does.
	Ending <-chan struct{}
	// ReadOnly and WriteOnly leave out the routes that write or read, as DOWNPOUR_MODE
	// says.
	ReadOnly, WriteOnly bool
	// Own says that the process is the command's own, and has no other work: tools may take more memory and
	// threads. Routes by which a client works on the tables so that a gateway must not be in between are there alone.
	Own bool

	last map[string]int64 // see inOrder
}

// Handler answers the tools of other processes while this process has the store
// open. Authorization is the caller's concern.
//
//	GET  export?start=…&end=…&m=METRIC{tag=filter}…    import lines
//	GET  export?start=…&all=true&plain=true            of every metric
//	GET  export?start=…&m=…&format=parquet             bytes of a file, see fileBytes
//	GET  scan?arg=START&arg=AGG&arg=METRIC&import=true rows, or import lines
//	GET  names?q=REGEXP&kind=metrics                   [{"kind","name","uid"}…]
//	POST import?skip=true                              lines of an import file, see importDone
//	POST assign  {"kind","names"}                      [{"kind","name","uid"}…]
//	POST rename  {"kind","name","to"}                  {}
//	POST delete  {"kind","name","force"}               see Deleted
//	POST trees   {"purge":1,"definition":true}, or {}  see treesRequest and treesDone
//	POST uid     {"command":"fsck","fix":true}         lines, see uidWork and uidDone
//	POST fsck    see fsckRequest                       findings, a line each
//	POST retention {"run":true,"yesDelete":120}        see retentionDone
//	POST rollup  see rollupRequest                     progress, and rollupjob.Counts
//	POST checkpoint {}                                 the name of a checkpoint, then progress while it is kept
//
// and, if Own is set:
//
//	POST scan?arg=START&arg=AGG&arg=METRIC             import lines, which are deleted, see scanDelete
//	POST compact see compactRequest                    progress, and compaction.Counts
//
// Bodies may have "dryRun":true, see work.dry. lines.go says what answers of lines look like. What fails before
// its first line is answered by a status and an error object.
func Handler(s Served) http.Handler {
	h := &served{work: work{Served: s}, holding: make(chan struct{}, 1)}

	routes := map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/tools/export": h.export, "GET /api/tools/names": h.grep, "GET /api/tools/scan": h.scan,
		"POST /api/tools/import": h.importLines, "POST /api/tools/assign": h.assign, "POST /api/tools/rename": h.rename,
		"POST /api/tools/delete": h.remove, "POST /api/tools/trees": h.trees,
		"POST /api/tools/uid": h.uidWork, "POST /api/tools/fsck": h.fsck,
		"POST " + checkpointPath: h.checkpoint, "POST " + retentionPath: h.retention, "POST " + rollupPath: h.rollup,
	}
	if s.Own {
		routes["POST /api/tools/scan"] = h.scanDelete
		routes["POST /api/tools/compact"] = h.compact
	}
	mux := http.NewServeMux()
	for route, f := range routes {
		// What may write is posted. A checkpoint neither reads nor writes points.
		writes, always := strings.HasPrefix(route, "POST"), strings.HasSuffix(route, checkpointPath)
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if !always && (writes && s.ReadOnly || !writes && s.WriteOnly) {
				writeFault(w, &httpio.Error{Code: http.StatusNotFound, Message: "not in this DOWNPOUR_MODE"})
				return
			}
			// The log has the beginning of a body before anything is done, and could not show a compressed one.
			if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
				writeFault(w, &httpio.Error{
					Code: http.StatusUnsupportedMediaType,
					Message: fmt.Sprintf("Content-Encoding: got %q, want none: tools take no compressed body",
						encoding),
				})
				return
			}

			if err := f(w, r); err != nil {
				writeFault(w, err)
			}
		})
	}

	return mux
}

type served struct {
	work
	checking sync.Mutex    // held by the one fsck that runs at a time
	working  sync.Mutex    // by the one work on the whole UID and meta tables
	holding  chan struct{} // has an element while there is the one checkpoint
}

// work is what a request works on.
type work struct {
	Served
	dryRun bool
}

// dry returns what a dry run works on: the same, except for a store that takes all changes and makes none. Of points
// and of the tables forgotten it keeps no change.
func (x *work) dry(forgotten ...string) *work {
	d := &work{Served: x.Served, dryRun: true}
	d.Store = drystore.New(x.Store, x.unread(forgotten...)...)
	// What others know of names and meta data stays.
	d.Names = uid.New(uid.Config{Store: d.Store, Table: x.Tables.UID, Schema: x.Schema, MaxName: x.MaxName})
	d.Forest, d.Forget, d.Turns = d.forest(), nil, retention.NewLocal()
	return d
}

// unread are the tables that a dry run need not keep: those of points, which nothing reads that has
// written there, and others.
func (s *Settings) unread(others ...string) []string {
	return slices.Concat([]string{s.Tables.Data}, s.Tables.Rollups, others)
}

// forest returns the trees of the store.
func (s *Served) forest() *forest.Forest {
	return forest.New(forest.Config{
		Store:     s.Store,
		TreeTable: s.Tables.Tree,
		UIDTable:  s.Tables.UID,
		MetaTable: s.Tables.Meta,
		Schema:    s.Schema,
		Names:     s.Names,
	})
}

// now is the time by the clock of the process.
func (s *Served) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// parser returns what reads queries now.
func (x *work) parser() query.Parser { return query.Parser{Now: x.now(), Zone: x.Zone} }

// engine compiles queries on the store, and answers them in process.
func (x *work) engine() *engine.Engine {
	return engine.New(engine.Config{
		Names:   x.Names,
		Exec:    dispatch.New(dispatch.Config{Store: x.Store}),
		Compile: x.Compile,
	})
}

// decode reads the body of a request. A field that is misspelt must not be taken for one
// that is missing: {"purg":1} would build trees instead of deleting one.
func decode(w http.ResponseWriter, r *http.Request, in any) error {
	body, err := httpio.ReadBodyUpTo(w, r, maxLine)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(in)
}

// conflict refuses what something else keeps from being done now.
func conflict(format string, args ...any) error {
	return &httpio.Error{Code: http.StatusConflict, Message: fmt.Sprintf(format, args...)}
}

// writeFault answers with the error object of an error, which has the status that the API gives it. A name that is
// not there is 404: a request names it alone.
func writeFault(w http.ResponseWriter, err error) {
	e := httpio.Classify(err)
	object := map[string]any{"code": e.Code, "message": err.Error()}
	if noName := (*uid.NoSuchNameError)(nil); errors.As(err, &noName) && e.Code == http.StatusBadRequest {
		object["code"], e.Code = http.StatusNotFound, http.StatusNotFound
	}
	answer := map[string]any{"error": object}
	if counted := (*countedError)(nil); errors.As(err, &counted) {
		answer["counts"] = counted.counts
	}
	writeObject(w, e.Code, answer)
}

func writeObject(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone learns nothing
}
