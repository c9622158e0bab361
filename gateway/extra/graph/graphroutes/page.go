package graphroutes

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
)

// redirectToPage answers a request without a form with a page that leads to the page of
// charts, which knows the parameters. As in OpenTSDB the status is 200, so only the element
// in the page leads there. Source: GraphHandler.execute, HttpQuery.redirect.
func redirectToPage(w http.ResponseWriter, r *http.Request) {
	to := "/"
	if r.URL.RawQuery != "" {
		to = "/#" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	setPageHeaders(w.Header())
	fmt.Fprintf(w, `<!DOCTYPE html><html><head><meta http-equiv="refresh" content="0; url=%s"></head></html>`,
		html.EscapeString(to))
}

// setPageHeaders are the headers of a page that loads nothing.
func setPageHeaders(h http.Header) {
	h.Set("Content-Type", "text/html; charset=UTF-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
}

// writeError answers with an error: as an object if the request asks for JSON,
// otherwise as a page. Source: HttpQuery.badRequest, internalError.
//
//	{"err":"Missing sub queries"}
func (h *handlers) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := httpio.ErrorFor(w, r, h.Log, err)
	if r.URL.Query().Has(string(asCounts)) {
		answer := map[string]string{"err": e.Message}
		// A 400 has OpenTSDB's form. The details of other errors name the setting of a limit.
		if e.Code != http.StatusBadRequest && e.Details != "" {
			answer["details"] = e.Details
		}
		body, _ := json.Marshal(answer)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.Code)
		w.Write(body)
		return
	}

	setPageHeaders(w.Header())
	w.WriteHeader(e.Code)
	title, subtitle, introduction := http.StatusText(e.Code), "Looks like it's your fault this time",
		"Sorry but your request was rejected as being invalid."
	if e.Code >= http.StatusInternalServerError {
		subtitle, introduction = "Houston, we have a problem",
			"Oops, sorry but your request failed due to a server error."
	}
	reason := pageText(e.Message)
	if e.Code != http.StatusBadRequest && e.Details != "" {
		reason += "<br/>" + pageText(e.Details)
	}
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html><head><title>%s</title>\n"+
		"<style>body{font-family:arial,sans-serif;margin-left:2em}</style></head>\n"+
		"<body><b>%s</b><blockquote><h1>%s</h1>%s<br/><br/>The reason provided was:"+
		"<blockquote>%s</blockquote></blockquote></body></html>",
		title, subtitle, title, introduction, reason)
}

// pageText escapes a message, which may quote what the client sent. The only element that
// OpenTSDB's messages have stays one.
func pageText(message string) string {
	return strings.NewReplacer("&lt;code&gt;", "<code>", "&lt;/code&gt;", "</code>").Replace(html.EscapeString(message))
}
