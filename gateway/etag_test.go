package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"downpour/encoding/batch"
	"downpour/gateway"
)

// pastQuery is a query of metric m that ends in the past, so that its answer gets an ETag.
const pastQuery = "/api/query?start=1356998400&end=1356998500&m=sum:m"

// An equal answer has an equal ETag, and is not sent again to a client that has it. A late point, a
// corrected one, a new series, an annotation or a deletion gives another ETag.
func TestETag(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.AllowDelete = true })
	b.put("m 1356998400 1 host=a")
	tag := ""
	changed := func(what string) {
		t.Helper()
		a := b.get(pastQuery, "If-None-Match", tag)
		now := a.header.Get("ETag")
		if a.status != 200 || now == tag || !strings.HasPrefix(now, `W/"`) || a.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d, tag %s, before %s, %v", what, a.status, now, tag, a.header)
		}
		tag = now
		for _, have := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			if a := b.get(pastQuery, "If-None-Match", have); a.status != http.StatusNotModified || a.body != "" || a.header.Get("ETag") != tag {
				t.Errorf("%s: If-None-Match %s: %d %s, want 304", what, have, a.status, a.body)
			}
		}
	}
	changed("first")
	b.put("m 1356998410 2 host=a")
	changed("a late point")
	b.put("m 1356998410 3 host=a")
	changed("a corrected point")
	b.put("m 1356998410 3.0 host=a")
	changed("the same value as a float")
	b.put("m 1356998400 1 host=b")
	changed("a new series")
	b.post("/api/annotation", `{"startTime":1356998405,"tsuid":"000001000001000001","notes":"n"}`)
	changed("an annotation")
	// What lies outside the answer does not change it.
	b.put("m 1357084800 1 host=a")
	if a := b.get(pastQuery, "If-None-Match", tag); a.status != http.StatusNotModified {
		t.Errorf("a point of another day: %d", a.status)
	}
	if a := b.do("DELETE", pastQuery, nil, "If-None-Match", tag); a.status != 200 || a.header.Get("ETag") != "" {
		t.Errorf("a deletion: %d %v", a.status, a.header)
	}
	changed("a deletion")
}

// Each form of an answer has an ETag of its own. POST has the same as GET, compression does not
// change it, and an answer that is too large to be held back has one, too.
func TestETag_forms(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1356998401 2.5 host=b")
	body := `{"start":1356998400,"end":1356998500,"queries":[{"aggregator":"sum","metric":"m"}]}`
	tags := map[string]string{}
	f := func(form string, ask func(header ...string) answer) {
		t.Helper()
		first, again := ask(), ask()
		tag := first.header.Get("ETag")
		if first.status != 200 || tag == "" || again.header.Get("ETag") != tag || again.body != first.body {
			t.Errorf("%s: %d %v, then %v", form, first.status, first.header, again.header)
		}
		if a := ask("If-None-Match", tag); a.status != http.StatusNotModified {
			t.Errorf("%s: %d, want 304", form, a.status)
		}
		if a := ask("Accept-Encoding", "gzip"); a.header.Get("ETag") != tag {
			t.Errorf("%s compressed: tag %s, want %s", form, a.header.Get("ETag"), tag)
		}
		for other, seen := range tags {
			if seen == tag {
				t.Errorf("%s and %s have the same tag", form, other)
			}
		}
		tags[form] = tag
	}
	get := func(path string, more ...string) func(...string) answer {
		return func(header ...string) answer { return b.get(path, append(header, more...)...) }
	}
	f("map", get(pastQuery))
	f("arrays", get(pastQuery+"&arrays"))
	f("jsonp", get(pastQuery+"&jsonp=f"))
	f("milliseconds", get(pastQuery+"&ms"))
	f("query", get(pastQuery+"&show_query"))
	f("Arrow", get(pastQuery, "Accept", batch.StreamMediaType))
	f("empty", get("/api/query?start=1366998400&end=1366998500&m=sum:m"))
	if tag := b.post("/api/query", body).header.Get("ETag"); tag != tags["map"] {
		t.Errorf("POST: tag %s, want that of GET, %s", tag, tags["map"])
	}
	if a := b.post("/api/query", body, "If-None-Match", tags["map"]); a.status != http.StatusNotModified {
		t.Errorf("POST with the tag: %d, want 304", a.status)
	}

	// 300,000 points are more than the gateway holds back.
	large := "/api/query?start=1356998400&end=1357298399&ms&m=sum:1s-sum-zero:m"
	a := b.get(large)
	if a.status != 200 || len(a.body) < 5<<20 || !strings.HasSuffix(a.body, `"1357298399000":0.0}}]`) || a.header.Get("ETag") == "" {
		t.Errorf("large: %d, %d bytes, %v", a.status, len(a.body), a.header)
	}
	if a := b.get(large, "If-None-Match", a.header.Get("ETag")); a.status != http.StatusNotModified {
		t.Errorf("large, again: %d", a.status)
	}
}

// Answers whose end moves with the clock or lies in the future have no ETag, and errors have none.
func TestETag_none(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	for _, q := range []string{"start=1356998400", "start=1356998400&end=now", "start=1356998400&end=NOW", "start=1356998400&end=1m-ago", "start=1356998400&end=4000000000"} {
		if a := b.get("/api/query?"+q+"&m=sum:m", "If-None-Match", "*"); a.status != 200 || a.header.Get("ETag") != "" || a.header.Get("Cache-Control") != "" {
			t.Errorf("%s: %d %v", q, a.status, a.header)
		}
	}
	if a := b.get(strings.Replace(pastQuery, "sum:m", "sum:unknown", 1), "If-None-Match", "*"); a.status != 400 || a.header.Get("ETag") != "" {
		t.Errorf("an error: %d %v", a.status, a.header)
	}
}
