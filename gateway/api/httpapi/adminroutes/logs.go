package adminroutes

import (
	"fmt"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
)

// logs handles /logs: the last lines of the gateway's log, the newest first, as text or,
// with the parameter json, as a list. Source: LogsRpc.
func (h *Handlers) logs(w http.ResponseWriter, r *http.Request) error {
	switch values := r.URL.Query(); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return httpio.MethodNotAllowed(r.Method)
	case values.Has("level"):
		// In OpenTSDB a followed link can change the log levels.
		return httpio.BadRequest("The level of the log is not set by a request")
	case values.Has("json"):
		return httpio.WriteJSON(w, r, http.StatusOK, h.LogLines())
	}

	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	for _, line := range h.LogLines() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return nil // the client has disconnected
		}
	}
	return nil
}
