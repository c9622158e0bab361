package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// expRecording is what was recorded of /api/query/exp.
type expRecording struct {
	Assign  [][2]string
	Points  []json.RawMessage
	Queries []expQuery
}

type expQuery struct {
	Method, Path, Body string
	Status             int
	Response           json.RawMessage
}

// Every answer of /api/query/exp that was recorded is ours too, but for what expect says.
func TestExpConformance(t *testing.T) {
	r := new(expRecording)
	loadJSON(t, "exp", r)
	cfg := config(0)
	st := memoryStore(t, cfg)
	g := start(t, cfg, st)
	fill(t, &conformance.Data{Assign: r.Assign, Points: r.Points}, g, st, cfg.Schema())

	checkExp(t, "in process", g, r)
	remote := config(0)
	remote.Pushdown = []string{pushdownServer(t, cfg, st)}
	checkExp(t, "pushdown", start(t, remote, st), r)
}

func checkExp(t *testing.T, how string, g *gateway.Server, r *expRecording) {
	t.Helper()
	equal, byRule := 0, map[string]int{}
	for i, q := range r.Queries {
		status, body := ask(t, q.Method, g.URL()+strings.TrimPrefix(q.Path, "/"), q.Body)
		want, rule := expect(q)
		if rule == "" && q.Status == http.StatusOK {
			if shifted := usersWithOtherTimes(t, g, q.Body); len(shifted) > 0 {
				want.body, body = withoutOutputs(want.body, shifted), withoutOutputs(body, shifted)
				rule = "expressions of expressions go by time"
			}
		}
		if rule != "" {
			byRule[rule]++
		}
		if err := sameExp(want, status, body); err != nil {
			t.Errorf("%s: query %d %s: %v (%s)\nstatus %d, %.400s", how, i, q.Body, err, rule, status, body)
			continue
		}
		equal++
	}
	t.Logf("%s: %d of %d answers are as they should be; by a rule: %v", how, equal, len(r.Queries), byRule)
}

// expected is what an answer should be: equal to a recorded one, or an error with a
// message that has a text in it, or any answer at all.
type expected struct {
	status int
	body   json.RawMessage // recorded; nil if only what is below counts
	text   string          // in the error's message
}

// sameExp returns how an answer differs from what it should be.
func sameExp(want expected, status int, body []byte) error {
	if want.body == nil {
		if status != want.status || !strings.Contains(errorMessage(body), want.text) {
			return fmt.Errorf("want status %d and a message with %q", want.status, want.text)
		}
		return nil
	}
	c := compare.Comparer{MessageStart: true, Permits: []compare.Permit{
		{Path: compare.Path{"error", "details"}, Reason: "free"},
		{Path: compare.Path{"error", "cut"}, Kinds: []compare.Kind{compare.Missing}, Reason: "marks a recording"},
	}}
	report, err := c.Answers(compare.Answer{Status: want.status, Body: asSets(want.body)}, compare.Answer{Status: status, Body: asSets(body)})
	if err != nil || report.Equal() {
		return err
	}
	return fmt.Errorf("%s", report)
}

func errorMessage(body []byte) string {
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Error.Message
}

var (
	// script is what JEXL runs and the language here does not have: statements, members,
	// calls, texts, assignments.
	script = regexp.MustCompile(`[;{}'."]|\w\(|[^=!<>]=[^=]`)
	plain  = regexp.MustCompile(`[0-9]+(\.[0-9]+)?f?`)
	// javaClass stands before the reason of a fault that Jackson found.
	javaClass = regexp.MustCompile("^com\\.fasterxml\\.[\\w.]+: (?:Cannot construct instance of `[^`]+`, problem: ([^\\n]*))?")
)

// expect returns what our answer to a recorded query should be, and the rule by which
// that is not the recorded answer. compatibility.md has the same rules.
func expect(q expQuery) (want expected, rule string) {
	message := errorMessage(q.Response)
	switch {
	case usesScript(q.Body):
		return expected{status: 400, text: "parsing error in"}, "what is no expression is refused"
	case strings.HasPrefix(message, `Cannot invoke "`), message == "No more data":
		return expected{status: 200}, "a null pointer is answered"
	case q.Status != http.StatusInternalServerError:
		return expected{status: q.Status, body: q.Response}, ""
	case strings.Contains(message, "parsing error"):
		return expected{status: 400, text: "parsing error in"}, "400 for 500"
	}
	if m := javaClass.FindStringSubmatch(message); m != nil {
		message = m[1]
	}
	return expected{status: 400, text: message}, "400 for 500"
}

// usesScript reports whether a request has an expression that is more than one here.
func usesScript(body string) bool {
	var request struct{ Expressions []struct{ Expr string } }
	if json.Unmarshal([]byte(body), &request) != nil {
		return false
	}
	for _, e := range request.Expressions {
		if script.MatchString(plain.ReplaceAllString(e.Expr, "1")) {
			return true
		}
	}
	return false
}

// usersWithOtherTimes returns the ids of those expressions of a request that have a row at
// a time at which an expression that they use has none. OpenTSDB then gives the value of
// the used one's next time.
func usersWithOtherTimes(t *testing.T, g *gateway.Server, body string) (ids []string) {
	var request map[string]json.RawMessage
	var expressions []struct{ ID, Expr string }
	if json.Unmarshal([]byte(body), &request) != nil || json.Unmarshal(request["expressions"], &expressions) != nil {
		return nil
	}
	request["outputs"] = json.RawMessage("[]")
	all, _ := json.Marshal(request)
	var answer struct {
		Outputs []struct {
			ID  string
			DPs [][]json.RawMessage
		}
	}
	_, text := ask(t, http.MethodPost, g.URL()+"api/query/exp", string(all))
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}

	times := map[string]map[string]bool{}
	for _, o := range answer.Outputs {
		times[o.ID] = map[string]bool{}
		for _, row := range o.DPs {
			times[o.ID][string(row[0])] = true
		}
	}
	for _, e := range expressions {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(e.Expr, -1) {
			used, ok := times[name]
			for ms := range times[e.ID] {
				if ok && !used[ms] && !slices.Contains(ids, e.ID) {
					ids = append(ids, e.ID)
				}
			}
		}
	}
	return ids
}

// withoutOutputs removes the outputs with some ids from an answer.
func withoutOutputs(body json.RawMessage, ids []string) json.RawMessage {
	var answer map[string]any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if d.Decode(&answer) != nil {
		return body
	}
	outputs, _ := answer["outputs"].([]any)
	answer["outputs"] = slices.DeleteFunc(outputs, func(o any) bool {
		id, _ := o.(map[string]any)["id"].(string)
		return slices.Contains(ids, id)
	})
	out, _ := json.Marshal(answer)
	return out
}

// asSets sorts the lists whose order is free.
func asSets(body []byte) []byte {
	var v any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return body
	}
	sortSets(v)
	sorted, _ := json.Marshal(v)
	return sorted
}

func sortSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			sortSets(e)
		}
	case map[string]any:
		for key, e := range v {
			if list, ok := e.([]any); ok && key == "aggregatedTags" {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			}
			sortSets(e)
		}
	}
}
