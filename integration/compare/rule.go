package compare

import (
	"encoding/json"
	"strings"
)

// Rule is a difference that is meant. It changes the wanted answer and the one
// got to what is left to be compared, and reports whether it applied.
type Rule struct {
	Name, Reason string
	Apply        func(want, got *Answer) bool
}

// Rules are the differences of answers that are meant and that no line of Standard
// can say.
var Rules = []Rule{
	{
		Name:   "quoted Java objects",
		Reason: "a message that quotes the state of Java objects is compared up to the quotation",
		Apply: func(want, got *Answer) bool {
			return cutBoth(want, got, " in this SpanGroup.Iterator")
		},
	},
	{
		Name: "one of several duplicates",
		Reason: "rows are read side by side, so of several rows with duplicates either server names the one that " +
			"it meets first",
		Apply: func(want, got *Answer) bool {
			return string(want.Body) != string(got.Body) && cutBoth(want, got, " timestamp for key=[")
		},
	},
}

// cutBoth ends the error messages of both answers before a text that both have.
func cutBoth(want, got *Answer, text string) bool {
	w, ok1 := cut(*want, text)
	g, ok2 := cut(*got, text)
	if !ok1 || !ok2 {
		return false
	}
	*want, *got = w, g
	return true
}

// cut ends the message of an error before a text. It returns false if there is no such error or text.
func cut(a Answer, text string) (Answer, bool) {
	var body struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if a.Status < 400 || json.Unmarshal(a.Body, &body) != nil {
		return a, false
	}
	start, _, found := strings.Cut(body.Error.Message, text)
	if !found {
		return a, false
	}
	body.Error.Message = start
	var err error
	a.Body, err = json.Marshal(body)
	return a, err == nil
}

// WithReference compares an answer of ours with that of a real OpenTSDB under
// the rules and the standard table. applied names the rules that were used.
func WithReference(want, got Answer) (r Report, applied []string, err error) {
	for _, rule := range Rules {
		if rule.Apply(&want, &got) {
			applied = append(applied, rule.Name)
		}
	}
	r, err = Comparer{Permits: Standard}.Answers(want, got)
	return r, applied, err
}
