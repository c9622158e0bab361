package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// With match=substring names are found by any part of them, also those that were put a moment ago, and a header
// says how many there are. Without it they are those that begin with the text, as in OpenTSDB.
func TestSuggest_substring(t *testing.T) {
	b := open(t, nil)
	f := func(query, want, total string) {
		t.Helper()
		a := b.Get("/api/suggest?" + query)
		if a.Status != http.StatusOK || a.Body != want || a.Header.Get("Downpour-Total") != total {
			t.Errorf("%s: %d %s, total %q, want %s, %q", query, a.Status, a.Body, a.Header.Get("Downpour-Total"), want,
				total)
		}
	}
	f("type=metrics&q=cpu&match=substring", `[]`, "0")
	b.Put("sys.cpu.user 1356998400 1 host=web01", "sys.cpu.nice 1356998400 1 host=web02")
	f("type=metrics&q=CPU&match=substring", `["sys.cpu.nice","sys.cpu.user"]`, "2")
	f("type=metrics&q=cpu+us&match=substring", `["sys.cpu.user"]`, "1")
	f("type=metrics&q=cpu", `[]`, "")
	b.Put("cpu.load 1356998400 1 host=db01")
	f("type=metrics&q=cpu&match=substring&max=2", `["cpu.load","sys.cpu.nice"]`, "3")
	f("type=tagv&q=01&match=substring", `["db01","web01"]`, "2")
	f("type=tagk&q=os&match=substring", `["host"]`, "1")
	a := b.Post("/api/suggest", `{"type":"tagv","q":"eb","match":"substring","max":1}`)
	if a.Body != `["web01"]` || a.Header.Get("Downpour-Total") != "2" {
		t.Errorf("POST: %s of %q, want web01 of 2", a.Body, a.Header.Get("Downpour-Total"))
	}
	a = b.Get("/api/suggest?type=metrics&match=substring&order=newest&max=2")
	if a.Body != `["cpu.load","sys.cpu.nice"]` || a.Header.Get("Downpour-Order") != "newest" {
		t.Errorf("order=newest: %s in order %q, want those put last, newest", a.Body, a.Header.Get("Downpour-Order"))
	}
	if a := b.Get("/api/suggest?type=tagv&order=newest"); a.Status != http.StatusBadRequest ||
		!strings.Contains(a.Body, "newest, with match=substring") {
		t.Errorf("order=newest alone: %d %s, want 400 that names match=substring", a.Status, a.Body)
	}
	if a := b.Get("/api/suggest?type=tagv&match=fuzzy"); a.Status != http.StatusBadRequest ||
		!strings.Contains(a.Body, "fuzzy, want substring") {
		t.Errorf("match=fuzzy: %d %s, want 400 that names substring", a.Status, a.Body)
	}
}

// The error for a name that does not exist suggests names that may be meant. Its message is OpenTSDB's.
func TestSuggest_unknownName(t *testing.T) {
	b := open(t, nil)
	b.Put("sys.cpu.user 1356998400 1 host=web01")
	f := func(m, want string) {
		t.Helper()
		a := b.Get("/api/query?start=1356998400&m=" + m)
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s, want 400 with %s", m, a.Status, a.Body, want)
		}
	}
	f("sum:cpu.user", `"message":"No such name for 'metrics': 'cpu.user'","details":"No such name for 'metrics': `+
		`'cpu.user'","suggestions":["sys.cpu.user"]}`)
	f("sum:sys.cpu.user{hots=web01}", `"suggestions":["host"]`)
	f("sum:sys.cpu.user{host=wev01}", `"suggestions":["web01"]`)
	f("sum:sys.cpu.user{host=db}", `"details":"No such name for 'tagv': 'db'"}`)
}
