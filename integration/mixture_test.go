//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// mixture is gateways and pushdown servers of two versions.
type mixture struct {
	b        *balanced
	gateways *[2]*e2e.Program
	servers  int
	truth    map[string]compare.Answer // to all questions, of the first gateway that was asked
}

// same waits until no gateway reads parts of plans that both versions know, and all servers do. Then it compares the
// answers of the gateways with those of before.
func (m *mixture) same(ctx context.Context, of string) {
	m.b.t.Helper()
	for _, g := range m.gateways {
		for _, sub := range []string{
			"sum:load.int", "sum:5m-avg:load.int", "avg:1m-max:load.float%7Bdc=*%7D", "sum:rate:load.counter",
		} {
			path := fmt.Sprintf("/api/query?start=%d&end=%d&trace=true&m=%s", dataStart, dataStart+7200, sub)
			m.b.until(ctx, func() error {
				a, err := e2e.Get(ctx, g.URL+path)
				if err != nil || a.Status != http.StatusOK {
					return fmt.Errorf("%s: status %d, %v", sub, a.Status, err)
				}
				read, err := readBy(a.Body)
				if err != nil || read["in-process"] > 0 || len(read) != m.servers {
					return fmt.Errorf("%s, %s: parts read by %v, want by all servers alone, %v", of, sub, read, err)
				}
				return nil
			})
		}
		for _, q := range questions() {
			a := ask(ctx, m.b.t, g.URL, q)
			want, ok := m.truth[q.name]
			if !ok {
				m.truth[q.name] = a
				continue
			}
			if r, err := (compare.Comparer{Permits: compare.Standard}).Answers(want, a); err != nil || !r.Equal() {
				m.b.t.Errorf("%s, %s: error %v, %v\n%s%s", of, q.name, err, r, q.path, q.body)
			}
		}
	}
	m.b.t.Logf("%s: no part is read by a gateway, %d answers are those of before", of, len(m.truth))
}

// healthy waits until each gateway has noticed that all servers are healthy. path is a query.
func (m *mixture) healthy(ctx context.Context, path string) {
	m.b.t.Helper()
	want := fmt.Sprintf(`downpour_pushdown_servers{state="healthy"} %d`, m.servers)
	for _, g := range m.gateways {
		m.b.until(ctx, func() error {
			// Servers are looked at when queries are executed, and otherwise count as unchecked.
			if a, err := e2e.Get(ctx, g.URL+path); err != nil || a.Status != 200 {
				return fmt.Errorf("%s: a query in the end: status %d, %v", g.URL, a.Status, err)
			}
			a, err := e2e.Get(ctx, g.URL+"/metrics")
			if err == nil && !strings.Contains(string(a.Body), want) {
				err = fmt.Errorf("%s: not all pushdown servers are healthy in the end", g.URL)
			}
			return err
		})
	}
}

// readBy counts the accepted parts in the trace behind an answer, by the place that has read each.
func readBy(answer []byte) (parts map[string]int, err error) {
	var all []struct{ Trace *tracedStep }
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, err
	}
	parts = map[string]int{}
	for _, one := range all {
		if one.Trace != nil {
			one.Trace.count(parts)
		}
	}
	return parts, nil
}

// tracedStep is a step of a trace.
type tracedStep struct {
	Name       string
	Attributes struct {
		Server   string
		Accepted bool
	}
	Children []*tracedStep
}

func (s *tracedStep) count(parts map[string]int) {
	if s.Name == "part" && s.Attributes.Accepted {
		parts[s.Attributes.Server]++
	}
	for _, c := range s.Children {
		c.count(parts)
	}
}
