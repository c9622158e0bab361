package treeroutes

import (
	"strings"
	"testing"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/jackson/jacksontest"
)

// Every field of a rule is read as OpenTSDB reads it.
func TestBodies(t *testing.T) {
	otherwise := map[string]string{}
	for _, b := range jacksontest.Bodies(t, "rule") {
		if b.Refused && !strings.ContainsAny(b.Body[8:], "[{") &&
			(strings.HasPrefix(b.Body, `{"type":`) || strings.HasPrefix(b.Body, `{"level":-`)) {
			otherwise[b.Body] = "what is no type or level is refused behind the JSON"
		}
	}
	jacksontest.Check(t, "rule", func(body []byte) (jacksontest.Fields, error) {
		var in ruleBody
		err := httpio.ParseJSON(body, &in)
		return jacksontest.Fields{"field": in.Field, "regex": in.Regex, "separator": in.Separator,
			"description": in.Description, "notes": in.Notes, "customField": in.CustomField,
			"displayFormat": in.DisplayFormat, "level": in.Level, "order": in.Order, "treeId": in.TreeID,
			"regexGroupIdx": in.RegexGroupIdx}, err
	}, otherwise)
}
