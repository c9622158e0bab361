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
	"strconv"
	"time"

	"downpour/encoding"
	"downpour/gateway/api/pace"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// Served is what a gateway lends to the tools that ask it.
type Served struct {
	Settings
	Store  Store
	Names  *uid.Dictionary
	Series *write.Series
	// Flush records what puts have left to be recorded; nil if they record
	// nothing.
	Flush func(context.Context) error
	// ReadOnly and WriteOnly leave out what writes or reads, as DOWNPOUR_MODE.
	ReadOnly, WriteOnly bool
}

// Handler answers the tools of other processes while this one has the store
// open. Who may ask what is decided in front of it.
//
//	GET  export?start=…&end=…&m=METRIC{tag=filter}…   import lines
//	GET  export?start=…&all=true&plain=true           of every metric
//	GET  names?q=REGEXP&kind=metrics                  [{"kind","name","uid"}…]
//	POST remarks                                      remarks and names of an import file
//	POST delete  {"kind","name","force"}              see Deleted
//
// The lines of an export end with a line "#end " and counts: without it they are
// not all. What fails before the first line is an error object with a status,
// later it is a line "#error ".
func Handler(s Served) http.Handler {
	h := &served{s}
	mux := http.NewServeMux()
	for route, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/tools/export": h.export, "GET /api/tools/names": h.grep,
		"POST /api/tools/remarks": h.remarks, "POST /api/tools/delete": h.remove,
	} {
		writes := route[0] == 'P'
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

// call is a call as a command of this process would make it.
func (h *served) call() (*call, *connection) {
	return &call{Env: &Env{Settings: h.Settings, Now: time.Now}}, &connection{store: h.Store, names: h.Names}
}

// statusOf tells the store's faults from the request's.
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

// Marks of the last line of an export.
const (
	endMark   = "#end "
	errorMark = "#error "
)

// began is a writer that tells whether anything went to the client.
type began struct {
	io.Writer
	yes bool
}

// Write notes and passes on.
func (b *began) Write(p []byte) (int, error) {
	b.yes = true
	return b.Writer.Write(p)
}

func (h *served) export(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	wish := exportWish{times: [2]string{q.Get("start"), q.Get("end")}, metrics: q["m"], all: q.Get("all") == "true", plain: q.Get("plain") == "true"}
	if wish.times[0] == "" || wish.all != (len(wish.metrics) == 0) {
		return fmt.Errorf("got start %q and %d metrics, want a start, and metrics or all=true", wish.times[0], len(wish.metrics))
	}
	if wish.all && h.Flush != nil {
		if err := h.Flush(r.Context()); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	sent := &began{Writer: w}
	out := bufio.NewWriterSize(sent, 64<<10)
	c, conn := h.call()
	counts, err := c.exportAll(r.Context(), conn, wish, out)
	if err != nil && !sent.yes {
		return err
	}
	if err != nil {
		fmt.Fprintf(out, "%s%q\n", errorMark, err.Error())
		return out.Flush()
	}
	text, err := json.Marshal(counts)
	if err == nil {
		fmt.Fprintf(out, "%s%s\n", endMark, text)
		_ = out.Flush() // the client sees that the end is missing
	}
	return err
}

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

// maxRemarks bounds the body of remarks.
const maxRemarks = 32 << 20

// remarks takes lines of an import file, and answers with the refused ones by
// number: {"refused":[{"line":3,"error":"…"}]}.
func (h *served) remarks(w http.ResponseWriter, r *http.Request) error {
	lines := bufio.NewReaderSize(http.MaxBytesReader(w, r.Body, maxRemarks), maxLine)
	in := &input{name: "body", lines: lines}
	var all []remark
	var names []listedName
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		said, ok, err := parseRemark(line)
		if err != nil {
			return err
		}
		if said.line = in.at.Lines; ok {
			all = append(all, said)
		} else if n, ok := parseListed(words(nil, line)); ok {
			names = append(names, n)
		} else {
			return errors.New("line " + strconv.FormatInt(in.at.Lines, 10) + " is no remark")
		}
	}
	to := remarks{settings: &h.Settings, st: h.Store, names: h.Names, auto: h.Auto, series: h.Series, flush: h.Flush}
	if err := to.assign(r.Context(), names); err != nil {
		return err
	}
	refused, err := to.store(r.Context(), all)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	answer := remarksAnswer{Refused: []refusedLine{}}
	for _, x := range refused {
		answer.Refused = append(answer.Refused, refusedLine{x.line, x.err.Error()})
	}
	writeObject(w, http.StatusOK, answer)
	return nil
}

type remarksAnswer struct {
	Refused []refusedLine `json:"refused"`
}

type refusedLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

func (h *served) remove(w http.ResponseWriter, r *http.Request) error {
	var in deleteWish
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
