package gateway_test

import (
	"testing"

	"downpour/encoding/batch"
)

// Parameters may be separated by semicolons, as in OpenTSDB, and mean the same at whatever reads
// them, such as the check of methods that a GET names. Those that cannot be decoded are refused.
//
//fault:parameters-behind-semicolons-lost http.AllowQuerySemicolons( => (
//fault:parameters-undecoded-lost checkParameters(r) => error(nil)
func TestParameters(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a", "m 1356998460 2 host=c")
	f := func(query string, want string) {
		t.Helper()
		if a := b.get(query); a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s, want %s", query, a.status, a.body, want)
		}
	}
	one := func(tags, aggregated, points string) string {
		return `{"metric":"m","tags":{` + tags + `},"aggregateTags":[` + aggregated + `],"dps":{` + points + `}}`
	}
	all, c := one("", `"host"`, `"1356998400":1,"1356998460":2`), one(`"host":"c"`, "", `"1356998460":2`)
	f("/api/query?start=1356998400;end=1356998500;m=sum:m", "["+all+"]")
	f("/api/query?start=1356998400&end=1356998500;m=sum:m;m=none:m{host=c};no_annotations", "["+all+","+c+"]")
	f("/api/suggest?type=metrics;q=n", "[]")
	b.refused(b.get("/api/query?start=1356998400;m=sum:m;method_override=DELETE"), 400, "Bad request")

	for _, path := range []string{"/api/query?start=1356998400&m=sum:m&m=sum:m%zz", "/api/suggest?type=metrics&q=%", "/q?start=1356998400&m=sum:m&json&x=%4", "/api/version?%"} {
		b.refused(b.get(path), 400, "Cannot read the parameters: invalid URL escape")
	}
}

// A request that gives Arrow the weight 0 does not get it.
func TestAccept(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	for accept, want := range map[string]string{
		batch.StreamMediaType: batch.StreamMediaType,
		"application/json, " + batch.StreamMediaType + ";q=0.1":      batch.StreamMediaType,
		"Application/vnd.apache.arrow.STREAM ; v=1;q=1":              batch.StreamMediaType,
		batch.StreamMediaType + ";q=0":                               "application/json; charset=UTF-8",
		batch.StreamMediaType + "; v=1; Q = 0.000, application/json": "application/json; charset=UTF-8",
		"*/*": "application/json; charset=UTF-8",
	} {
		if a := b.get("/api/query?start=1356998400&m=sum:m", "Accept", accept); a.status != 200 || a.header.Get("Content-Type") != want {
			t.Errorf("%s: %d %s, want %s", accept, a.status, a.header.Get("Content-Type"), want)
		}
	}
}
