package metaroutes

import (
	"errors"
	"net/http"
	"strings"

	"downpour/encoding"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/metadata/annotation"
	"downpour/pushdown/rpc/auth"
)

// bulkAnnotations handles lists of annotations. Source: AnnotationRpc.executeBulk.
func (h *Handlers) bulkAnnotations(w http.ResponseWriter, r *http.Request, method string) error {
	if method != http.MethodPost && method != http.MethodPut && method != http.MethodDelete {
		return httpio.MethodNotAllowed(method)
	}
	// Before the body is read, which MayStore has in the line about a deletion.
	if err := h.Guard.Authorize(w, r, auth.Write); err != nil {
		return err
	}
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return err
	}
	if err := h.Guard.MayStore(w, r, auth.Write); err != nil {
		return err
	}
	if method == http.MethodDelete {
		return h.bulkDelete(w, r, body)
	}
	return h.bulkPut(w, r, body, method == http.MethodPut)
}

// bulkPut stores annotations one after another and skips those that change nothing.
// After an error those before it are stored.
func (h *Handlers) bulkPut(w http.ResponseWriter, r *http.Request, body []byte, overwrite bool) error {
	var in []annotationBody
	if err := httpio.ParseJSON(body, &in); err != nil {
		return err
	}

	stored := []*encoding.Annotation{}
	for i := range in {
		note, err := h.Annotations.Put(r.Context(), in[i].change(), overwrite)
		switch {
		case errors.Is(err, annotation.ErrNoChange):
			continue
		case errors.Is(err, annotation.ErrConflict):
			return &httpio.Error{
				Code:    http.StatusInternalServerError,
				Message: "Failed to save an Annotation to storage",
				Details: err.Error(),
			}
		case err != nil:
			return err
		}
		stored = append(stored, note)
	}
	return httpio.WriteJSON(w, r, http.StatusOK, stored)
}

// deletionRange is a request to delete annotations by time. Source: AnnotationBulkDelete.
type deletionRange struct {
	StartTime string   `json:"startTime"`
	EndTime   string   `json:"endTime"`
	TSUIDs    []string `json:"tsuids"`
	Global    bool     `json:"global"`
	Deleted   int64    `json:"totalDeleted" jackson:"strict"` // not used
}

// bulkDeleted is the answer; times are in ms.
type bulkDeleted struct {
	StartTime    int64    `json:"startTime"`
	EndTime      int64    `json:"endTime"`
	TSUIDs       []string `json:"tsuids"`
	Global       bool     `json:"global"`
	TotalDeleted int      `json:"totalDeleted"`
}

// parseDeletionRange reads what to delete from the body, or from the parameters if there
// is no body.
func parseDeletionRange(r *http.Request, body []byte) (in deletionRange, err error) {
	if len(body) > 0 {
		err = httpio.ParseJSON(body, &in)
		return in, err
	}
	start, err := httpio.RequiredValue(r, "start_time")
	if err != nil {
		return in, err
	}
	in = deletionRange{StartTime: start, EndTime: httpio.LastValue(r, "end_time"), Global: r.URL.Query().Has("global")}
	if r.URL.Query().Has("tsuids") {
		for t := range strings.SplitSeq(httpio.LastValue(r, "tsuids"), ",") {
			in.TSUIDs = append(in.TSUIDs, strings.TrimSpace(t))
		}
	}
	return in, nil
}

// bulkDelete deletes the annotations of series, or the global ones, in a range of time,
// by default until now. It answers with their number. Source: AnnotationRpc.executeBulkDelete.
func (h *Handlers) bulkDelete(w http.ResponseWriter, r *http.Request, body []byte) error {
	in, err := parseDeletionRange(r, body)
	switch {
	case err != nil:
		return err
	case in.StartTime == "":
		return httpio.BadRequest("Missing the start time value")
	case !in.Global && len(in.TSUIDs) == 0:
		return httpio.BadRequest("Missing the TSUIDs or global annotations flag")
	}

	out := bulkDeleted{EndTime: h.Now().UnixMilli(), TSUIDs: in.TSUIDs, Global: in.Global}
	if out.StartTime, err = h.parseTime(in.StartTime); err != nil {
		return httpio.BadRequest("%v", err)
	}
	if in.EndTime != "" {
		if out.EndTime, err = h.parseTime(in.EndTime); err != nil {
			return httpio.BadRequest("%v", err)
		}
	}

	// An empty TSUID means the global annotations, which come first.
	series := in.TSUIDs
	if in.Global {
		series = append([]string{""}, series...)
	}
	for i, tsuid := range series {
		if tsuid == "" && !(in.Global && i == 0) {
			return &httpio.Error{Code: http.StatusBadRequest, Message: "UID was empty", Details: "UID was empty"}
		}
		n, err := h.Annotations.DeleteRange(r.Context(), tsuid, out.StartTime, out.EndTime)
		if err != nil {
			return err
		}
		out.TotalDeleted += n
	}
	return httpio.WriteJSON(w, r, http.StatusOK, out)
}
