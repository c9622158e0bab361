package extra_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
)

// somePicture asks for metric m over the seconds that hundred has filled; the form is added.
const somePicture = "/q?start=1356998400&end=1356998500&m=sum:m"

// What cannot be drawn is refused with a page of HTML or, with json, an object.
func TestGraph_refused(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.LimitJSON, c.LimitQueries = 60, 64 })
	b.PutHundred()
	f := func(status int, want, path string) {
		t.Helper()
		a := b.Get(path)
		if a.Status != status || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s %.300s, want %d and %q",
				path, a.Status, a.Header.Get("Content-Type"), a.Body, status, want)
		}
		a = b.Get(path + "&json")
		var object struct{ Err string }
		if strings.Contains(path, "ascii") { // ascii takes precedence over json, so there is no object
			return
		}
		if err := json.Unmarshal([]byte(a.Body), &object); a.Status != status || err != nil || object.Err == "" {
			t.Errorf("%s&json: got %d %.300s, want an object with the error", path, a.Status, a.Body)
		}
	}
	f(400, "Value out of range", somePicture+"&wxh=100000x100000&png")
	f(413, "1073676289 pixels, at most 8388608", somePicture+"&wxh=32767x32767&svg")
	f(400, "back-tick", somePicture+"&title=`id`&png")
	f(400, "No such name for &#39;metrics&#39;: &#39;&lt;b&gt;&#39;",
		"/q?start=1356998400&end=1356998500&m=sum:<b>&png")
	f(400, "<code>start</code>", "/q?m=sum:m&png")
	f(400, "Invalid end time: 9999999999", "/q?start=1356998400&end=9999999999000&m=sum:m&png")
	f(400, "start time (1356998400) is greater than or equal to end time: 1356998400",
		"/q?start=1356998400000&end=1356998400900&m=sum:m&png")
	f(413, "as text it may have 60", "/q?start=1356998400&end=1356998500&m=sum:m{host=*}&ascii")
	f(413, "Too many sub queries", somePicture+strings.Repeat("&m=sum:m", 64)+"&png")

	if a := b.Do(http.MethodDelete, somePicture+"&png", nil); a.Status != 405 {
		t.Errorf("DELETE: %d, want 405", a.Status)
	}
	if a := b.Get(somePicture + "&svg"); a.Status != 200 ||
		!strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") ||
		a.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(a.Body, ">m{}</text>") {
		t.Errorf("afterwards: got %d %v %.300s, want an SVG in a sandbox", a.Status, a.Header, a.Body)
	}
}

// A link to /q without a form leads to the page, and scripts in it are not executed.
func TestGraph_redirect(t *testing.T) {
	b := open(t, nil)
	a := b.Get(`/q?start=1h-ago&m=sum:x"><script>alert(1)</script>`)
	if a.Status != 200 || strings.Contains(a.Body, "<script") ||
		!strings.Contains(a.Body, `content="0; url=/#start=1h-ago&amp;m=sum:x`) {
		t.Errorf("got %d %s, want a redirect to the page without a script", a.Status, a.Body)
	}
}

// Cache-Control says how long a client may keep an answer: a day if it ends in the past for good,
// else by the age of its end and its length, and not at all if it ends in the future.
func TestGraph_maxAge(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	f := func(times, want string) {
		t.Helper()
		for _, form := range []string{"ascii", "png&wxh=100x100", "svg"} {
			a := b.Get("/q?" + times + "&m=sum:m&" + form)
			got := a.Header.Get("Cache-Control")
			if a.Status != 200 || got != "max-age="+want || a.Header.Get("Age") != "0" {
				t.Errorf("%s as %s: %d %q, want max-age=%s", times, form, a.Status, got, want)
			}
		}
	}
	f("start=1356998400&end=1357002000", "86400")
	f("start=2048s-ago&end=1024s-ago", "1")
	f("start=3d-ago&end=2d-ago", "84")
	f("start=1h-ago", "3")
	f(fmt.Sprintf("start=1h-ago&end=%d", time.Now().Unix()+3600), "0")
}

// Points are read up to and with the second of the end, and not one second further.
func TestGraph_wholeSeconds(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1357002000 2 host=a")
	lines := func(end int) int {
		return strings.Count(b.Get(fmt.Sprintf("/q?start=1356998400&end=%d&m=sum:m&ascii", end)).Body, "\n")
	}
	if at, behind := lines(1357001999), lines(1357002000); at != 1 || behind != 2 {
		t.Errorf("up to the last second of an hour %d points, up to the next second %d, want 1 and 2", at, behind)
	}
}

// Tags stand in the order of Java's hash table, as in OpenTSDB, not in that of their UIDs.
func TestGraph_tags(t *testing.T) {
	b := open(t, nil)
	b.Put("first 1356998400 1 dc=x", "m 1356998400 1 dc=x host=a")
	if a := b.Get(somePicture + "&ascii"); a.Body != "m 1356998400 1 host=a dc=x\n" {
		t.Errorf("got %d %q, want host before dc", a.Status, a.Body)
	}
	if a := b.Get(somePicture + "&svg"); !strings.Contains(a.Body, ">m{host=a, dc=x}</text>") {
		t.Errorf("want a key with m{host=a, dc=x}, got %d %.300s", a.Status, a.Body)
	}
}

// A picture shows annotations, its times in the zone of the query, and both axes.
func TestGraph_content(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1357001000 7 host=a", "n 1356998400 100 host=a", "n 1357001000 700 host=a")
	b.Post("/api/annotation", `{"startTime":1357000000,"tsuid":"000001000001000001","description":"deploy <1>"}`)
	b.Post("/api/annotation", `{"startTime":1357001000,"description":"outage"}`)
	const base = "/q?start=1356998400&end=1357002000&m=sum:m&o=&m=sum:n{host=*}&o=axis+x1y2&svg"
	f := func(options string, want, not []string) {
		t.Helper()
		a := b.Get(base + options)
		for _, text := range want {
			if a.Status != 200 || !strings.Contains(a.Body, ">"+text+"</text>") {
				t.Errorf("%s: %d, no text %q", options, a.Status, text)
			}
		}
		for _, text := range not {
			if strings.Contains(a.Body, ">"+text+"</text>") {
				t.Errorf("%s: there is a text %q", options, text)
			}
		}
	}
	f("", []string{"m{host=a}", "n{host=a}", "deploy &lt;1&gt;", "00:10", "7", "700"}, []string{"outage"})
	f("&global_annotations", []string{"deploy &lt;1&gt;", "outage"}, nil)
	f("&global_annotations&no_annotations", []string{"00:10"}, []string{"deploy &lt;1&gt;", "outage"})
	f("&tz=Asia/Kathmandu", []string{"05:50", "06:00"}, []string{"00:10"})
	f("&tz=Nowhere", []string{"00:10"}, nil)
	if a := b.Get("/q?start=2013/01/01-05:45:00&end=2013/01/01-06:45:00&tz=Asia/Kathmandu" +
		"&m=sum:m&json"); !strings.Contains(a.Body, `"plotted":2`) {
		t.Errorf("dates in a zone: %d %s", a.Status, a.Body)
	}
}

// A picture whose pixels do not fit in the memory budget is refused.
func TestGraph_memory(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.Put("m 1356998400 1 host=a")
	if a := b.Get(somePicture + "&wxh=3840x2160&png"); a.Status != 413 || !strings.Contains(a.Body, "DOWNPOUR_MEMORY") {
		t.Errorf("%d %.300s, want 413", a.Status, a.Body)
	}
	if a := b.Get(somePicture + "&wxh=1024x768&png"); a.Status != 200 {
		t.Errorf("a smaller picture: got %d %.900s, want 200", a.Status, a.Body)
	}
}

// Pictures are listed among the completed queries.
func TestGraph_listed(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	b.Get(somePicture + "&png")
	var log struct{ Completed []any }
	if err := json.Unmarshal([]byte(b.Get("api/stats/query").Body), &log); err != nil || len(log.Completed) != 1 {
		t.Errorf("got %v %+v, want one completed query", err, log)
	}
}
