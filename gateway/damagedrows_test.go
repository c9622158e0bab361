package gateway_test

import (
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/pushdown/store"
)

// A row that cannot be read makes the queries of its metric fail, with the command that reports what can be repaired. With
// fix=damaged, which is not part of all, they are answered without such rows, and each answer says so: what it is made
// of is not kept, neither of the parts nor of the whole.
func TestFix_damaged(t *testing.T) {
	cached := func(c *gateway.Config) { c.ResultCache = "16MiB" }
	for name, b := range map[string]*bench{"embedded": open(t, cached), "pushdown": behind(t, 4, nil), "HBase": onFakeHBase(t, cached)} {
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, cfg: b.cfg, store: b.store, g: b.g}
			b.put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1357002000 3 host=a")
			w := &crookedWorld{bench: b, schema: b.cfg.Schema()}
			uid := func(kind, name string) encoding.UID {
				u, err := w.uid(kind, name)
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			tags := append(append([]byte{}, uid("tagk", "host")...), uid("tagv", "b")...)
			key := w.schema.AppendRowKey(nil, uid("metrics", "m"), 1357002000, tags)
			set := func(value string) { // a compacted cell of two points, with or without its last byte
				if err := b.store.Apply(t.Context(), "tsdb", []store.Mutation{{Row: key, Family: "t", Qualifier: []byte{0, 0, 0, 0x10}, Value: []byte(value)}}); err != nil {
					t.Fatal(err)
				}
			}
			set("\x04\x05")

			const path = "/api/query?start=1356998400&end=1357005599&m=none:m"
			for _, more := range []string{"", "&fix=all", "&fix=none", "&mode=partial"} {
				b.refused(b.get(path+more), 400, "is corrupt: encoding: compacted cell of 4 qualifier bytes has 2 value bytes")
				b.refused(b.get(path+more), 400, "gateway fsck --full-scan --from 00000150e23510")
			}
			for range 4 {
				a := b.get(path + "&fix=damaged")
				if a.status != 200 || a.header.Get("Downpour-Damaged-Rows") != "1" || !strings.Contains(a.body, `{"damaged":{"rows":1,"first":"row 00000150E23510`) ||
					!strings.Contains(a.body, `"dps":{"1356998400":1,"1357002000":3}`) || !strings.Contains(a.body, `"dps":{"1356998400":2}`) {
					t.Fatalf("got %d %v %s, want the rows that can be read, and that one is left out", a.status, a.header, a.body)
				}
				for _, m := range []string{"sum:1h-sum:m", "sum:m%7Bhost=b%7D", "sum:2h-count:m"} {
					if a := b.get(strings.Replace(path, "none:m", m, 1) + "&fix=all,damaged"); a.status != 400 {
						t.Errorf("fix=all,damaged: %d, want that all stands alone", a.status)
					}
					if a := b.get(strings.Replace(path, "none:m", m, 1) + "&fix=damaged,gaps"); a.status != 200 || a.header.Get("Downpour-Damaged-Rows") != "1" {
						t.Errorf("%s: %d %v %s", m, a.status, a.header, a.body)
					}
				}
				if a := b.get(path+"&fix=damaged", "Accept", "application/vnd.apache.arrow.stream"); a.status != 200 || a.header.Get("Downpour-Damaged-Rows") != "1" || !strings.Contains(a.body, "damaged") {
					t.Errorf("Arrow: %d %v", a.status, a.header)
				}
			}
			set("\x04\x05\x00")
			a := b.get(path + "&fix=damaged")
			if a.status != 200 || a.header.Get("Downpour-Damaged-Rows") != "" || strings.Contains(a.body, "damaged") || !strings.Contains(a.body, `"dps":{"1356998400":2,"1357002000":4,"1357002001":5}`) {
				t.Errorf("once it is repaired: %d %v %s", a.status, a.header, a.body)
			}
		})
	}
}
