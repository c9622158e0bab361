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
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/pace"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// Served is what a gateway lends to tools in other processes.
type Served struct {
	Settings
	Store  Store
	Names  *uid.Dictionary
	Series *write.SeriesCache
	// Flush writes meta data of puts that is still pending. It is nil if puts record
	// no meta data.
	Flush func(context.Context) error
	// ReadOnly and WriteOnly leave out the routes that write or read, as DOWNPOUR_MODE
	// says.
	ReadOnly, WriteOnly bool
}

// Handler answers the tools of other processes while this process has the store
// open. Authorization is the caller's concern.
//
//	GET  export?start=…&end=…&m=METRIC{tag=filter}…   import lines
//	GET  export?start=…&all=true&plain=true           of every metric
//	GET  names?q=REGEXP&kind=metrics                  [{"kind","name","uid"}…]
//	POST remarks                                      meta lines and names of an import file
//	POST delete  {"kind","name","force"}              see Deleted
//
// The last line of an export is "#end " and the counts; without it the export is cut
// off. An error before the first line is answered by a status and an error object,
// a later one by a line "#error ".
func Handler(s Served) http.Handler {
	h := &served{s}

	mux := http.NewServeMux()
	for route, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/tools/export": h.export, "GET /api/tools/names": h.grep,
		"POST /api/tools/remarks": h.importMeta, "POST /api/tools/delete": h.remove,
	} {
		writes := strings.HasPrefix(route, "POST")
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if writes && s.ReadOnly || !writes && s.WriteOnly {
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

type served struct{ Served }

// call returns what a command of this process would run with.
func (h *served) call() (*call, *connection) {
	return &call{Env: &Env{Settings: h.Settings, Now: time.Now}}, &connection{store: h.Store, names: h.Names}
}

// statusOf returns the HTTP status of an error: 4xx if the request is at fault, 5xx
// if the store is.
func statusOf(err error) int {
	var noName *uid.NoSuchNameError
	var slow *pace.Error
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStalled), errors.Is(err, store.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.As(err, &slow): // the client has stopped sending
		return http.StatusRequestTimeout
	case errors.Is(err, store.ErrDamaged):
		return http.StatusInternalServerError
	case errors.As(err, &noName):
		return http.StatusNotFound
	case errors.Is(err, errInUse):
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

// The beginning of the last line of an export.
const (
	endPrefix   = "#end "
	errorPrefix = "#error "
)

// answerWriter is a writer that knows whether the answer has begun. Once it has, the
// status is sent and an error can only be told in a line.
type answerWriter struct {
	io.Writer
	begun bool
}

// Write passes bytes on and notes that the answer has begun.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.begun = true
	return a.Writer.Write(p)
}

// export answers with import lines; Handler says how they end.
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

	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	answer := &answerWriter{Writer: w}
	out := bufio.NewWriterSize(answer, 64<<10)
	c, conn := h.call()
	counts, err := c.exportAll(r.Context(), conn, req, out)
	// Once lines are on their way, the status is sent: only a line can tell the error.
	if err != nil && !answer.begun {
		return err
	}
	if err != nil {
		fmt.Fprintf(out, "%s%q\n", errorPrefix, err.Error())
		return out.Flush()
	}

	text, err := json.Marshal(counts)
	if err == nil {
		fmt.Fprintf(out, "%s%s\n", endPrefix, text)
		_ = out.Flush() // if it fails, the client sees that the last line is missing
	}
	return err
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

	_, conn := h.call()
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
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}

		meta, ok, err := parseMetaLine(line)
		if err != nil {
			return err
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
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
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
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLine)).Decode(&in); err != nil {
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
