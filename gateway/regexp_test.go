package gateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"downpour/gateway"
)

// Filters by expressions that RE2 has not: whether the values are listed beforehand or are looked
// at series by series, the answer has the series in whose values Java finds them. One that takes
// too many steps is an error, never a short answer.
//
//fault:slow-expression-admits-nothing err != nil => err != nil && false
func TestRegexp_tooSlow(t *testing.T) {
	for name, limit := range map[string]int{"listed": 0, "series by series": 1} {
		b := open(t, func(c *gateway.Config) { c.ExpansionLimit = limit })
		long := strings.Repeat("a", 150)
		b.Put("m 1356998400 1 host=web01", "m 1356998400 2 host=test01", "m 1356998400 4 host=lga-lga",
			"m 1356998400 8 host="+long)
		ask := func(expression string) answer {
			return b.Get("/api/query?start=1356998400&end=1356998500&m=sum:m" +
				url.QueryEscape("{}{host=regexp("+expression+")}"))
		}
		for expression, want := range map[string]string{
			`^(?!test)`: `"1356998400":13`, `^(\w+)-\1$`: `"1356998400":4`, `(?<!test)01`: `"1356998400":1`,
			`\ba++$`: `"1356998400":8`, `^(?!.*\d)(?!.*-)`: `"1356998400":8`,
		} {
			if a := ask(expression); a.Status != http.StatusOK || !strings.Contains(a.Body, want) {
				t.Errorf("%s, %s: %d %s, want %s", name, expression, a.Status, a.Body, want)
			}
		}
		b.Refused(ask(`(a*)(a*)(a*)(a*)(a*)(a*)\1x`), http.StatusRequestEntityTooLarge, "too many steps")
		b.Refused(ask(`^(?!(x))\1`), http.StatusBadRequest, "look-around")
	}
}
