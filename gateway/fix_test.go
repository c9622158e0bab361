package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"downpour/gateway"
)

// Each known error of OpenTSDB is reproduced by default. The gateway's setting corrects it, here on
// a pushdown server, and so does the query's parameter fix, which can also bring it back.
func TestFix(t *testing.T) {
	f := func(fix string, points []string, query, before, after string) {
		t.Helper()
		ask := func(b *bench, more, want string) {
			t.Helper()
			a := b.get("/api/query?start=1356998400&end=1356998500&m=" + query + more)
			if a.status != 200 || !strings.Contains(a.body, `"dps":`+want+"}") {
				t.Errorf("%s%s: %d %s, want %s", query, more, a.status, a.body, want)
			}
		}
		plain, with := open(t, nil), behind(t, 2, func(c *gateway.Config) { c.Fix = fix })
		plain.put(points...)
		with.put(points...)
		ask(plain, "", before)
		ask(plain, "&fix="+fix, after)
		ask(plain, "&fix=timezone,"+fix, after)
		ask(with, "", after)
		ask(with, "&fix=none", before)
	}
	rates := []string{"m 1356998400 0 host=a", "m 1356998410 10 host=a", "m 1356998420 20 host=a",
		"m 1356998410 1356998410 host=b", "m 1356998420 1356998430 host=b"}
	f("rate-start", rates, "sum:rate:m", `{"1356998410":2.0,"1356998420":3.0}`, `{"1356998410":1.0,"1356998420":3.0}`)
	f("rate-start", rates, "sum:10s-avg:rate:m", `{"1356998410":2.0,"1356998420":3.0}`, `{"1356998410":1.0,"1356998420":3.0}`)
	// A counter that begins below 0: its rate from 0 in 1970 is dropped as a reset, so that the
	// fix has no first rate to remove. OpenTSDB does not show the rate after it.
	f("rate-start", []string{"m 1356998400 -5 host=a", "m 1356998410 5 host=a", "m 1356998420 25 host=a"}, "sum:rate%7Bdropcounter%7D:m",
		`{"1356998420":2.0}`, `{"1356998410":1.0,"1356998420":2.0}`)

	gap := []string{"m 1356998400 3 host=a", "m 1356998420 5 host=a", "m 1356998410 7 host=b"}
	f("gaps", gap, "count:m", `{"1356998400":1,"1356998410":2,"1356998420":1}`, `{"1356998400":1,"1356998410":1,"1356998420":1}`)
	f("gaps", gap, "first:m", `{"1356998400":3,"1356998410":0,"1356998420":5}`, `{"1356998400":3,"1356998410":7,"1356998420":5}`)

	whole := []string{"m 1356998400 1 host=a", "m 1356998400 2 host=b"}
	f("integers", whole, "avg:m", `{"1356998400":1}`, `{"1356998400":1.5}`)
	f("integers", []string{"m 1356998400 9223372036854775807 host=a", "m 1356998400 1 host=b"}, "sum:m", `{"1356998400":-9223372036854775808}`, `{"1356998400":9.223372036854776E18}`)

	f("filters", []string{"m 1356998400 1 host=xa1", "m 1356998400 10 host=a1", "m 1356998400 100 host=a2"}, "sum:m%7B%7D%7Bhost=wildcard(a*1)%7D",
		`{"1356998400":11}`, `{"1356998400":10}`)
	f("filters", []string{"m 1356998400 1 host=a", "m 1356998400 10 host=b"}, "sum:m%7Bhost=literal_or(a%7Cb)%7D%7Bhost=literal_or(a)%7D",
		`{"1356998400":10}`, `{"1356998400":1}`)
	f("seconds", []string{"m 1356998400100 1 host=a", "m 1356998400200 2 host=a", "m 1356998401000 3 host=a"}, "sum:m",
		`{"1356998400":1,"1356998400":2,"1356998401":3}`, `{"1356998400":2,"1356998401":3}`)
}

// With the fix "filters" a series must pass all filters of a tag key, whatever their kinds and
// order, whether they are expanded to UIDs or, over the expansion limit, compared by name.
func TestFix_filters(t *testing.T) {
	for _, limit := range []int{0, 1} {
		b := open(t, func(c *gateway.Config) { c.Fix, c.ExpansionLimit = "filters", limit })
		for i, host := range []string{"a1", "a2", "b1", "b2"} {
			b.put(fmt.Sprintf("m 1356998400 %d host=%s dc=x", 1<<i, host), fmt.Sprintf("m 1356998400 %d host=%s dc=y", 16<<i, host))
		}
		f := func(filters string, want int) {
			t.Helper()
			body := `{"start":1356998400,"end":1356998500,"queries":[{"aggregator":"sum","metric":"m","filters":[` + filters + `]}]}`
			a := b.post("/api/query", body)
			text := fmt.Sprintf(`"dps":{"1356998400":%d}`, want)
			if want == 0 {
				text = "[]"
			}
			if a.status != 200 || !strings.Contains(a.body, text) {
				t.Errorf("limit %d: %s: %d %s, want %d", limit, filters, a.status, a.body, want)
			}
		}
		filter := func(kind, tagk, text string) string {
			return fmt.Sprintf(`{"type":%q,"tagk":%q,"filter":%q}`, kind, tagk, text)
		}
		as, ones, notA1 := filter("wildcard", "host", "a*"), filter("literal_or", "host", "a1|b1"), filter("not_literal_or", "host", "a1")
		f(as, 1+2+16+32)
		f(as+","+ones, 1+16)
		f(ones+","+as, 1+16)
		f(ones+","+as+","+notA1, 0)
		f(as+","+notA1, 2+32)
		f(filter("literal_or", "dc", "x")+","+ones+","+filter("literal_or", "host", "b1|b2"), 4)
		f(filter("literal_or", "dc", "x")+","+filter("literal_or", "host", "b1|b2")+","+ones, 4)
	}
}

func TestFix_refused(t *testing.T) {
	b := open(t, nil)
	b.refused(b.get("/api/query?start=1h-ago&m=sum:m&fix=everything"), 400, `Invalid fix: got "everything", want a list of rate-start`)
	cfg := config(0)
	cfg.Fix = "gap"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `DOWNPOUR_FIX: got "gap"`) {
		t.Errorf("got %v", err)
	}
}
