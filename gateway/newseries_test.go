package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Many new series that come at once, by HTTP or by telnet, get the same UIDs as one by one, and
// points that are refused give no name a UID.
func TestPut_newSeries(t *testing.T) {
	const many = 1200
	point := func(i int) (metric, value, tags string) {
		metric, value = fmt.Sprint("m", i%3), "1"
		switch i % 14 {
		case 6: // refused for its value
			return "refused.metric", "x", fmt.Sprintf("pod=refused-%d refused=a", i)
		case 13: // and for a tag's value
			return "refused.metric", "1", fmt.Sprintf("pod=refused-%d refused=!", i)
		}
		return metric, value, fmt.Sprintf("pod=p%d zone=z%d", i, i%5)
	}
	asJSON := func(i int) string {
		metric, value, tags := point(i)
		pairs := `"` + strings.NewReplacer("=", `":"`, " ", `","`).Replace(tags) + `"`
		return fmt.Sprintf(`{"metric":%q,"timestamp":1356998400,"value":%q,"tags":{%s}}`, metric, value, pairs)
	}
	asLine := func(i int) string {
		metric, value, tags := point(i)
		return fmt.Sprintf("put %s 1356998400 %s %s\n", metric, value, tags)
	}

	ways := map[string]func(b *bench){
		"HTTP, one by one": func(b *bench) {
			for i := range many {
				b.Post("/api/put", asJSON(i))
			}
		},
		"HTTP, at once": func(b *bench) {
			var all []string
			for i := range many {
				all = append(all, asJSON(i))
			}
			b.Post("/api/put", "["+strings.Join(all, ",")+"]")
		},
		"HTTP, at once, left to the decoder": func(b *bench) {
			var all []string
			for i := range many {
				all = append(all, asJSON(i))
			}
			b.Post("/api/put", "["+strings.Join(all, ",\n\t")+`,{"more":1}]`)
		},
		"telnet": func(b *bench) {
			c := b.Dial()
			var all strings.Builder
			for i := range many {
				all.WriteString(asLine(i))
			}
			fmt.Fprint(c, all.String())
			if got := strings.Count(c.Rest(), "\n"); got != many/7 {
				t.Errorf("telnet: %d lines refused, want %d", got, many/7)
			}
		},
	}
	first := ""
	for name, put := range ways {
		b := open(t, nil)
		put(b)

		got := ""
		const series = "/api/query?start=1356998400&show_tsuids&m=sum:"
		for _, path := range []string{"/api/suggest?type=metrics&max=5000", "/api/suggest?type=tagk&max=5000",
			"/api/suggest?type=tagv&max=5000", series + "m0{pod=*}", series + "m1{pod=*}", series + "m2{pod=*}"} {
			a := b.Get(path)
			if a.Status != 200 || strings.Contains(a.Body, "refused") {
				t.Fatalf("%s: %s: got %d, %.200s", name, path, a.Status, a.Body)
			}
			got += a.Body + "\n"
		}
		if stored := strings.Count(got, `"dps":{"1356998400":1}`); stored != many-many/7 {
			t.Errorf("%s: %d points stored, want %d", name, stored, many-many/7)
		}
		if first == "" {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%s: answers differ from another way's: %s", name, diff)
		}
	}
}
