package metaroutes

import (
	"errors"
	"net/http"
	"strings"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/query"
	"downpour/pushdown/rpc/auth"
)

// annotationBody is an annotation as clients send it.
type annotationBody struct {
	TSUID       string            `json:"tsuid"`
	StartTime   int64             `json:"startTime"`
	EndTime     *int64            `json:"endTime"`
	Description newText           `json:"description"`
	Notes       newText           `json:"notes"`
	Custom      map[string]string `json:"custom"`
}

func (n *annotationBody) change() annotation.Change {
	return annotation.Change{TSUID: n.TSUID, Start: n.StartTime, End: n.EndTime,
		Description: n.Description.to, Notes: n.Notes.to, Custom: n.Custom}
}

// annotations handles /api/annotation and /api/annotations. Only their GET differs:
// one annotation, or the global annotations of a time range. Source: AnnotationRpc.execute.
func (h *Handlers) annotations(w http.ResponseWriter, r *http.Request) error {
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	if strings.HasSuffix(httpio.Path(r), "bulk") {
		return h.bulkAnnotations(w, r, method)
	}

	note, err := h.parseAnnotation(w, r)
	if err != nil {
		return err
	}
	switch method {
	case http.MethodGet:
		if strings.HasPrefix(httpio.Path(r), "api/annotations") {
			return h.getGlobalAnnotations(w, r, note)
		}
		return h.getAnnotation(w, r, note)
	case http.MethodPost, http.MethodPut, http.MethodDelete: // below, if the token allows it
	default:
		return httpio.MethodNotAllowed(method)
	}

	if err := h.Guard.MayStore(w, r, auth.Write); err != nil {
		return err
	}
	if method == http.MethodDelete {
		return h.deleteAnnotation(w, r, note)
	}
	return h.putAnnotation(w, r, note, method == http.MethodPut)
}

// parseAnnotation reads an annotation from the body, or from the parameters if there is
// no body.
func (h *Handlers) parseAnnotation(w http.ResponseWriter, r *http.Request) (c annotation.Change, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return c, err
	}
	if len(body) > 0 {
		var in annotationBody
		err := httpio.ParseJSON(body, &in)
		return in.change(), err
	}

	start, err := h.timeParameter(r, "start_time")
	if err != nil {
		return c, err
	}
	if start < 1 {
		return c, httpio.BadRequest("Missing start time")
	}
	// Seconds of more than 32 bits would be read as milliseconds of another year.
	if start/1000 > encoding.MaxTime {
		return c, httpio.BadRequest("start_time: %v", &encoding.RangeError{Seconds: start / 1000})
	}
	end, err := h.timeParameter(r, "end_time")
	end /= 1000 // 0, which is no end, without the parameter
	return annotation.Change{TSUID: httpio.LastValue(r, "tsuid"), Start: start / 1000, End: &end,
		Description: newValue(r, "description"), Notes: newValue(r, "notes")}, err
}

// timeParameter returns a parameter that is a time, in ms, or -1 if the request does
// not have it.
func (h *Handlers) timeParameter(r *http.Request, name string) (int64, error) {
	return h.parseTime(httpio.LastValue(r, name))
}

// parseTime reads a time as in a query, in ms; no text is -1. Its error has status 500.
func (h *Handlers) parseTime(text string) (int64, error) {
	if text == "" {
		return -1, nil
	}
	t, err := query.Parser{Now: h.Now(), Zone: h.Zone}.Time(text)
	if err != nil {
		return 0, httpio.InternalError("%v", err)
	}
	return t, nil
}

// getAnnotation answers with one annotation, or with 404 if there is none.
func (h *Handlers) getAnnotation(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	note, err := h.Annotations.Get(r.Context(), c.TSUID, c.Start)
	if err != nil {
		return err
	}
	if note == nil {
		return &httpio.Error{Code: http.StatusNotFound, Message: "Unable to locate annotation in storage"}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, note)
}

// getGlobalAnnotations answers with the global annotations from one time to another, by
// default to now. Its header Allow shows a page whether it may offer to make one.
func (h *Handlers) getGlobalAnnotations(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	end := h.Now().Unix()
	if c.End != nil && *c.End != 0 { // a body without an end has nil, parameters without one 0
		end = *c.End
	}
	ctx, cancel := h.timeout(r)
	defer cancel()
	notes, err := h.Annotations.Global(ctx, c.Start, end)
	if err != nil {
		return err
	}
	verbs := "GET"
	if h.Guard.Allows(r, auth.Write) {
		verbs = "GET, POST, PUT, DELETE"
	}
	w.Header().Set("Allow", verbs)
	return httpio.WriteJSON(w, r, http.StatusOK, notes)
}

// putAnnotation stores a change and answers with what is stored afterwards, or with 304
// if the change changes nothing.
func (h *Handlers) putAnnotation(w http.ResponseWriter, r *http.Request, c annotation.Change, overwrite bool) error {
	note, err := h.Annotations.Put(r.Context(), c, overwrite)
	switch {
	case errors.Is(err, annotation.ErrNoChange):
		w.WriteHeader(http.StatusNotModified)
		return nil
	case errors.Is(err, annotation.ErrConflict):
		return &httpio.Error{
			Code:    http.StatusInternalServerError,
			Message: "Failed to save the Annotation to storage",
			Details: err.Error(),
		}
	case err != nil:
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, note)
}

// deleteAnnotation deletes one annotation and answers with 204.
func (h *Handlers) deleteAnnotation(w http.ResponseWriter, r *http.Request, c annotation.Change) error {
	err := h.Annotations.Delete(r.Context(), c.TSUID, c.Start)
	var refused *annotation.RefusedError
	if errors.As(err, &refused) || errors.Is(err, annotation.ErrNoStart) {
		return &httpio.Error{
			Code:    http.StatusBadRequest,
			Message: "Unable to delete Annotation information",
			Details: err.Error(),
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
