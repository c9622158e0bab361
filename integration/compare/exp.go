package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Expressions compares two answers to a request of /api/query/exp with a body, under the
// rules that compatibility.md has for it. rule names the one that was used, "" if none.
// ask asks our server the request with another body.
func (c Comparer) Expressions(
	body string, want, got Answer, ask func(body string) []byte,
) (r Report, rule string, err error) {
	if must, ok := errorRule(body, want, got); ok {
		message := ErrorMessage(got.Body)
		if !slices.Contains(must.statuses, got.Status) || !strings.Contains(message, must.text) {
			c.add(&r, Difference{
				Kind: Status,
				Want: fmt.Sprint(must.statuses, " ", must.text),
				Got:  strconv.Itoa(got.Status) + " " + message,
			})
		}
		return r, must.rule, nil
	}

	for _, general := range Rules {
		if general.Apply(&want, &got) {
			rule = general.Name
		}
	}
	for _, text := range quotedObjects {
		if strings.HasPrefix(ErrorMessage(want.Body), text.begin) && cutBoth(&want, &got, text.before) {
			rule = "quoted Java objects"
		}
	}
	if want.Status == http.StatusOK && got.Status == http.StatusOK {
		shifted, err := usersWithOtherTimes(body, ask)
		if err != nil {
			return r, rule, err
		}
		if len(shifted) > 0 {
			rule = "expressions of expressions go by time"
			want.Body, got.Body = withoutOutputs(want.Body, shifted), withoutOutputs(got.Body, shifted)
		}
	}
	// OpenTSDB computes a metric's values last, and only if an output needs them.
	if strings.HasPrefix(ErrorMessage(got.Body), "Got Infinity: ") &&
		(want.Status == http.StatusBadRequest || want.Status == http.StatusOK && hasUnused(body)) {
		return r, "metrics are computed first, and all of them", nil
	}
	r, err = c.Answers(want, got)
	return r, rule, err
}

// hasUnused reports whether a request has a metric that no output needs.
func hasUnused(body string) bool {
	var request struct {
		Metrics, Outputs []struct{ ID string }
		Expressions      []struct{ ID, Expr string }
	}
	if json.Unmarshal([]byte(body), &request) != nil {
		return false
	}
	needed := map[string]bool{}
	var need func(id string)
	need = func(id string) {
		if needed[id] {
			return // also where expressions use each other in a circle
		}
		needed[id] = true
		for _, e := range request.Expressions {
			if e.ID == id {
				for _, used := range name.FindAllString(e.Expr, -1) {
					need(used)
				}
			}
		}
	}
	for _, o := range request.Outputs {
		need(o.ID)
	}
	// Without outputs the expressions are put out, and without these all metrics.
	if len(request.Outputs) == 0 {
		for _, e := range request.Expressions {
			need(e.ID)
		}
	}
	if len(request.Outputs)+len(request.Expressions) == 0 {
		return false
	}
	return slices.ContainsFunc(request.Metrics, func(m struct{ ID string }) bool { return !needed[m.ID] })
}

// expError is what our answer must be where OpenTSDB's is an error that is not ours.
type expError struct {
	rule     string
	statuses []int
	text     string // in the error's message
}

var (
	// script is what JEXL runs and the language here does not have: statements, members,
	// calls, texts, assignments.
	script = regexp.MustCompile(`[;{}'."]|\w\(|[^=!<>]=[^=]`)
	number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?f?`)
	name   = regexp.MustCompile(`\w+`)
	// javaClass stands before the reason of a fault that Jackson found.
	javaClass = regexp.MustCompile(
		"^com\\.fasterxml\\.[\\w.]+: (?:Cannot construct instance of `[^`]+`, problem: ([^\\n]*))?",
	)
	// quotedObjects are messages in which OpenTSDB prints Java objects behind a text.
	quotedObjects = []struct{ begin, before string }{
		{"No intersections found: ", "found: "},
		{"Expression returned a result of type: ", " for "},
	}
	// noMessage is the whole answer to an exception without a message. A JVM that has thrown a null pointer
	// often from one place throws it without.
	noMessage = `Cannot invoke "String.length()" because the return value of ` +
		`"net.opentsdb.tsd.BadRequestException.getMessage()" is null`
	// infinity begins our message of values that cannot be computed.
	infinity = "Got Infinity: "
	// operatorFault is JEXL's message of an operator that cannot compute its operands.
	operatorFault = regexp.MustCompile(`ExpressionIterator\.<init>@.*' \S+ error$`)
)

// errorRule returns the rule by which our answer differs from OpenTSDB's error.
func errorRule(body string, want, got Answer) (expError, bool) {
	const syntax = "parsing error in"
	refused := []int{http.StatusBadRequest}
	message, ours := ErrorMessage(want.Body), ErrorMessage(got.Body)
	switch {
	// Why the request fails makes no difference: OpenTSDB runs what no expression here can say.
	case usesScript(body):
		return expError{"what is no expression is refused", refused, syntax}, true
	case strings.HasPrefix(message, `Cannot invoke "`), bytes.HasPrefix(want.Body, []byte(noMessage)),
		message == "No more data", strings.HasPrefix(message, "Wrong id.length = 0"):
		// OpenTSDB fails on a group without points, and on an expression that lacks a time
		// of its user, and does not read further: 400 is for what else the request has wrong.
		return expError{"a null pointer is answered", []int{http.StatusOK, http.StatusBadRequest}, ""}, true
	case want.Status == http.StatusBadRequest && differentFaults(message, ours) && expressions(body) > 1:
		// OpenTSDB joins expressions in the order of a graph in which only those stand that use
		// others or are used, and evaluates them in the order of a hash.
		return expError{"of two faulty expressions either is told", refused, ""}, true
	case operatorFault.MatchString(message) && strings.HasPrefix(ours, infinity):
		return expError{"infinity fails a request first", refused, infinity}, true
	case operatorFault.MatchString(message):
		return expError{"what cannot be computed is told in words", refused, "cannot evaluate"}, true
	case want.Status != http.StatusInternalServerError:
		return expError{}, false
	case strings.Contains(message, "parsing error"):
		return expError{"400 for 500", refused, syntax}, true
	}
	// Behind the class that Jackson could not make stands the reason, which is compared alone.
	// Where no reason stands, any message will do.
	if m := javaClass.FindStringSubmatch(message); m != nil {
		message = m[1]
	}
	return expError{"400 for 500", refused, message}, true
}

// faultsOfExpressions are how messages of expressions begin that can be parsed and not answered.
var faultsOfExpressions = []string{
	"No intersections found: ", "Missing results for variable ", "Expression returned a result of type: ",
	"cannot evaluate ",
}

// differentFaults reports whether two messages are of faults of different kinds that expressions
// have.
func differentFaults(theirs, ours string) bool {
	if operatorFault.MatchString(theirs) {
		theirs = "cannot evaluate " // as it is reported here
	}
	kind := func(message string) int {
		return slices.IndexFunc(faultsOfExpressions, func(begin string) bool {
			return strings.HasPrefix(message, begin)
		})
	}
	a, b := kind(theirs), kind(ours)
	return a >= 0 && b >= 0 && a != b
}

// expressions returns the number of expressions of a request.
func expressions(body string) int {
	var request struct{ Expressions []json.RawMessage }
	_ = json.Unmarshal([]byte(body), &request) // a body that is no JSON has none
	return len(request.Expressions)
}

// ErrorMessage returns the message of an error object, "" of anything else.
func ErrorMessage(body []byte) string {
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Error.Message
}

// usesScript reports whether a request has an expression that JEXL runs as a script, which the
// language here cannot say.
func usesScript(body string) bool {
	var request struct{ Expressions []struct{ Expr string } }
	if json.Unmarshal([]byte(body), &request) != nil {
		return false
	}
	for _, e := range request.Expressions {
		// The point of a number would be taken for that of a member.
		if script.MatchString(number.ReplaceAllString(e.Expr, "1")) {
			return true
		}
	}
	return false
}

// usersWithOtherTimes returns the ids of those expressions of a request that have a row at
// a time at which an expression that they use has none. OpenTSDB then gives the value of
// the used one's next time, and so do those that use them.
func usersWithOtherTimes(body string, ask func(body string) []byte) (ids []string, err error) {
	var request map[string]json.RawMessage
	var expressions []struct{ ID, Expr string }
	if json.Unmarshal([]byte(body), &request) != nil || json.Unmarshal(request["expressions"], &expressions) != nil {
		return nil, nil
	}
	// Without outputs the answer has all expressions, and no metrics.
	request["outputs"] = json.RawMessage("[]")
	all, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("request of all outputs: %w", err)
	}
	var answer struct {
		Outputs []struct {
			ID  string
			DPs [][]json.RawMessage
		}
	}
	if err := json.Unmarshal(ask(string(all)), &answer); err != nil {
		return nil, fmt.Errorf("answer with all outputs: %w", err)
	}

	times := map[string]map[string]bool{}
	for _, o := range answer.Outputs {
		times[o.ID] = map[string]bool{}
		for _, row := range o.DPs {
			times[o.ID][string(row[0])] = true
		}
	}
	// uses reports whether a used expression has other times itself, or other values because of
	// one that it uses.
	uses := func(id, used string) bool {
		usedTimes, ok := times[used] // of metrics and other words there are none
		for ms := range times[id] {
			if ok && !usedTimes[ms] {
				return true
			}
		}
		return slices.Contains(ids, used)
	}
	for before := -1; before < len(ids); { // until no expression uses one more of them
		before = len(ids)
		for _, e := range expressions {
			if !slices.Contains(ids, e.ID) &&
				slices.ContainsFunc(name.FindAllString(e.Expr, -1), func(used string) bool {
					return uses(e.ID, used)
				}) {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids, nil
}

// withoutOutputs removes the outputs with some ids from an answer.
func withoutOutputs(body []byte, ids []string) []byte {
	v, err := parse(body)
	answer, ok := v.(map[string]any)
	if err != nil || !ok {
		return body
	}
	outputs, _ := answer["outputs"].([]any)
	answer["outputs"] = slices.DeleteFunc(outputs, func(o any) bool {
		fields, _ := o.(map[string]any)
		id, _ := fields["id"].(string)
		return slices.Contains(ids, id)
	})
	without, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return without
}
