package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"downpour/encoding"
	"downpour/gateway/metadata/annotation"
	"downpour/pushdown/rpc/auth"
)

// bulkAnnotations handles lists of notes. Source: AnnotationRpc.executeBulk.
func (a *API) bulkAnnotations(w http.ResponseWriter, r *http.Request, method string) error {
	if method != http.MethodPost && method != http.MethodPut && method != http.MethodDelete {
		return methodNotAllowed(method)
	}
	if err := a.mayChange(w, r, auth.Write); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	if method == http.MethodDelete {
		return a.bulkDelete(w, r, body)
	}
	return a.bulkPut(w, r, body, method == http.MethodPut)
}

// bulkPut stores notes one after another; those that change nothing are passed
// over. After a fault the earlier ones are stored.
func (a *API) bulkPut(w http.ResponseWriter, r *http.Request, body []byte, overwrite bool) error {
	var in []noteBody
	if err := parseContent(body, &in); err != nil {
		return err
	}
	stored := []*encoding.Annotation{}
	for i := range in {
		note, err := a.Notes.Put(r.Context(), in[i].change(), overwrite)
		switch {
		case errors.Is(err, annotation.ErrNoChange):
			continue
		case errors.Is(err, annotation.ErrConflict):
			return &apiError{Code: http.StatusInternalServerError, Message: "Failed to save an Annotation to storage", Details: err.Error()}
		case err != nil:
			return err
		}
		stored = append(stored, note)
	}
	return writeJSON(w, r, http.StatusOK, stored)
}

// bulkRange asks to delete notes by time. Source: AnnotationBulkDelete.
type bulkRange struct {
	StartTime scalar   `json:"startTime"`
	EndTime   scalar   `json:"endTime"`
	TSUIDs    []string `json:"tsuids"`
	Global    bool     `json:"global"`
}

// bulkDeleted is the answer; times are in ms.
type bulkDeleted struct {
	StartTime    int64    `json:"startTime"`
	EndTime      int64    `json:"endTime"`
	TSUIDs       []string `json:"tsuids"`
	Global       bool     `json:"global"`
	TotalDeleted int      `json:"totalDeleted"`
}

func parseBulkRange(r *http.Request, body []byte) (in bulkRange, err error) {
	if len(body) > 0 {
		return in, parseContent(body, &in)
	}
	start, err := requiredValue(r, "start_time")
	if err != nil {
		return in, err
	}
	in = bulkRange{StartTime: scalar(start), EndTime: scalar(lastValue(r, "end_time")), Global: r.URL.Query().Has("global")}
	if r.URL.Query().Has("tsuids") {
		for t := range strings.SplitSeq(lastValue(r, "tsuids"), ",") {
			in.TSUIDs = append(in.TSUIDs, strings.TrimSpace(t))
		}
	}
	return in, nil
}

func (a *API) bulkDelete(w http.ResponseWriter, r *http.Request, body []byte) error {
	in, err := parseBulkRange(r, body)
	switch {
	case err != nil:
		return err
	case in.StartTime == "":
		return bad("Missing the start time value")
	case !in.Global && len(in.TSUIDs) == 0:
		return bad("Missing the TSUIDs or global annotations flag")
	}
	out := bulkDeleted{EndTime: a.Now().UnixMilli(), TSUIDs: in.TSUIDs, Global: in.Global}
	if out.StartTime, err = a.parseTime(string(in.StartTime)); err != nil {
		return bad("%v", err)
	}
	if in.EndTime != "" {
		if out.EndTime, err = a.parseTime(string(in.EndTime)); err != nil {
			return bad("%v", err)
		}
	}
	series := in.TSUIDs
	if in.Global {
		series = append([]string{""}, series...)
	}
	for i, tsuid := range series {
		if tsuid == "" && !(in.Global && i == 0) {
			return bad("UID was empty")
		}
		n, err := a.Notes.DeleteRange(r.Context(), tsuid, out.StartTime, out.EndTime)
		if err != nil {
			return err
		}
		out.TotalDeleted += n
	}
	return writeJSON(w, r, http.StatusOK, out)
}
