package adminroutes

import (
	"fmt"
	"net/http"
	"sort"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
)

// Stat is one of the gateway's own numbers. Source: StatsCollector.
type Stat struct {
	Metric    string            `json:"metric"`
	Timestamp int64             `json:"timestamp"` // seconds
	Value     string            `json:"value"`
	Tags      map[string]string `json:"tags"`
}

// Line returns the stat as telnet and the route /stats print it.
func (s Stat) Line() string {
	keys := make([]string, 0, len(s.Tags))
	for k := range s.Tags {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s", s.Metric, s.Timestamp, s.Value)
	for _, k := range keys {
		fmt.Fprintf(&b, " %s=%s", k, s.Tags[k])
	}
	return b.String()
}

// stats handles /api/stats. Source: StatsRpc.
func (h *Handlers) stats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	list := h.Stats()
	if list == nil {
		list = []Stat{}
	}
	return httpio.WriteJSON(w, r, http.StatusOK, list)
}

// oldStats handles /stats, the route from before OpenTSDB 2.0: lines of text, or with
// the parameter json a list of them.
func (h *Handlers) oldStats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	lines := []string{}
	for _, s := range h.Stats() {
		lines = append(lines, s.Line())
	}
	if r.URL.Query().Has("json") {
		return httpio.WriteJSON(w, r, http.StatusOK, lines)
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return nil
}

// otherStats handles the routes below /api/stats. As in OpenTSDB, an unknown one is
// answered like /api/stats itself.
func (h *Handlers) otherStats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	reason := ""
	switch httpio.Path(r) {
	case "api/stats/query":
		return h.queryStats(w, r)
	case "api/stats/jvm":
		return h.processStats(w, r)
	case "api/stats/threads":
		reason = "its work is done by goroutines, and their stacks are not shown; /metrics has their number as " +
			"go_goroutines"
	case "api/stats/region_clients":
		reason = "there are no numbers of single connections; /metrics has those of all, as gohbase_*"
	default:
		return h.stats(w, r)
	}
	return &httpio.Error{Code: http.StatusNotImplemented, Message: "Not implemented in this version",
		Details: "The route " + r.URL.Path + " tells of the inside of a Java process. This one is none: " + reason}
}

// queryStats handles /api/stats/query.
func (h *Handlers) queryStats(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return httpio.MethodNotAllowed(r.Method)
	}
	return httpio.WriteJSON(w, r, http.StatusOK, h.Queries.List(h.Now()))
}
