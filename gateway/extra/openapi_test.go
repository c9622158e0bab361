package extra_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/openapi"
	"downpour/gateway/gatewaytest"
	"downpour/integration/conformance"
	"downpour/pushdown/rpc/auth"
)

// described is the description of the API, with its schemas made strict: an object has no members but
// those that are described, so that nothing is missing from the description.
type described struct {
	*testing.T
	doc      *openapi.Document
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

func describe(t *testing.T) *described {
	t.Helper()
	doc, err := openapi.Parse(openapi.JSON)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON))
	if err != nil {
		t.Fatal(err)
	}
	makeStrict(text)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", text); err != nil {
		t.Fatal(err)
	}
	return &described{t, doc, c, map[string]*jsonschema.Schema{}}
}

// makeStrict forbids members that are not described, wherever the description does not allow them.
func makeStrict(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, object := n["properties"].(map[string]any); object && n["additionalProperties"] == nil {
			n["additionalProperties"] = false
		}
		for _, child := range n {
			makeStrict(child)
		}
	case []any:
		for _, child := range n {
			makeStrict(child)
		}
	}
}

// schema returns the schema at a place of the description.
func (d *described) schema(place ...string) *jsonschema.Schema {
	d.Helper()
	for i, word := range place {
		place[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(word)
	}
	at := "openapi.json#/" + strings.Join(place, "/")
	if d.schemas[at] == nil {
		s, err := d.compiler.Compile(at)
		if err != nil {
			d.Fatal(err)
		}
		d.schemas[at] = s
	}
	return d.schemas[at]
}

// find returns the path of the description that a request's path has, and its operation.
func (d *described) find(method, path string) (string, openapi.Operation, bool) {
	words := strings.Split(strings.ToLower(strings.Trim(path, "/")), "/")
	if len(words) > 1 && words[0] == "api" && words[1] == "v1" {
		words = slices.Delete(words, 1, 2)
	}
	best := ""
	for _, p := range d.doc.Paths {
		has := strings.Split(strings.Trim(p.Path, "/"), "/")
		if len(has) != len(words) {
			continue
		}
		equal := true
		for i, w := range has {
			equal = equal && (w == words[i] || strings.HasPrefix(w, "{"))
		}
		// A path without a template counts before one with it.
		if equal && (best == "" || strings.Count(p.Path, "{") < strings.Count(best, "{")) {
			best = p.Path
		}
	}
	o, ok := d.doc.Find(best, strings.ToLower(method))
	return best, o, ok
}

// checkAnswer returns what is wrong with an answer by its description, "" if nothing is.
func (d *described) checkAnswer(path string, o openapi.Operation, status int, kind string, body []byte) string {
	d.Helper()
	key := strconv.Itoa(status)
	answer, ok := o.Responses[key]
	if !ok {
		key = "default"
		if answer, ok = o.Responses[key]; !ok || status < 400 {
			return fmt.Sprintf("status %d is not described", status)
		}
	}
	place := []string{"paths", path, o.Method, "responses", key}
	if answer.Ref != "" {
		place = strings.Split(strings.TrimPrefix(answer.Ref, "#/"), "/")
		answer = d.doc.Response(answer)
	}
	if len(body) == 0 {
		return ""
	}
	kind, _, _ = strings.Cut(kind, ";")
	if _, ok := answer.Content[kind]; !ok {
		return fmt.Sprintf("status %d: a body of type %s is not described: %.100s", status, kind, body)
	}
	if kind != "application/json" {
		return ""
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Sprintf("status %d: %v: %.100s", status, err, body)
	}
	withoutMarks(value)
	if err := d.schema(append(place, "content", kind, "schema")...).Validate(value); err != nil {
		return fmt.Sprintf("status %d: %.1000v: %.300s", status, err, body)
	}
	return ""
}

// withoutMarks removes what recorded error objects have and ours never do: stack traces, and the mark of a
// message that was cut when it was recorded.
func withoutMarks(answer any) {
	if object, ok := answer.(map[string]any); ok {
		if e, ok := object["error"].(map[string]any); ok {
			delete(e, "trace")
			delete(e, "cut")
		}
	}
}

// Every route has an operation in the description, and every path of it is a route.
func TestOpenAPI_routes(t *testing.T) {
	d := describe(t)
	routes := routesOf(t)
	seen := map[string]bool{}
	for _, p := range d.doc.Paths {
		route, ok := routeOf(routes, p.Path)
		if !ok {
			t.Errorf("%s is described and is no route", p.Path)
		}
		seen[route] = true
		for _, o := range p.Operations {
			if got, want := o.Scope, scopeName(route, o.Method); got != want {
				t.Errorf("%s %s: described with the scope %q, want %q", o.Method, p.Path, got, want)
			}
			if len(o.Tags) != 1 || o.Summary == "" {
				t.Errorf("%s %s: want one tag and a summary", o.Method, p.Path)
			}
		}
	}
	for route := range routes {
		if !seen[route] {
			t.Errorf("route %q is not described", route)
		}
	}
}

// routeOf returns the route of a path of the description: itself, or the one of what is below it.
func routeOf(routes map[string]httpio.Endpoint, path string) (string, bool) {
	route := strings.Trim(path, "/")
	if _, ok := routes[route]; ok {
		return route, true
	}
	words := strings.Split(route, "/")
	if len(words) > 2 {
		if _, ok := routes[words[0]+"/"+words[1]+"/"]; ok {
			return words[0] + "/" + words[1] + "/", true
		}
	}
	_, ok := routes[words[0]]
	return words[0], ok && words[0] == "docs" // the pages below are files
}

// scopeName is the scope that a request needs, by the tables of the doors.
func scopeName(route, method string) string {
	if route == "api/ws" { // which checks its token itself
		return "read"
	}
	scope := routeScopes[route] | asking[strings.ToUpper(method)+" "+route].more
	switch {
	case scope&auth.Admin != 0:
		return "admin"
	case scope&auth.Write != 0:
		return "write"
	case scope&auth.Read != 0:
		return "read"
	}
	return ""
}

// recordedSteps are all requests of the recordings that have the form of a session.
func recordedSteps(t *testing.T) map[string][]conformance.Query {
	all := map[string][]conformance.Query{}
	for _, name := range []string{
		"api", "exp", "gexp_seed11", "histogram_seed31", "q_seed51", "rollup_seed21", "rollup_seed23",
		"tree_seed41",
	} {
		var r struct{ Steps, Queries []conformance.Query }
		gatewaytest.Decode(t, name, &r)
		all[name] = append(r.Steps, r.Queries...)
	}
	var session []conformance.Query
	gatewaytest.Decode(t, "metadata", &session)
	all["metadata"] = session
	for name := range gatewaytest.Recordings {
		var r conformance.Data
		gatewaytest.Decode(t, name, &r)
		for _, q := range r.Queries {
			all[name] = append(all[name], conformance.Query{
				Method:   http.MethodPost,
				Path:     q.Path,
				Body:     string(q.Request),
				Status:   q.Status,
				Response: q.Response,
			})
		}
	}
	return all
}

// notOurs are recorded steps that the description does not cover, by method, path and status.
var notOurs = map[string]string{
	"GET /api/stats/threads 200":         "501 here",
	"GET /api/stats/region_clients 200":  "501 here",
	"POST /api/stats/region_clients 200": "501 here",
	"GET /favicon.ico 200":               "pages name their icon here",
	"GET /logs 400":                      "OpenTSDB had no log to show",
}

// What a real OpenTSDB was asked, and what it answered, fit the description: bodies and parameters of
// requests that were taken, and all answers of the verbs that are described.
func TestOpenAPI_recorded(t *testing.T) {
	t.Parallel()
	d := describe(t)
	requests, answers, apart := 0, 0, 0
	for name, steps := range recordedSteps(t) {
		wrong := 0
		fault := func(i int, s conformance.Query, what string) {
			if wrong++; wrong <= 5 {
				t.Errorf("%s, step %d: %s %s %.200s: %s", name, i, s.Method, s.Path, s.Body, what)
			}
		}
		for i, s := range steps {
			u, err := url.Parse(s.Path)
			// The last is the refusal of another site's page, which has the status 200.
			if s.Path == "" || err != nil ||
				s.Status == 200 && strings.Contains(string(s.Response), "CORS domain not allowed") {
				continue
			}
			path, o, ok := d.find(s.Method, u.Path)
			if !ok || notOurs[fmt.Sprintf("%s %s %d", s.Method, u.Path, s.Status)] != "" {
				apart++
				continue
			}
			if s.Status < 400 {
				requests++
				if what := d.checkRequest(path, o, u.Query(), s.Body); what != "" {
					fault(i, s, what)
				}
			}
			answers++
			kind, body := recordedBody(s)
			if what := d.checkAnswer(path, o, s.Status, kind, body); what != "" &&
				s.Status != http.StatusMethodNotAllowed {
				fault(i, s, what)
			}
		}
		if wrong > 5 {
			t.Errorf("%s: %d faults", name, wrong)
		}
	}
	if requests < 2000 || answers < 2500 {
		t.Errorf("%d requests and %d answers were looked at, want 2000 and 2500 at least", requests, answers)
	}
	t.Logf("%d requests, %d answers; %d steps of routes and verbs that are not described", requests, answers, apart)
}

// recordedBody returns the body of a recorded answer with its type.
func recordedBody(s conformance.Query) (kind string, body []byte) {
	var plain struct{ Text *string }
	switch {
	case string(s.Response) == "null" || len(s.Response) == 0:
		return "", nil
	case json.Unmarshal(s.Response, &plain) == nil && plain.Text != nil:
		return "", nil // a page, or a text that was cut
	}
	return "application/json", s.Response
}

// checkRequest returns what is wrong with a request by its description.
func (d *described) checkRequest(path string, o openapi.Operation, parameters url.Values, body string) string {
	d.Helper()
	for name := range parameters {
		if !slices.ContainsFunc(o.Parameters, func(p openapi.Parameter) bool {
			return d.doc.Parameter(p).Name == name
		}) {
			return fmt.Sprintf("the parameter %s is not described", name)
		}
	}
	if body == "" {
		if o.RequestBody != nil && o.RequestBody.Required {
			return "the description wants a body"
		}
		return ""
	}
	if o.RequestBody == nil {
		return "a body is not described"
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return ""
	}
	withoutUnknown(value)
	if err := d.schema("paths", path, o.Method, "requestBody", "content", "application/json", "schema").
		Validate(value); err != nil {
		return err.Error()
	}
	return ""
}

// withoutUnknown removes the member by which recorded requests try whether unknown ones are passed over.
func withoutUnknown(body any) {
	switch b := body.(type) {
	case map[string]any:
		delete(b, "unknown")
		for _, child := range b {
			withoutUnknown(child)
		}
	case []any:
		for _, child := range b {
			withoutUnknown(child)
		}
	}
}

// What the gateway itself answers fits the description, asked once by every route and verb that it
// has, with data, and after queries and a dashboard were there.
func TestOpenAPI_answers(t *testing.T) {
	d := describe(t)
	b := open(t, func(cfg *gateway.Config) { cfg.AllowDelete = true })
	b.Put("m 1356998400 1 host=a")
	check := func(method, path, body string, header ...string) {
		t.Helper()
		u, err := url.Parse("/" + strings.TrimPrefix(path, "/"))
		if err != nil {
			t.Fatal(err)
		}
		described, o, ok := d.find(method, u.Path)
		if !ok {
			t.Errorf("%s %s is not described", method, path)
			return
		}
		a := b.Do(method, u.String(), strings.NewReader(body), header...)
		what := d.checkAnswer(described, o, a.Status, a.Header.Get("Content-Type"), []byte(a.Body))
		if what != "" || a.Status == http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d %s", method, path, a.Status, what)
		}
	}

	document := `{"form":1,"title":"t","panels":[]}`
	check("PUT", "api/dashboards/web", document, "If-None-Match", "*")
	for _, path := range []string{"api/dashboards", "api/dashboards/web", "api/dashboards/web/versions",
		"api/dashboards/nope", "api/search/values?tagk=host", "api/search/lookup?m=m", "api/suggest?type=metrics",
		"api/ops", "api/stats", "api/stats/query", "api/stats/jvm", "api/stats/threads", "api/config", "stats",
		"stats?json", "logs", "logs?json", "metrics", "api/query/last?timeseries=m&back_scan=10",
		"api/uid/uidmeta?uid=000001&type=metric",
		"api/query?start=1356998400&end=1357002000&m=sum:m&show_summary&show_stats&show_query&show_tsuids&trace=true",
		"api/query?start=1356998400&end=1357002000&m=sum:m&explain=true",
		"api/query?start=1356998400&end=1357002000&m=sum:m&arrays=true",
		"q?start=1356998400&end=1357002000&m=sum:m&json", "q?start=1356998400&end=1357002000&m=sum:m&png",
		"q?start=1356998400&end=1357002000&m=sum:m&svg", "q?start=1356998400&end=1357002000&m=sum:m&ascii",
		"q?start=1356998400&end=1357002000&m=sum:nope&json", "docs", "docs/api", "docs/openapi.json"} {
		check("GET", path, "")
	}
	check("POST", "api/put?details", `[{"metric":"m","timestamp":1,"value":"x","tags":{"host":"a"}}]`)
	for _, k := range knocks(t) {
		if _, _, ok := d.find(k.method, k.path[:strings.IndexByte(k.path+"?", '?')]); ok && k.route != "api/ws" &&
			k.verb == k.method {
			check(k.method, k.path, k.body)
		}
	}
	check("GET", "api/ops", "")
	check("DELETE", "api/dashboards/web", "", "If-Match", `"1"`)
	check("DELETE", "api/ops/queries/none-1", "")
}
