package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/rpc/auth"
)

// noteBody is an annotation as clients send it.
type noteBody struct {
	TSUID       string            `json:"tsuid"`
	StartTime   integer           `json:"startTime"`
	EndTime     *integer          `json:"endTime"`
	Description *string           `json:"description"`
	Notes       *string           `json:"notes"`
	Custom      map[string]scalar `json:"custom"`
}

func (n *noteBody) change() annotation.Change {
	return annotation.Change{TSUID: n.TSUID, Start: int64(n.StartTime), End: n.EndTime.pointer(),
		Description: n.Description, Notes: n.Notes, Custom: texts(n.Custom)}
}

// annotations handles /api/annotation and /api/annotations, which differ in GET
// alone: one note, or the global notes of a time. Source: AnnotationRpc.execute.
func (a *API) annotations(w http.ResponseWriter, r *http.Request) error {
	method, err := apiMethod(r)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path(r), "bulk") {
		return a.bulkAnnotations(w, r, method)
	}
	note, err := a.parseNote(w, r)
	if err != nil {
		return err
	}
	switch method {
	case http.MethodGet:
		if strings.HasPrefix(path(r), "api/annotations") {
			return a.globalNotes(w, r, note)
		}
		return a.getNote(w, r, note)
	case http.MethodPost, http.MethodPut, http.MethodDelete:
	default:
		return methodNotAllowed(method)
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	if method == http.MethodDelete {
		return a.deleteNote(w, r, note)
	}
	return a.putNote(w, r, note, method == http.MethodPut)
}

// parseNote reads a note from the body or the request line.
func (a *API) parseNote(w http.ResponseWriter, r *http.Request) (c annotation.Change, err error) {
	body, err := readBody(w, r)
	if err != nil {
		return c, err
	}
	if len(body) > 0 {
		var in noteBody
		err := parseContent(body, &in)
		return in.change(), err
	}
	start, err := a.timeParameter(r, "start_time")
	if err != nil {
		return c, err
	}
	if start < 1 {
		return c, bad("Missing start time")
	}
	end, err := a.timeParameter(r, "end_time")
	end /= 1000
	return annotation.Change{TSUID: lastValue(r, "tsuid"), Start: start / 1000, End: &end,
		Description: given(r, "description"), Notes: given(r, "notes")}, err
}

// timeParameter reads a time in ms; -1 if it is not given.
func (a *API) timeParameter(r *http.Request, name string) (int64, error) {
	return a.parseTime(lastValue(r, name))
}

func (a *API) parseTime(text string) (int64, error) {
	if text == "" {
		return -1, nil
	}
	t, err := query.Parser{Now: a.Now(), Zone: a.Zone}.Time(text)
	if err != nil {
		return 0, broken("%v", err)
	}
	return t, nil
}

func (a *API) getNote(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	note, err := a.Notes.Get(r.Context(), c.TSUID, c.Start)
	if err != nil {
		return err
	}
	if note == nil {
		return &apiError{Code: http.StatusNotFound, Message: "Unable to locate annotation in storage"}
	}
	return writeJSON(w, r, http.StatusOK, note)
}

// globalNotes answers with the global notes from one time to another, or to now.
func (a *API) globalNotes(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	end := a.Now().Unix()
	if c.End != nil && *c.End != 0 {
		end = *c.End
	}
	ctx, cancel := a.within(r)
	defer cancel()
	notes, err := a.Notes.Global(ctx, c.Start, end)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, notes)
}

func (a *API) putNote(w http.ResponseWriter, r *http.Request, c annotation.Change, overwrite bool) error {
	note, err := a.Notes.Put(r.Context(), c, overwrite)
	switch {
	case errors.Is(err, annotation.ErrNoChange):
		w.WriteHeader(http.StatusNotModified)
		return nil
	case errors.Is(err, annotation.ErrConflict):
		return &apiError{Code: http.StatusInternalServerError, Message: "Failed to save the Annotation to storage", Details: err.Error()}
	case err != nil:
		return err
	}
	return writeJSON(w, r, http.StatusOK, note)
}

func (a *API) deleteNote(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	err := a.Notes.Delete(r.Context(), c.TSUID, c.Start)
	var refused *annotation.RefusedError
	if errors.As(err, &refused) || errors.Is(err, annotation.ErrNoStart) {
		return &apiError{Code: http.StatusBadRequest, Message: "Unable to delete Annotation information", Details: err.Error()}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// addGlobalNotes adds the global notes that begin inside the query to all its
// results, where it asks for them. Source: QueryRpc.GlobalCB,
// HttpJsonSerializer.formatQueryAsyncV1.
func (a *API) addGlobalNotes(ctx context.Context, q *query.Query, results []engine.Result) error {
	if !q.GlobalAnnotations || q.NoAnnotations || len(results) == 0 {
		return nil
	}
	notes, err := a.Notes.Global(ctx, q.Start/1000, q.End/1000)
	if err != nil || len(notes) == 0 {
		return err
	}
	slices.SortStableFunc(notes, func(a, b encoding.Annotation) int { return cmp.Compare(a.StartTime, b.StartTime) })
	inside := []json.RawMessage{}
	for _, n := range notes {
		if text, err := json.Marshal(n); err == nil && startsInside(n, q) {
			inside = append(inside, text)
		}
	}
	for i := range results {
		results[i].GlobalAnnotations = inside
	}
	return nil
}

func startsInside(n encoding.Annotation, q *query.Query) bool {
	start := n.StartTime
	if start>>32 == 0 {
		start *= 1000
	}
	return start >= q.Start && start <= q.End
}
