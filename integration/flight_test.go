//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/integration/e2e"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
)

// pyarrow, a Flight client of others, reads a whole part from a pushdown server if it has a token.
// Without a token, or with a plan of a newer version, it gets an error that says why.
func TestFlight_readByPyarrow(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	dir := t.TempDir()
	ours := startGateway(t, e2e.ProgramOptions{Dir: dir, Env: map[string]string{"DOWNPOUR_SELF_METRICS": "0"}})
	var points []e2e.Point
	for i := range 120 {
		points = append(points, e2e.Point{
			Metric:    "flight.test",
			Timestamp: dataStart + int64(60*i),
			Value:     json.RawMessage(fmt.Sprint(i)),
			Tags:      map[string]string{"host": "a"},
		})
	}
	put(ctx, t, ours.URL, points)
	if err := ours.Process.Stop(ctx); err != nil { // only one process can open the store
		t.Fatal(err)
	}
	const token = "0123456789abcdef"
	server, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Dir: dir, Env: map[string]string{
		"DOWNPOUR_STORE":      "pebble:data",
		"DOWNPOUR_BESIDE":     "rs1:16020",
		"DOWNPOUR_TOKEN_FILE": writeFile(t, "tokens", "read "+token+"\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, server)

	plan := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), dataStart, dataStart+7200)
	plan.Downsample = &scanplan.Downsample{
		Interval: 600_000,
		Count:    10,
		Unit:     "m",
		Function: "sum",
		Fill:     scanplan.FillNone,
	}
	part := scanplan.Part{Plan: plan, Range: plan.Ranges[0]}
	lines := readFlight(t, server.Addr, &part, token)
	var hello wire.Hello
	if err := json.Unmarshal(lines[0], &hello); err != nil || hello.Beside != "rs1:16020" ||
		hello.Plan != scanplan.Version {
		t.Errorf("hello %s: %v", lines[0], err)
	}
	times, values := columns(t, lines[1:])
	if len(times) != 12 {
		t.Fatalf("%d buckets, want 12: %s", len(times), lines)
	}
	for i, at := range times { // bucket i is the sum of the values 10i to 10i+9
		if want := int64(dataStart+600*i) * 1000; at != want || values[i] != float64(10*(10*i)+45) {
			t.Errorf("bucket %d: %d %v, want %d %d", i, at, values[i], want, 100*i+45)
		}
	}

	refused := func(lines [][]byte, want string) {
		t.Helper()
		var e struct{ Error string }
		if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil || !strings.Contains(e.Error, want) {
			t.Errorf("%s: %v, want an error with %q", lines, err, want)
		}
	}
	refused(readFlight(t, server.Addr, &part, ""), "authorization")
	part.Plan.Version++
	refused(readFlight(t, server.Addr, &part, token),
		fmt.Sprintf("version %d, want %d", scanplan.Version+1, scanplan.Version))
}

// readFlight returns the lines that the script prints.
func readFlight(t *testing.T, addr string, part *scanplan.Part, token string) [][]byte {
	t.Helper()
	ticket := must[[]byte](t)(part.MarshalTicket())
	name := filepath.Join(t.TempDir(), "ticket")
	if err := os.WriteFile(name, ticket, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"grpc://" + addr, name}
	if token != "" {
		args = append(args, token)
	}
	out := must[[]byte](t)(e2e.Python(within(t, time.Minute), "integration/python/read_flight.py", args...))
	return bytes.Split(bytes.TrimSpace(out), []byte("\n"))
}

// columns joins the buckets of all rows of the answer.
func columns(t *testing.T, lines [][]byte) (times []int64, values []float64) {
	t.Helper()
	for _, line := range lines {
		var row struct {
			Span  string
			Time  []int64   `json:"time"`
			Value []float64 `json:"value"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		times, values = append(times, row.Time...), append(values, row.Value...)
	}
	for _, v := range values {
		if math.IsNaN(v) {
			t.Errorf("a bucket is NaN: %v", values)
		}
	}
	return times, values
}
