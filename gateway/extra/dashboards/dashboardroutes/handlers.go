// Package dashboardroutes is the routes of dashboards, below /api/dashboards: a list, a
// document each, and its versions. A document is answered as it was saved, byte for byte; its
// ETag is its version, which a change names in If-Match.
package dashboardroutes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/dashboards/dashboard"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/store/drystore"
)

// Handlers answer the routes of dashboards. All fields are set before a request comes.
type Handlers struct {
	Store *dashboard.Store
	// BuiltIn has the documents, by name, that are served as version 0 while none of their names
	// are saved.
	BuiltIn map[string]func() []byte
	// Start returns the name of the dashboard to which the page at / leads, empty for none; nil
	// is none.
	Start func(ctx context.Context) (string, error)
	// ReadOnly is set if DOWNPOUR_MODE is ro.
	ReadOnly bool
	// Guard checks requests that change something.
	Guard *access.Guard
	// Timeout bounds a request.
	Timeout time.Duration
}

// Endpoints returns the routes by path. All are open to readers; a handler that changes something
// requires more itself.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/dashboards": {
			Scope:         auth.Read,
			Serve:         h.bounded(h.list),
			Reads:         httpio.Get,
			Absent:        httpio.WriteOnly,
			TellsOperator: true,
		},
		"api/dashboards/": {
			Scope:         auth.Read,
			Serve:         h.bounded(h.one),
			Reads:         httpio.Get,
			Absent:        httpio.WriteOnly,
			TellsOperator: true,
		},
	}
}

// bounded gives a handler that reads the time of a query, and turns the errors of dashboards into answers.
func (h *Handlers) bounded(serve func(http.ResponseWriter,
	*http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := httpio.WithQueryTime(r.Context(), h.Timeout)
		defer cancel()
		err := serve(w, r.WithContext(ctx))

		var conflict *dashboard.ConflictError
		switch {
		case errors.As(err, &conflict):
			return &httpio.Error{
				Code:    http.StatusConflict,
				Message: conflict.Error(),
				Details: "Nothing was changed: read the version in force, and make the change from it",
			}
		case errors.Is(err, dashboard.ErrNotFound):
			return &httpio.Error{Code: http.StatusNotFound, Message: err.Error()}
		}
		return err
	}
}

// list answers with {"dashboards": […], "start"}, by name.
func (h *Handlers) list(w http.ResponseWriter, r *http.Request) error {
	if err := onlyGet(r); err != nil {
		return err
	}
	all, err := h.Store.List(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Dashboards []dashboard.Listed `json:"dashboards"`
		Start      string             `json:"start,omitempty"`
	}{Dashboards: h.withBuiltIn(all)}
	if h.Start != nil {
		if answer.Start, err = h.Start(r.Context()); err != nil {
			return err
		}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, answer)
}

// withBuiltIn adds the built-in dashboards to those that are saved.
func (h *Handlers) withBuiltIn(saved []dashboard.Listed) []dashboard.Listed {
	all := append([]dashboard.Listed{}, saved...)
	for name, document := range h.BuiltIn {
		if slices.ContainsFunc(saved, func(d dashboard.Listed) bool { return d.Name == name }) {
			continue
		}
		summary, _ := dashboard.Check(document()) // a test checks it
		all = append(all, dashboard.Listed{Name: name, Version: dashboard.Version{Summary: summary}})
	}
	slices.SortFunc(all, func(a, b dashboard.Listed) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// onlyGet refuses all verbs but GET and HEAD.
func onlyGet(r *http.Request) error {
	method, err := httpio.Method(r)
	if err == nil && method != http.MethodGet && method != http.MethodHead {
		err = httpio.MethodNotAllowed(method)
	}
	return err
}

// one answers for api/dashboards/NAME and api/dashboards/NAME/versions.
func (h *Handlers) one(w http.ResponseWriter, r *http.Request) error {
	name, rest, _ := strings.Cut(strings.TrimPrefix(httpio.Path(r), "api/dashboards/"), "/")
	if rest != "" && rest != "versions" {
		return &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found"}
	}
	if rest == "versions" {
		if err := onlyGet(r); err != nil {
			return err
		}
	}

	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	// Any token may know whether a name exists.
	if err := dashboard.CheckName(name); err != nil {
		return httpio.BadRequest("%v", err)
	}
	switch {
	case rest == "versions":
		return h.versions(w, r, name)
	case method == http.MethodGet || method == http.MethodHead:
		return h.get(w, r, name)
	case method == http.MethodPut:
		return h.put(w, r, name)
	case method == http.MethodDelete:
		return h.remove(w, r, name)
	}
	return httpio.MethodNotAllowed(method)
}

// versions answers with {"name", "versions": […]}, the newest first.
func (h *Handlers) versions(w http.ResponseWriter, r *http.Request, name string) error {
	all, err := h.Store.Versions(r.Context(), name)
	if err != nil {
		return err
	}
	type shown struct {
		dashboard.Version
		Deleted bool `json:"deleted,omitempty"`
	}
	out := make([]shown, len(all))
	for i, v := range all {
		out[i] = shown{v, v.Deleted()}
		out[i].Row = ""
	}
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]any{"name": name, "versions": out})
}

// get answers with a document: that in force, or the one of ?version=N.
func (h *Handlers) get(w http.ResponseWriter, r *http.Request, name string) error {
	number := int64(0)
	if text := httpio.LastValue(r, "version"); text != "" {
		var err error
		if number, err = strconv.ParseInt(text, 10, 64); err != nil || number < 1 {
			return httpio.BadRequest("version: got %q, want a number from 1", text)
		}
	}
	document, v, err := h.Store.Get(r.Context(), name, number)
	if builtIn, ok := h.BuiltIn[name]; ok && number == 0 && errors.Is(err, dashboard.ErrNotFound) {
		document, v, err = builtIn(), dashboard.Version{Saved: time.Now()}, nil
	}
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("ETag", etag(v.Version))
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", "application/json; charset=UTF-8")
	header.Set("Last-Modified", v.Saved.Format(http.TimeFormat))
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(document)
	return dropped(err)
}

// dropped forgets that a client did not read to the end: its answer has begun.
func dropped(error) error { return nil }

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// put saves the body. If-Match names the version that it was made from, and
// If-None-Match: * says that it is new. With ?dryRun=true it saves nothing, and answers as if it had.
func (h *Handlers) put(w http.ResponseWriter, r *http.Request, name string) error {
	from, err := h.mayChange(w, r)
	if err != nil {
		return err
	}
	document, err := httpio.ReadBodyUpTo(w, r, dashboard.MaxBytes)
	if err != nil {
		return err
	}
	if _, err := dashboard.Check(document); err != nil {
		return httpio.BadRequest("%v", err)
	}
	to := *h.Store
	if httpio.LastValue(r, "dryRun") == "true" {
		to.Cells = drystore.New(to.Cells)
	} else {
		h.Guard.Audit(r)
	}
	v, err := to.Put(r.Context(), name, from, document, h.Guard.TokenName(r))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(v.Version))
	v.Row = ""
	return httpio.WriteJSON(w, r, http.StatusOK, dashboard.Listed{Name: name, Version: v})
}

// remove deletes a dashboard; If-Match names the version in force.
func (h *Handlers) remove(w http.ResponseWriter, r *http.Request, name string) error {
	from, err := h.mayChange(w, r)
	if err != nil {
		return err
	}
	if from == 0 {
		return httpio.BadRequest("If-Match: want the version that is deleted")
	}
	if err := h.Store.Delete(r.Context(), name, from, h.Guard.TokenName(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayChange checks a request that changes something, and returns the version that it was made
// from, 0 for a new dashboard: a built-in one has the ETag "0".
func (h *Handlers) mayChange(w http.ResponseWriter, r *http.Request) (int64, error) {
	if err := h.Guard.MayStore(w, r, auth.Write); err != nil { //fault:dashboard-changed-by-readers TestDoors
		return 0, err
	}
	if h.ReadOnly {
		return 0, &httpio.Error{
			Code:    http.StatusMethodNotAllowed,
			Message: "Dashboards cannot be changed here",
			Details: "This gateway runs in mode ro (DOWNPOUR_MODE)",
		}
	}
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case match == "" && none == "*":
		return 0, nil
	case match == "" || none != "":
		return 0, &httpio.Error{
			Code:    http.StatusPreconditionRequired,
			Message: "A change names the version that it was made from",
			Details: `Want If-Match: "7" with the ETag that was read, or If-None-Match: * for a new dashboard`,
		}
	}
	text, quoted := strings.CutPrefix(strings.TrimPrefix(match, "W/"), `"`)
	text, closed := strings.CutSuffix(text, `"`)
	from, err := strconv.ParseInt(text, 10, 64)
	if err != nil || from < 0 || quoted != closed {
		return 0, httpio.BadRequest("If-Match: got %.80q, want the ETag of a version, as \"7\"", match)
	}
	return from, nil
}
