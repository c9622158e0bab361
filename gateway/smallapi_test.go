package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/pushdown/store"
)

// A max that is not positive is ignored, as in OpenTSDB.
func TestSuggest_max(t *testing.T) {
	b := open(t, nil)
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("m%02d 1356998400 1 host=a", i))
	}
	b.put(lines...)

	for max, want := range map[string]int{"0": 25, "-1": 25, "28": 28, "2147483647": 30} {
		var names []string
		a := b.get("/api/suggest?type=metrics&q=m&max=" + max)
		if err := json.Unmarshal([]byte(a.body), &names); err != nil || a.status != 200 || len(names) != want {
			t.Errorf("max=%s: %d, %d names, want 200 and %d", max, a.status, len(names), want)
		}
	}
	b.refused(b.get("/api/suggest?type=metrics&max=2147483648"), 400, "Unable to parse 'max' as a number")
}

// /api/search/values lists the values of a tag, by other tags, and says whether there are more.
func TestSearchValues(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=b dc=eu", "m 1356998400 1 host=a dc=eu", "m 1356998400 1 host=c dc=us", "m 1356998400 1 rack=r", "other 1356998400 1 host=z dc=eu")
	f := func(query, body, want string) {
		t.Helper()
		method := "GET"
		if body != "" {
			method = "POST"
		}
		if a := b.do(method, "/api/search/values"+query, strings.NewReader(body)); a.status != 200 || a.body != want {
			t.Errorf("%s %s: %d %s, want %s", query, body, a.status, a.body, want)
		}
	}
	f("?tagk=host&m=m", "", `{"values":["a","b","c"],"more":false}`)
	f("?tagk=host&m=m{dc=eu}", "", `{"values":["a","b"],"more":false}`)
	f("?tagk=dc&limit=1", `{"metric":"m","limit":2}`, `{"values":["eu","us"],"more":false}`)
	f("?tagk=host", `{"metric":"m","tags":[{"key":"dc","value":"eu"},{"key":"dc","value":"us"}],"limit":3}`, `{"values":["a","b","c"],"more":false}`)
	f("?tagk=rack", `{"metric":"other"}`, `{"values":[],"more":false}`)
	if a := b.get("/api/search/values?tagk=host&m=m&limit=2"); !strings.HasSuffix(a.body, `"more":true}`) {
		t.Errorf("two of three: %s, want more", a.body)
	}

	b.refused(b.get("/api/search/values?m=m"), 400, "tagk")
	b.refused(b.get("/api/search/values?tagk=host"), 400, "Missing parameter")
	b.refused(b.get("/api/search/values?tagk=host&m=m&limit=0"), 400, "limit: got 0, want 1 to 10000")
	b.refused(b.get("/api/search/values?tagk=host&m=m&limit=10001"), 400, "limit: got 10001")
	b.refused(b.get("/api/search/values?tagk=nothing&m=m"), 404, "Unable to resolve one or more UIDs")
	b.refused(b.get("/api/search/values?tagk=host&m=nothing"), 404, "Unable to resolve one or more UIDs")
}

// A bulk deletion with an empty UID fails with the same text as message and as details, as OpenTSDB
// answers errors of deletions.
func TestBulkDelete_emptyUID(t *testing.T) {
	b := open(t, nil)
	a := b.do("DELETE", "/api/annotation/bulk?start_time=1356998400&tsuids=", nil)
	b.refused(a, 400, "UID was empty")
	var body struct{ Error struct{ Details string } }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Details != "UID was empty" {
		t.Errorf("details: %s", a.body)
	}
}

// /logs returns what the gateway has logged, as text and as a list, and refuses to set a level.
func TestLogs(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.AllowDelete = true })
	b.put("m 1356998400 1 host=a")
	if a := b.do("DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:m", nil); a.status != 200 {
		t.Fatalf("deletion: got %d %s, want 200", a.status, a.body)
	}
	a := b.get("/logs")
	if a.status != 200 || !strings.Contains(a.body, "\tINFO\tmain\tdownpour\ta query deleted what it read rows=1") {
		t.Errorf("/logs: got %d %s, want the log line of the deletion", a.status, a.body)
	}
	var lines []string
	if err := json.Unmarshal([]byte(b.get("/logs?json").body), &lines); err != nil || strings.Join(lines, "\n")+"\n" != a.body {
		t.Errorf("%v: as a list %q, as text %q", err, lines, a.body)
	}
	b.refused(b.get("/logs?level=DEBUG"), 400, "not set by a request")
	if a := b.get("/s/"); a.status != 404 {
		t.Errorf("/s/: %d, want 404", a.status)
	}
}

// What only tells about the server is for GET and POST, as in OpenTSDB.
func TestSmallRoutes_verbs(t *testing.T) {
	b := open(t, nil)
	for _, path := range []string{"/api/version", "/version", "/api/aggregators", "/aggregators", "/api/config", "/api/config/filters"} {
		for verb, want := range map[string]int{"GET": 200, "POST": 200, "PUT": 405, "DELETE": 405} {
			if a := b.do(verb, path, nil); a.status != want {
				t.Errorf("%s %s: %d %s, want %d", verb, path, a.status, a.body, want)
			}
		}
	}
}

// A query of rows with a UID that has no name, as after a name was deleted, is 400 with OpenTSDB's
// text. A filter that leaves such rows out does not fail.
func TestQuery_nameless(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	rows, err := b.store.Get(t.Context(), "tsdb-uid", "id", [][]byte{[]byte("m"), []byte("host")})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows of UIDs, %v", len(rows), err)
	}
	tags := encoding.DefaultSchema().AppendTags(nil, []encoding.TagPair{{K: rows[0].Cells[0].Value, V: encoding.UID{0xFF, 0xFF, 1}}})
	key := encoding.DefaultSchema().AppendRowKey(nil, rows[1].Cells[0].Value, 1356998400, tags)
	if err := b.store.Apply(t.Context(), "tsdb", []store.Mutation{{Row: key, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}}}); err != nil {
		t.Fatal(err)
	}
	const text = "No such unique ID for 'tagv': [-1, -1, 1]"
	for _, m := range []string{"none:m", "sum:m%7Bhost=*%7D"} {
		if a := b.get("/api/query?start=1356998400&m=" + m); a.status != 400 || !strings.Contains(a.body, `"message":"`+text+`","details":"`+text+`"`) {
			t.Errorf("%s: %d %s, want 400 %s", m, a.status, a.body, text)
		}
	}
	if a := b.get("/api/query?start=1356998400&m=sum:m%7Bhost=a%7D"); a.status != 200 {
		t.Errorf("the other series: %d %s", a.status, a.body)
	}
}
