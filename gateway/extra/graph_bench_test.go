package extra_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store/pebble"
)

// putFrom is the first time of the points.
const putFrom = 1356998400

// benchGateway starts a gateway over an embedded store in memory.
func benchGateway(b *testing.B, cfg *gateway.Config) (*gateway.Server, *pebble.Store) {
	st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Grouping: encoding.DefaultSchema().RowHours()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	if err := tables.Create(b.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		b.Fatal(err)
	}

	g, err := gateway.Start(b.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close() })
	return g, st
}

// benchPut puts points, each with a comma before it.
func benchPut(b *testing.B, g *gateway.Server, points []byte) {
	points[0] = '['
	if status, text := gatewaytest.Ask(b, http.MethodPost, g.URL()+"api/put",
		string(append(points, ']'))); status != http.StatusNoContent {
		b.Fatalf("put: got %d %s, want 204", status, text)
	}
}

// BenchmarkGraph asks for four lines of 360 points each, over loopback: as a picture, as
// text, and as the JSON of the same query.
func BenchmarkGraph(b *testing.B) {
	g, _ := benchGateway(b, config(0))
	var body []byte
	for host := range 4 {
		for i := range 360 {
			body = fmt.Appendf(body, `,{"metric":"m","timestamp":%d,"value":%d,"tags":{"host":"h%d"}}`,
				putFrom+10*i, (i*7919+host*31)%101, host)
		}
	}
	benchPut(b, g, body)

	times := fmt.Sprintf("?start=%d&end=%d&m=sum:m{host=*}", putFrom, putFrom+3600)
	for _, c := range []struct{ name, path string }{
		{"query", "api/query" + times}, {"ascii", "q" + times + "&ascii"}, {"svg", "q" + times + "&svg"},
		{"png", "q" + times + "&png"}, {"png/800x400", "q" + times + "&png&wxh=800x400"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				status, text := gatewaytest.Ask(b, http.MethodGet, g.URL()+c.path, "")
				if status != http.StatusOK {
					b.Fatalf("got %d %s, want 200", status, text)
				}
				b.ReportMetric(float64(len(text)), "answer-bytes")
			}
		})
	}
}
