package gateway_test

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
	hundred(b)
	f := func(status int, want, path string) {
		t.Helper()
		a := b.get(path)
		if a.status != status || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s %.300s, want %d and %q", path, a.status, a.header.Get("Content-Type"), a.body, status, want)
		}
		a = b.get(path + "&json")
		var object struct{ Err string }
		if strings.Contains(path, "ascii") { // ascii takes precedence over json, so there is no object
			return
		}
		if err := json.Unmarshal([]byte(a.body), &object); a.status != status || err != nil || object.Err == "" {
			t.Errorf("%s&json: got %d %.300s, want an object with the error", path, a.status, a.body)
		}
	}
	f(400, "Value out of range", somePicture+"&wxh=100000x100000&png")
	f(413, "1073676289 pixels, at most 8388608", somePicture+"&wxh=32767x32767&svg")
	f(400, "back-tick", somePicture+"&title=`id`&png")
	f(400, "No such name for &#39;metrics&#39;: &#39;&lt;b&gt;&#39;", "/q?start=1356998400&end=1356998500&m=sum:<b>&png")
	f(400, "<code>start</code>", "/q?m=sum:m&png")
	f(400, "Invalid end time: 9999999999", "/q?start=1356998400&end=9999999999000&m=sum:m&png")
	f(400, "start time (1356998400) is greater than or equal to end time: 1356998400", "/q?start=1356998400000&end=1356998400900&m=sum:m&png")
	f(413, "as text it may have 60", "/q?start=1356998400&end=1356998500&m=sum:m{host=*}&ascii")
	f(413, "Too many sub queries", somePicture+strings.Repeat("&m=sum:m", 64)+"&png")

	if a := b.do(http.MethodDelete, somePicture+"&png", nil); a.status != 405 {
		t.Errorf("DELETE: %d, want 405", a.status)
	}
	if a := b.get(somePicture + "&svg"); a.status != 200 || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") ||
		a.header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(a.body, ">m{}</text>") {
		t.Errorf("afterwards: got %d %v %.300s, want an SVG in a sandbox", a.status, a.header, a.body)
	}
}

// A link to /q without a form leads to the page, and scripts in it are not executed.
func TestGraph_redirect(t *testing.T) {
	b := open(t, nil)
	a := b.get(`/q?start=1h-ago&m=sum:x"><script>alert(1)</script>`)
	if a.status != 200 || strings.Contains(a.body, "<script") || !strings.Contains(a.body, `content="0; url=/#start=1h-ago&amp;m=sum:x`) {
		t.Errorf("got %d %s, want a redirect to the page without a script", a.status, a.body)
	}
}

// Cache-Control says how long a client may keep an answer: a day if it ends in the past for good,
// else by the age of its end and its length, and not at all if it ends in the future.
func TestGraph_maxAge(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	f := func(times, want string) {
		t.Helper()
		for _, form := range []string{"ascii", "png&wxh=100x100", "svg"} {
			a := b.get("/q?" + times + "&m=sum:m&" + form)
			if got := a.header.Get("Cache-Control"); a.status != 200 || got != "max-age="+want || a.header.Get("Age") != "0" {
				t.Errorf("%s as %s: %d %q, want max-age=%s", times, form, a.status, got, want)
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
	b.put("m 1356998400 1 host=a", "m 1357002000 2 host=a")
	lines := func(end int) int {
		return strings.Count(b.get(fmt.Sprintf("/q?start=1356998400&end=%d&m=sum:m&ascii", end)).body, "\n")
	}
	if at, behind := lines(1357001999), lines(1357002000); at != 1 || behind != 2 {
		t.Errorf("up to the last second of an hour %d points, up to the next second %d, want 1 and 2", at, behind)
	}
}

// Tags stand in the order of Java's hash table, as in OpenTSDB, not in that of their UIDs.
func TestGraph_tags(t *testing.T) {
	b := open(t, nil)
	b.put("first 1356998400 1 dc=x", "m 1356998400 1 dc=x host=a")
	if a := b.get(somePicture + "&ascii"); a.body != "m 1356998400 1 host=a dc=x\n" {
		t.Errorf("got %d %q, want host before dc", a.status, a.body)
	}
	if a := b.get(somePicture + "&svg"); !strings.Contains(a.body, ">m{host=a, dc=x}</text>") {
		t.Errorf("want a key with m{host=a, dc=x}, got %d %.300s", a.status, a.body)
	}
}

// A picture shows annotations, its times in the zone of the query, and both axes.
func TestGraph_content(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a", "m 1357001000 7 host=a", "n 1356998400 100 host=a", "n 1357001000 700 host=a")
	b.post("/api/annotation", `{"startTime":1357000000,"tsuid":"000001000001000001","description":"deploy <1>"}`)
	b.post("/api/annotation", `{"startTime":1357001000,"description":"outage"}`)
	const base = "/q?start=1356998400&end=1357002000&m=sum:m&o=&m=sum:n{host=*}&o=axis+x1y2&svg"
	f := func(options string, want, not []string) {
		t.Helper()
		a := b.get(base + options)
		for _, text := range want {
			if a.status != 200 || !strings.Contains(a.body, ">"+text+"</text>") {
				t.Errorf("%s: %d, no text %q", options, a.status, text)
			}
		}
		for _, text := range not {
			if strings.Contains(a.body, ">"+text+"</text>") {
				t.Errorf("%s: there is a text %q", options, text)
			}
		}
	}
	f("", []string{"m{host=a}", "n{host=a}", "deploy &lt;1&gt;", "00:10", "7", "700"}, []string{"outage"})
	f("&global_annotations", []string{"deploy &lt;1&gt;", "outage"}, nil)
	f("&global_annotations&no_annotations", []string{"00:10"}, []string{"deploy &lt;1&gt;", "outage"})
	f("&tz=Asia/Kathmandu", []string{"05:50", "06:00"}, []string{"00:10"})
	f("&tz=Nowhere", []string{"00:10"}, nil)
	if a := b.get("/q?start=2013/01/01-05:45:00&end=2013/01/01-06:45:00&tz=Asia/Kathmandu&m=sum:m&json"); !strings.Contains(a.body, `"plotted":2`) {
		t.Errorf("dates in a zone: %d %s", a.status, a.body)
	}
}

// A picture whose pixels do not fit in the memory budget is refused.
func TestGraph_memory(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.put("m 1356998400 1 host=a")
	if a := b.get(somePicture + "&wxh=3840x2160&png"); a.status != 413 || !strings.Contains(a.body, "DOWNPOUR_MEMORY") {
		t.Errorf("%d %.300s, want 413", a.status, a.body)
	}
	if a := b.get(somePicture + "&wxh=1024x768&png"); a.status != 200 {
		t.Errorf("a smaller picture: got %d %.900s, want 200", a.status, a.body)
	}
}

// Pictures are listed among the completed queries.
func TestGraph_listed(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	b.get(somePicture + "&png")
	var log statsQuery
	if err := json.Unmarshal([]byte(b.get("api/stats/query").body), &log); err != nil || len(log.Completed) != 1 {
		t.Errorf("got %v %+v, want one completed query", err, log)
	}
}
