package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/store/open/opentest"
)

// namesOnly returns an engine that can compile queries. It knows the metric m, the tag keys host
// and dc and the tag values a, b and c, with UIDs from 1 on.
func namesOnly(t *testing.T) *Engine {
	t.Helper()
	st := opentest.Embedded(t, boardTables...)
	schema := encoding.DefaultSchema()
	d := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema})
	for _, n := range []struct {
		kind  encoding.UIDKind
		names []string
	}{{encoding.UIDMetric, []string{"m"}}, {encoding.UIDTagK, []string{"host", "dc"}},
		{encoding.UIDTagV, []string{"a", "b", "c"}}} {
		for _, name := range n.names {
			if _, err := d.Assign(t.Context(), n.kind, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return New(Config{Names: d, Compile: plan.Options{Schema: schema, Table: "tsdb"}})
}

// If a query has TSUIDs and filters, the plan has only the TSUIDs whose names the filters admit,
// and those with a UID that has no name.
func TestCompile_dropsTSUIDsByName(t *testing.T) {
	e := namesOnly(t)
	const (
		hostA    = "000001000001000001"
		hostB    = "000001000001000002"
		nameless = "000001000001000009"
		dcA      = "000001000002000001"
	)
	f := func(filters string, want ...string) {
		t.Helper()
		body := fmt.Sprintf(
			`{"start":1356998400,"end":1357002000,"queries":[{"aggregator":"sum","tsuids":[%q,%q,%q,%q],`+
				`"filters":[%s]}]}`,
			hostA, hostB, nameless, dcA, filters)
		q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		plans, err := e.Compile(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tsuid := range plans[0].Plan.TSUIDs {
			got = append(got, tsuid.String())
		}
		if d := cmp.Diff(want, got); d != "" || (plans[0].Nothing == "") != (len(want) > 0) {
			t.Errorf("%s: nothing %q, -want +got\n%s", filters, plans[0].Nothing, d)
		}
		if len(want) == 0 && len(plans[0].Plan.Tags) == 0 {
			t.Errorf("%s: the plan has neither TSUIDs nor tags, and so admits all series", filters)
		}
	}
	f(``, hostA, hostB, nameless, dcA)
	f(`{"type":"literal_or","tagk":"host","filter":"a"}`, hostA, nameless)
	f(`{"type":"not_literal_or","tagk":"host","filter":"a"}`, hostB, nameless, dcA)
	f(`{"type":"wildcard","tagk":"dc","filter":"a*"}`, dcA)
	f(`{"type":"iwildcard","tagk":"dc","filter":"**"}`, hostA, hostB, nameless, dcA)
	f(`{"type":"literal_or","tagk":"dc","filter":"a"},{"type":"literal_or","tagk":"dc","filter":"b"}`)
	f(`{"type":"regexp","tagk":"unknown","filter":".*"}`)
}
