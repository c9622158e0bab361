package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/pushdown/store"
)

// A query that fails beside the data has the same answer as one that fails in the gateway: no address
// of a pushdown server reaches a client. The trace has it.
//
//fault:error-named-after-its-server return failure => return fmt.Errorf("pushdown server %s: %w", r.client.address, failure)
func TestErrors_sameByPushdown(t *testing.T) {
	limited := func(c *gateway.Config) { c.LimitPoints = 99 }
	inProcess, remote := open(t, limited), behind(t, 4, limited)
	for _, b := range []*bench{inProcess, remote} {
		hundred(b)
		b.put("twice 1356998400 1 host=a", "damaged 1356998400 1 host=a")
		w := &crookedWorld{bench: b, schema: b.cfg.Schema()}
		uid := func(kind, name string) encoding.UID {
			u, err := w.uid(kind, name)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		// A point in seconds and another one in milliseconds at its time; half of a compacted cell.
		for metric, cell := range map[string][2]string{"twice": {"\xF0\x00\x00\x00", "\x02"}, "damaged": {"\x00\x00\x00\x10", "\x04\x05"}} {
			key := w.schema.AppendRowKey(nil, uid("metrics", metric), 1356998400, slices.Concat(uid("tagk", "host"), uid("tagv", "a")))
			if err := b.store.Apply(t.Context(), "tsdb", []store.Mutation{{Row: key, Family: "t", Qualifier: []byte(cell[0]), Value: []byte(cell[1])}}); err != nil {
				t.Fatal(err)
			}
		}
	}

	address := remote.cfg.Pushdown[0]
	for _, m := range []string{"sum:twice", "none:twice", "sum:1h-sum:twice", "sum:damaged", "sum:1m-avg:damaged%7Bhost=a%7D", "sum:m", "sum:1s-avg:m", "nosuch:m", "sum:nosuch"} {
		path := "/api/query?start=1356998400&end=1357019999&m=" + m
		want, got := inProcess.get(path), remote.get(path)
		if want.status == http.StatusOK {
			t.Errorf("%s: 200, want an error", m)
		}
		if diff := cmp.Diff(want.body, got.body); want.status != got.status || diff != "" {
			t.Errorf("%s: status %d by a pushdown server, %d without one: %s", m, got.status, want.status, diff)
		}
		if strings.Contains(got.body, address) {
			t.Errorf("%s: the address %s is in %s", m, address, got.body)
		}
	}
}
