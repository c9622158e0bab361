package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/pace"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Served is what a gateway lends to tools in other processes.
type Served struct {
	Settings
	Store  Store
	Names  *uid.Dictionary
	Series *write.SeriesCache
	Forest *forest.Forest
	// Flush writes meta data of puts that is still pending. It is nil if puts record
	// no meta data.
	Flush func(context.Context) error
	// Forget makes puts record meta data anew that was deleted. It is nil if they record none.
	Forget func()
	// Turns are those of deleting rows that are past, which the gateway does by itself, too.
	Turns retention.Turns
	// Now is the clock by which rows are past; nil for the system's.
	Now func() time.Time
	// Ending is closed when the gateway begins to end. Nil, if it never does.
	Ending <-chan struct{}
	// ReadOnly and WriteOnly leave out the routes that write or read, as DOWNPOUR_MODE
	// says.
	ReadOnly, WriteOnly bool
}

// Handler answers the tools of other processes while this process has the store
// open. Authorization is the caller's concern.
//
//	GET  export?start=…&end=…&m=METRIC{tag=filter}…    import lines
//	GET  export?start=…&all=true&plain=true            of every metric
//	GET  scan?arg=START&arg=AGG&arg=METRIC&import=true rows, or import lines
//	GET  names?q=REGEXP&kind=metrics                   [{"kind","name","uid"}…]
//	POST remarks                                       meta lines and names of an import file
//	POST delete  {"kind","name","force"}               see Deleted
//	POST trees   {"purge":1,"definition":true}, or {}  see treesRequest and treesDone
//	POST uid     {"command":"fsck","fix":true}         lines, see uidWork and uidDone
//	POST fsck    see fsckRequest                       findings, a line each
//	POST retention {"run":true,"yesDelete":120}        see retentionDone
//	POST rollup  see rollupRequest                     progress, and rollupjob.Counts
//	POST checkpoint {}                                 the name of a checkpoint, then progress while it is kept
//
// lines.go says what answers of lines look like. What fails before its first line is
// answered by a status and an error object.
func Handler(s Served) http.Handler {
	h := &served{Served: s, keeping: make(chan struct{}, 1)}

	mux := http.NewServeMux()
	for route, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/tools/export": h.export, "GET /api/tools/names": h.grep,
		"POST /api/tools/remarks": h.importMeta, "POST /api/tools/delete": h.remove, "POST /api/tools/trees": h.trees,
		"POST /api/tools/uid": h.uidWork, "POST /api/tools/fsck": h.fsck, "GET /api/tools/scan": h.scan,
		"POST " + checkpointPath: h.checkpoint, "POST " + retentionPath: h.retention, "POST " + rollupPath: h.rollup,
	} {
		// What may write is posted. A checkpoint neither reads nor writes points.
		writes, always := strings.HasPrefix(route, "POST"), strings.HasSuffix(route, checkpointPath)
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if !always && (writes && s.ReadOnly || !writes && s.WriteOnly) {
				writeFault(w, http.StatusNotFound, errors.New("not in this DOWNPOUR_MODE"))
				return
			}

			if err := f(w, r); err != nil {
				writeFault(w, statusOf(err), err)
			}
		})
	}

	return mux
}

type served struct {
	Served
	checking sync.Mutex    // held by the one fsck that runs at a time
	working  sync.Mutex    // by the one work on the whole UID and meta tables
	keeping  chan struct{} // has an element while there is the one checkpoint
}

// call returns what a command of this process would run with.
func (h *served) call(name string) (*call, *connection) {
	i := slices.IndexFunc(Commands(), func(c Command) bool { return c.Name == name })
	return &call{Env: &Env{Settings: h.Settings, Now: time.Now}, command: Commands()[i], served: true}, &connection{store: h.Store, names: h.Names}
}

// decode reads the body of a request. A field that is misspelt must not be taken for one
// that is missing: {"purg":1} would build trees instead of deleting one.
func decode(w http.ResponseWriter, r *http.Request, in any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLine))
	d.DisallowUnknownFields()
	return d.Decode(in)
}

// statusOf returns the HTTP status of an error: 4xx if the request is at fault, 5xx
// if the store is.
func statusOf(err error) int {
	var noName *uid.NoSuchNameError
	var slow *pace.Error
	var large *http.MaxBytesError
	var busy *memory.BusyError
	var tooMuch *memory.LimitError
	switch {
	case errors.As(err, &busy), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStalled), errors.Is(err, store.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.As(err, &large), errors.As(err, &tooMuch):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &slow): // the client has stopped sending
		return http.StatusRequestTimeout
	case errors.Is(err, store.ErrDamaged):
		return http.StatusInternalServerError
	case errors.As(err, &noName):
		return http.StatusNotFound
	case errors.Is(err, errInUse), errors.Is(err, errRuns):
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

func writeFault(w http.ResponseWriter, status int, err error) {
	writeObject(w, status, map[string]any{"error": map[string]any{"code": status, "message": err.Error()}})
}

func writeObject(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone is told nothing
}

// export answers with import lines.
func (h *served) export(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	req := exportRequest{times: [2]string{q.Get("start"), q.Get("end")}, metrics: q["m"], all: q.Get("all") == "true", plain: q.Get("plain") == "true"}
	if req.times[0] == "" || req.all != (len(req.metrics) == 0) {
		return fmt.Errorf("got start %q and %d metrics, want a start, and metrics or all=true", req.times[0], len(req.metrics))
	}

	// Only an export of all metrics has meta data, some of which may not be stored yet.
	if req.all && h.Flush != nil {
		if err := h.Flush(r.Context()); err != nil {
			return err
		}
	}

	if err := memory.Reserve(r.Context(), namerBytes+exportBlock); err != nil {
		return err
	}
	c, conn := h.call("export")
	return writeLines(w, r, func(out io.Writer, _ func(string)) (any, error) { return c.exportAll(r.Context(), conn, req, out) })
}

// servedThreads is the number of threads of an fsck in a gateway if the request says none.
const servedThreads = 2

// fsck answers with what it finds in rows, and with what it did about it.
func (h *served) fsck(w http.ResponseWriter, r *http.Request) error {
	var req fsckRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if err := req.complete(servedThreads); err != nil {
		return err
	}
	if err := memory.Reserve(r.Context(), req.memory()); err != nil {
		return err
	}
	if !h.checking.TryLock() {
		return fmt.Errorf("another fsck of this gateway %w", errRuns)
	}
	defer h.checking.Unlock()

	c, conn := h.call("fsck")
	if req.DryRun {
		conn.store = newDryStore(conn.store)
	}
	return writeLines(w, r, func(out io.Writer, progress func(string)) (any, error) {
		return c.checkRows(r.Context(), conn, &req, out, progress)
	})
}

// grep answers with the names that match a regular expression.
func (h *served) grep(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	match, err := regexp.Compile(q.Get("q"))
	if err != nil {
		return err
	}

	wanted := everyKind
	if name := q.Get("kind"); name != "" {
		kind, ok := kinds[name]
		if !ok {
			return fmt.Errorf("kind: got %q, want metrics, tagk or tagv", name)
		}
		wanted = []encoding.UIDKind{kind}
	}

	_, conn := h.call("uid")
	found, err := matching(r.Context(), conn, wanted, match)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, found)
	return nil
}

// maxMetaBody bounds the body of POST remarks.
const maxMetaBody = 32 << 20

// importMeta takes meta and #uid lines as import files have them, and no other line, not
// even a blank one. It assigns those names that the settings allow, then stores the meta
// lines, and answers with the refused lines by number: {"refused":[{"line":3,"error":"…"}]}.
func (h *served) importMeta(w http.ResponseWriter, r *http.Request) error {
	lines := bufio.NewReaderSize(http.MaxBytesReader(w, r.Body, maxMetaBody), maxLine)
	in := &input{name: "body", lines: lines}

	// The whole body is parsed first: a malformed line leaves everything as it was.
	var all []metaLine
	var names []nameLine
	account := memory.Of(r.Context())
	for {
		line, err := in.next()
		if err == nil {
			// The line as it is parsed, as it is stored, and as it may be refused.
			if err := account.Reserve(r.Context(), int64(2*entryBytes+3*len(line))); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLong) {
			return err // which names the line
		}

		var meta metaLine
		var ok bool
		if err == nil {
			meta, ok, err = parseMetaLine(line)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", in.at.Lines, err)
		}
		if ok {
			meta.line = in.at.Lines
			all = append(all, meta)
			continue
		}

		n, ok := parseNameLine(words(nil, line))
		if !ok {
			return fmt.Errorf("line %d: want #note, #uidmeta, #tsmeta or #uid", in.at.Lines)
		}
		names = append(names, n)
	}

	to := metaWriter{settings: &h.Settings, st: h.Store, names: h.Names, auto: h.Auto, series: h.Series, flush: h.Flush}
	if err := to.assign(r.Context(), names); err != nil {
		return err
	}

	refused, err := to.store(r.Context(), all)
	// What is the fault of a line is in refused. So this is the store's, even if the
	// error says nothing of that.
	if err != nil && statusOf(err) == http.StatusBadRequest {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err != nil {
		return err
	}

	answer := metaAnswer{Refused: []refusedLine{}}
	for _, x := range refused {
		answer.Refused = append(answer.Refused, refusedLine{x.line, x.err.Error()})
	}
	writeObject(w, http.StatusOK, answer)
	return nil
}

// metaAnswer is the answer to POST remarks.
type metaAnswer struct {
	Refused []refusedLine `json:"refused"`
}

type refusedLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

// remove deletes a name.
func (h *served) remove(w http.ResponseWriter, r *http.Request) error {
	var in deleteRequest
	if err := decode(w, r, &in); err != nil {
		return err
	}
	kind, ok := kinds[in.Kind]
	if !ok {
		return fmt.Errorf("kind: got %q, want metrics, tagk or tagv", in.Kind)
	}

	d := &deletion{settings: &h.Settings, st: h.Store, names: h.Names, flush: h.Flush, kind: kind, name: in.Name, force: in.Force}
	done, err := d.run(r.Context())
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, done)
	return nil
}
