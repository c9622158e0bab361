//go:build integration

package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/encoding/batch"
)

// wayToAsk is one way to ask for the same points.
type wayToAsk struct {
	name, query string
	header      []string
	took        []time.Duration
	bytes       int64
}

// The same points are requested as Arrow and as JSON, and the rows are also read without
// such an answer; -v prints what each costs. Plain Arrow takes 24 to 30 bytes a point, compressed
// Arrow at most half of that. -args -soak asks for 2.16 M points, 1,000 series of 6 hours.
func TestArrow_rates(t *testing.T) {
	ctx := within(t, 10*time.Minute)
	ours := embedded(t, map[string]string{"DOWNPOUR_LIMIT_JSON": "3000000"})
	series, rounds := 100, 3
	if *soak {
		series, rounds = 1000, 9
	}
	points := series * 6 * 360
	putSeries(ctx, t, ours.Addr, series)
	arrow := []string{"Accept", batch.StreamMediaType}
	ways := []*wayToAsk{
		{name: "the rows alone", query: "m=sum:0all-count:rates"},
		{name: "Arrow", query: "m=none:rates", header: arrow},
		{
			name:   "Arrow, body zstd",
			query:  "m=none:rates",
			header: append([]string{"Accept-Encoding", "zstd"}, arrow...),
		},
		{
			name:   "Arrow, body gzip",
			query:  "m=none:rates",
			header: append([]string{"Accept-Encoding", "gzip"}, arrow...),
		},
		{name: "Arrow, buffers lz4", query: "m=none:rates&compression=lz4", header: arrow},
		{name: "Arrow, buffers zstd", query: "m=none:rates&compression=zstd", header: arrow},
		{name: "JSON", query: "m=none:rates&arrays=true"},
		{name: "JSON, body gzip", query: "m=none:rates&arrays=true", header: []string{"Accept-Encoding", "gzip"}},
	}
	for range 1 + rounds { // in turn, so that all meet the same load; the first round only warms
		for _, w := range ways {
			began := time.Now()
			w.bytes = fetchAll(ctx, t,
				fmt.Sprintf("%s/api/query?start=%d&end=%d&%s", ours.URL, dataStart, dataStart+6*3600-1, w.query),
				w.header)
			w.took = append(w.took, time.Since(began))
		}
	}
	floor := median(ways[0].took[1:])
	for _, w := range ways {
		m := median(w.took[1:])
		t.Logf("%-20s %8.1f ms %6.1f M points/s %6.2f bytes a point %6.1f times the rows alone",
			w.name, m.Seconds()*1000, float64(points)/m.Seconds()/1e6, float64(w.bytes)/float64(points),
			m.Seconds()/floor.Seconds())
	}
	if plain := ways[1].bytes; plain < int64(points)*24 || plain > int64(points)*30 {
		t.Errorf("Arrow: %d bytes of %d points, want 24 to 30 a point", plain, points)
	}
	for _, w := range ways[2:6] {
		if 2*w.bytes > ways[1].bytes {
			t.Errorf("%s: %d bytes, want at most half of the %d of plain Arrow", w.name, w.bytes, ways[1].bytes)
		}
	}
}

// putSeries puts a point every 10 s of 6 hours by telnet.
func putSeries(ctx context.Context, t *testing.T, addr string, series int) {
	t.Helper()
	conn := must[net.Conn](t)((&net.Dialer{}).DialContext(ctx, "tcp", addr))
	defer conn.Close()
	out := bufio.NewWriterSize(conn, 1<<20)
	for i := range series {
		for at := range 6 * 360 {
			fmt.Fprintf(out, "put rates %d %d.%02d host=web%04d dc=dc%d\n",
				dataStart+10*at, (at*7+i)%100, at%100, i, i%4)
		}
	}
	fmt.Fprintln(out, "version")
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || strings.HasPrefix(answer, "put:") {
		t.Fatalf("answer %q, %v", answer, err)
	}
}

// fetchAll returns the length of an answer on the wire.
func fetchAll(ctx context.Context, t *testing.T, url string, header []string) int64 {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp := must[*http.Response](t)(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: status %d, %d bytes, %v", url, resp.StatusCode, n, err)
	}
	return n
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
