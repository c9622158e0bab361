//go:build integration

package integration

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/e2e"
)

// migration is one store, by the environment that its programs are started with.
type migration struct {
	env map[string]string
	dir string
}

// tool runs a sub-command of the gateway's program to a good end.
func (m migration) tool(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: m.env, Args: args, Dir: m.dir})
	if err != nil || status != 0 {
		t.Fatalf("gateway %s: exit status %d, %v\n%s", strings.Join(args, " "), status, err, out)
	}
	return out
}

// embeddedPlace is a store in a directory, for a gateway at a known address.
func embeddedPlace(t *testing.T) migration {
	t.Helper()
	port := must[int](t)(e2e.FreePort())
	m := migration{dir: t.TempDir()}
	m.env = map[string]string{"DOWNPOUR_SELF_METRICS": "0", "DOWNPOUR_STORE": "pebble:" + filepath.Join(m.dir, "data"),
		"DOWNPOUR_LISTEN": fmt.Sprintf("127.0.0.1:%d", port)}
	return m
}

// serve runs a gateway on the store for a while.
func (m migration) serve(ctx context.Context, t *testing.T, f func(url string)) {
	t.Helper()
	g := must[*e2e.Program](t)(e2e.StartGateway(ctx, e2e.ProgramOptions{Env: m.env, Dir: m.dir}))
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(g.URL)
}

// recording is a recorded data set that is put, moved and queried.
type recording conformance.Data

// fill assigns the recording's UIDs in their order, puts its points, and posts what said holds.
func (r *recording) fill(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	for _, a := range r.Assign {
		kind := strings.TrimSuffix(a[0], "s")
		answer := must[e2e.Answer](t)(e2e.Post(ctx, url+"/api/uid/assign", map[string][]string{kind: {a[1]}}))
		if answer.Status != http.StatusOK {
			t.Fatalf("assign %v: %s", a, answer.Body)
		}
	}
	for part := range slices.Chunk(r.Points, 2000) {
		if a := must[e2e.Answer](t)(e2e.Post(ctx, url+"/api/put", part)); a.Status != http.StatusNoContent {
			t.Fatalf("put: %d %.500s", a.Status, a.Body)
		}
	}
	for path, body := range said {
		if a := must[e2e.Answer](t)(e2e.Post(ctx, url+path, body)); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// said is what is posted in addition to points, by path: a global annotation in an hour that no query asks
// for, and meta data of the first metric.
var said = map[string]string{
	"/api/annotation": `{"startTime":1262304000,"endTime":1262304060,"description":"long ago",` +
		`"notes":"a \"note\"","custom":{"k":"v"}}`,
	"/api/uid/uidmeta": `{"uid":"000001","type":"metric","displayName":"the first","notes":"moved",` +
		`"custom":{"owner":"ops"}}`,
}

// asked are the requests whose answers show what said holds, and all names. They must stay the
// same.
var asked = []string{"/api/annotation?start_time=1262304000", "/api/uid/uidmeta?uid=000001&type=metric",
	"/api/suggest?type=metrics&max=1000", "/api/suggest?type=tagk&max=1000", "/api/suggest?type=tagv&max=1000"}

// replay compares the answers to the recorded queries with OpenTSDB's, and returns the answers to
// asked.
func (r *recording) replay(ctx context.Context, t *testing.T, where, url string) map[string]string {
	t.Helper()
	c := compare.Comparer{
		MessageStart: true,
		Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
			Reason: "of errors only code and message were recorded"}},
	}
	wrong := 0
	for _, q := range r.Queries {
		a := must[e2e.Answer](t)(e2e.Post(ctx, url+q.Path, string(q.Request)))
		report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response},
			compare.Answer{Status: a.Status, Body: a.Body})
		if err == nil && report.Equal() {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("%s: %s: %v %v (%d %.150s)", where, q.Request, err, report, a.Status, a.Body)
		}
	}
	t.Logf("%s: %d of %d answers are equal", where, len(r.Queries)-wrong, len(r.Queries))
	told := map[string]string{}
	for _, path := range asked {
		a := must[e2e.Answer](t)(e2e.Get(ctx, url+path))
		told[path] = fmt.Sprint(a.Status, " ", string(a.Body))
	}
	return told
}

// Data moves from an embedded store that is in use to HBase and back into
// another one, by export and import, and every recorded query is answered at
// each place as OpenTSDB answered it.
func TestMigrate_toHBaseAndBack(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seed2", "edges"} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t, 4*time.Minute)
			r := (*recording)(must[*conformance.Data](t)(conformance.Load(name)))
			if !*soak {
				r.Queries = r.Queries[:min(len(r.Queries), 150)]
			}
			first := embeddedPlace(t)
			file, again := filepath.Join(first.dir, "all.gz"), filepath.Join(first.dir, "again.gz")
			var want map[string]string
			first.serve(ctx, t, func(url string) {
				r.fill(ctx, t, url)
				want = r.replay(ctx, t, "embedded", url)
				first.tool(ctx, t, "export", "-all", "-o", file, "1970/03/01")
			})
			cluster := migration{env: layouts[0].env(t, createTables(t)), dir: t.TempDir()}
			cluster.tool(ctx, t, "import", file)
			cluster.serve(ctx, t, func(url string) {
				if diff := cmp.Diff(want, r.replay(ctx, t, "HBase", url)); diff != "" {
					t.Errorf("HBase: %s", diff)
				}
			})
			cluster.tool(ctx, t, "export", "-all", "-o", again, "1970/03/01")
			back := embeddedPlace(t)
			back.tool(ctx, t, "import", again)
			back.serve(ctx, t, func(url string) {
				if diff := cmp.Diff(want, r.replay(ctx, t, "and back", url)); diff != "" {
					t.Errorf("and back: %s", diff)
				}
			})
			if diff := cmp.Diff(unzipped(t, file), unzipped(t, again)); diff != "" {
				t.Errorf("exported from HBase, -embedded +HBase: %.2000s", diff)
			}
		})
	}
}

// unzipped are the lines of a file.
func unzipped(t *testing.T, name string) (lines []string) {
	t.Helper()
	f := must[*os.File](t)(os.Open(name))
	defer f.Close()
	text := must[[]byte](t)(io.ReadAll(must[*gzip.Reader](t)(gzip.NewReader(f))))
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line)
	}
	return lines
}

// What tsdb scan --import prints is imported, and the gateway then answers as the TSD does. The
// points are simple ones, because this tool of OpenTSDB ends with an exception at some rows of the
// other tests' data.
func TestMigrate_fromOpenTSDB(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	tables := createTables(t)
	tsd := layouts[0].openTSDB(t, tables)
	points := simple()
	put(ctx, t, tsd.URL, points)
	var text strings.Builder
	for _, metric := range []string{"load.int", "load.float"} {
		out := must[[]byte](t)(tsd.Tool(ctx, "DumpSeries", "--import", "1970/03/01", "2014/01/01", "sum", metric))
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, metric+" ") { // the tool writes its log there as well
				text.WriteString(line)
			}
		}
	}
	file := writeFile(t, "scanned", text.String())
	ours := embeddedPlace(t)
	// Series are aggregated in the order of their UIDs, so the UIDs must be those of the TSD.
	tsdPlace := migration{env: layouts[0].env(t, tables), dir: t.TempDir()}
	for line := range strings.Lines(tsdPlace.tool(ctx, t, "export", "-all", "1970/03/01", "1970/03/02")) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == "#uid" {
			ours.tool(ctx, t, "uid", "assign", w[1], w[2])
		}
	}
	out := ours.tool(ctx, t, "import", file)
	if !strings.Contains(out, fmt.Sprintf("%d points imported, 0 refused", len(points))) {
		t.Fatalf("want %d points: %s", len(points), out)
	}
	all := slices.DeleteFunc(questions(), func(q question) bool {
		other := func(metric string) bool { return strings.Contains(q.path+q.body, metric) }
		return other("load.ms") || other("load.mixed") || other("load.counter")
	})
	ours.serve(ctx, t, func(url string) { askBoth(ctx, t, tsd.URL, url, all) })
}

// simple are two hours of integers and floats of three hosts.
func simple() (points []e2e.Point) {
	for s := range 3 {
		tags := map[string]string{"host": hosts[s], "dc": dcs[s%2]}
		for i := range 110 {
			at := dataStart + int64(60*i+7*s)
			whole := json.RawMessage(strconv.Itoa(i * (s + 1)))
			fraction := json.RawMessage(fmt.Sprintf("%d.25", i-50*s))
			points = append(points,
				e2e.Point{Metric: "load.int", Timestamp: at, Value: whole, Tags: tags},
				e2e.Point{Metric: "load.float", Timestamp: at, Value: fraction, Tags: tags})
		}
	}
	return points
}

// An import that was killed goes on from where it was: no point is lost, counted twice or changed.
func TestMigrate_killedImport(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	const series, each = 20, 20_000
	m := embeddedPlace(t)
	var text strings.Builder
	for i := range each {
		for s := range series {
			fmt.Fprintf(&text, "killed.import %d %d.5 host=h%d\n", dataStart+i, i, s)
		}
	}
	file := writeFile(t, "points", text.String())
	for kills, offset := 0, int64(-1); kills < 2; kills++ {
		offset = m.killImport(ctx, t, file, offset)
	}
	out := m.tool(ctx, t, "import", file)
	if !strings.Contains(out, "going on behind line ") ||
		!strings.Contains(out, fmt.Sprintf("%d points imported, 0 refused", series*each)) {
		t.Errorf("the last import does not say that it went on and that all points are imported: %s", out)
	}
	m.serve(ctx, t, func(url string) {
		for agg, want := range map[string]float64{"count": series * each, "sum": series * each * each / 2.0} {
			a := must[e2e.Answer](t)(e2e.Get(ctx,
				fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:0all-%s:killed.import",
					url, dataStart, dataStart+each, agg)))
			var got []struct{ DPS map[string]float64 }
			err := json.Unmarshal(a.Body, &got)
			if err != nil || len(got) != 1 || !slices.Equal(slices.Collect(maps.Values(got[0].DPS)), []float64{want}) {
				t.Errorf("%s: %s, want %v", agg, a.Body, want)
			}
		}
	})
}

// killImport starts an import, kills it once it is further than it was, and
// returns how far it came.
func (m migration) killImport(ctx context.Context, t *testing.T, file string, before int64) int64 {
	t.Helper()
	p := must[*e2e.Process](t)(e2e.Launch(ctx, gatewayProgram, "import",
		e2e.ProgramOptions{Env: m.env, Args: []string{"import", file}, Dir: m.dir}))
	defer p.Kill()
	var state struct{ Offset int64 }
	err := e2e.UntilProcess(ctx, p, time.Millisecond, func(context.Context) error {
		text, err := os.ReadFile(file + ".import")
		if err == nil {
			err = json.Unmarshal(text, &state)
		}
		if err == nil && state.Offset <= before {
			err = fmt.Errorf("offset %d, want more than %d", state.Offset, before)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v\n%s", err, p.LogTail(20))
	}
	return state.Offset
}
