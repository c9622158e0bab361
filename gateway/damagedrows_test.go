package gateway_test

import (
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/pushdown/store"
)

// damagedRow returns what writes a compacted cell of two points of m{host=b}, with or without its last byte.
func damagedRow(b *bench) func(value string) {
	w := &crookedWorld{bench: b, schema: b.Config.Schema()}
	uid := func(kind, name string) encoding.UID {
		u, err := w.uid(kind, name)
		if err != nil {
			b.Fatal(err)
		}
		return u
	}
	tags := append(append([]byte{}, uid("tagk", "host")...), uid("tagv", "b")...)
	key := w.schema.AppendRowKey(nil, uid("metrics", "m"), 1357002000, tags)
	return func(value string) {
		m := store.Mutation{Row: key, Family: "t", Qualifier: []byte{0, 0, 0, 0x10}, Value: []byte(value)}
		if err := b.Store.Apply(b.Context(), "tsdb", []store.Mutation{m}); err != nil {
			b.Fatal(err)
		}
	}
}

// What is made of fewer rows says so everywhere: in expressions, and in live queries of both kinds.
//
//fault:live-damaged-rows-untold a.Damaged += sub.damaged => _ = 0
func TestFix_damagedElsewhere(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Fix = "damaged" })
	b.Put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1357002000 3 host=a")
	set := damagedRow(b)
	set("\x04\x05")

	const (
		times = "start=1356998400&end=1357005599&"
		body  = `{"start":1356998400,"end":1357005599,"queries":[{"aggregator":"none","metric":"m"}]}`
	)
	expression := `{"time":{"start":"1356998400","end":"1357005599","aggregator":"sum"},` +
		`"metrics":[{"id":"a","metric":"m"}],"expressions":[{"id":"e","expr":"a * 2"}],"outputs":[{"id":"e"}]}`
	answers := func(want string) {
		t.Helper()
		for what, a := range map[string]answer{
			"query": b.Get("/api/query?" + times + "m=sum:m"), "POST": b.Post("/api/query", body),
			"exp": b.Post("/api/query/exp", expression),
		} {
			if got := a.Header.Get("Downpour-Damaged-Rows"); a.Status != 200 || got != want {
				t.Errorf("%s: %d %.200s, %q rows left out, want %q", what, a.Status, a.Body, got, want)
			}
			age := a.Header.Get("Cache-Control")
			if want != "" && age != "" && age != "no-cache" && age != "max-age=0" {
				t.Errorf("%s: %s, want that it is not kept", what, age)
			}
		}
	}
	answers("1")

	if snapshot := subscribeExp(b, expression, "").read(); !strings.Contains(string(snapshot), `{"type":"snapshot"`) ||
		!strings.Contains(string(snapshot), `"damaged":{"rows":1}`) {
		t.Errorf("live expressions: %s, want a snapshot without one row", snapshot)
	}
	s := subscribe(b, strings.Replace(body, `"end":1357005599,`, "", 1), "")
	f := func(kind string, left int, do func()) {
		t.Helper()
		do()
		m, got := s.next(), 0
		if m.Damaged != nil {
			got = m.Damaged.Rows
		}
		if m.Type != kind || got != left {
			t.Errorf("got %s without %d rows (%+v), want %s without %d", m.Type, got, m.Error, kind, left)
		}
	}
	f("snapshot", 1, func() {})
	f("delta", 1, func() { b.Put("m 1356998401 1 host=a") })
	f("delta", 0, func() { set("\x04\x05\x00") })
	f("delta", 1, func() { set("\x04\x05") })

	set("\x04\x05\x00")
	answers("")
}
