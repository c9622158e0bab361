package extra_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/process/settings"
)

// options are the parameters and fields of OpenTSDB's query API, by GET and by POST.
const options = `start end m queries tsuid tsuids timezone ms msResolution show_tsuids showTSUIDs show_summary
	showSummary show_stats showStats show_query showQuery no_annotations noAnnotations global_annotations
	globalAnnotations padding options useCalendar delete overrideByteLimit overrideDataPointLimit arrays jsonp
	method_override aggregator metric downsample rate rateOptions filters tags explicitTags explicit_tags
	percentiles showHistogramBuckets preAggregate rollupUsage useFuzzyFilter useMultiGets`

// compatibility.md names every route, option, limit and fix.
func TestCompatibilityPage(t *testing.T) {
	text, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	f := func(what, word string) {
		t.Helper()
		if !strings.Contains(page, word) {
			t.Errorf("%s %s is not on the page", what, word)
		}
	}
	for route := range routesOf(t) {
		if !strings.HasSuffix(route, "/") { // a route of all paths below another, which is named with that
			f("route", "`/"+route+"`")
		}
	}
	for option := range strings.FieldsSeq(options) {
		f("option", "`"+option)
	}
	for _, v := range settings.List(new(gateway.LimitConfig)) {
		f("limit", "`"+v.Name+"`")
	}
	for fix := range strings.FieldsSeq("rate-start gaps integers filters seconds timezone") {
		f("fix", "| `"+fix+"` |")
	}
}

// Pages of the documentation, and the description of the API below it, are served without a token; a
// page that does not exist is reported.
func TestDocs_served(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile = gatewaytest.TokenFile(t) })
	for path, want := range map[string]string{
		"docs":              "text/html",
		"docs/log":          "text/html",
		"docs/api":          "text/html",
		"docs/openapi.json": "application/json",
	} {
		if a := b.Get(path); a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), want) {
			t.Errorf("%s: got %d %s, want 200 %s", path, a.Status, a.Header.Get("Content-Type"), want)
		}
	}
	if a := b.Get("docs/none"); a.Status != http.StatusNotFound {
		t.Errorf("docs/none: got %d, want 404", a.Status)
	}
}

// The settings page of the docs names every variable that a program knows.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range settings.Known() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
}
