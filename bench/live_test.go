package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench"
	"downpour/bench/live"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/write"
)

// Every put is shown at every socket that reads; stalled, slow and half-open sockets hold up
// nobody.
func TestFrames(t *testing.T) {
	server := gatewayOn(t, memoryStore(t))
	c := live.FramesConfig{Server: server, Sockets: 5, Plans: 1, Long: 3000, Puts: 6, Every: 50 * time.Millisecond}
	f := func(frames int64) {
		t.Helper()
		r, err := live.Frames(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Frames != frames || r.Latency.Requests != frames || r.Latency.At(50) <= 0 || r.Latency.At(100) > 2*r.Took {
			t.Errorf("%+v, want %d frames", r, frames)
		}
		if want := map[bool]int{true: 2}[c.SlowEvery > 0]; r.Slow != want || r.Complete != want {
			t.Errorf("%d of %d slow sockets had all, want %d", r.Complete, r.Slow, want)
		}
	}
	f(5 * 6)
	c.Sockets, c.Plans, c.StalledEvery = 22, 4, 10
	f(19 * 6)   // sockets 0, 10 and 20 of 22 are stalled
	c.Every = 0 // each put waits until all have shown the one before
	f(19 * 6)
	c.Sockets, c.SlowEvery, c.HalfOpenEvery = 23, 11, 12
	f((23 - 3 - 2 - 2) * 6) // stalled: 0, 10, 20; slow: 1, 12; half-open: 2, 14
	for want, change := range map[string]func(*live.FramesConfig){
		"sockets: got 0": func(c *live.FramesConfig) { c.Sockets = 0 },
		"plans: got 24":  func(c *live.FramesConfig) { c.Plans = 24 },
		"stalled: got":   func(c *live.FramesConfig) { c.StalledEvery = 1 },
		"slow: got":      func(c *live.FramesConfig) { c.SlowEvery = 3 },
		"half-open: got": func(c *live.FramesConfig) { c.HalfOpenEvery = -1 },
		"puts: got 0":    func(c *live.FramesConfig) { c.Puts = 0 },
		"every: got 1ns": func(c *live.FramesConfig) { c.Every = 1 },
	} {
		wrong := c
		change(&wrong)
		if _, err := live.Frames(t.Context(), wrong); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Latency counts from the time at which a put was due, so a put that is held up also delays those
// behind it.
func TestFrames_intendedTime(t *testing.T) {
	const held = time.Second
	server := *gatewayOn(t, memoryStore(t))
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward, puts := httputil.NewSingleHostReverseProxy(to), 0
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if puts++; puts == 2 { // puts come one at a time; the first makes the metric
			<-time.After(held)
		}
		forward.ServeHTTP(w, r)
	}))
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections() // the proxy's
	defer slow.Close()
	server.PutURL = slow.URL
	r, err := live.Frames(t.Context(), live.FramesConfig{
		Server:  &server,
		Sockets: 2,
		Plans:   1,
		Puts:    3,
		Every:   50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	// The last of the 3 puts was due 2*50 ms after the one that is held up.
	if least := r.Latency.At(0); least < held-2*50*time.Millisecond-time.Millisecond {
		t.Errorf("the quickest frame took %s from when its put was due: %+v", least, r.Latency)
	}
}

// All parts run, find the answers equal, and report what they measured.
func TestLive_allParts(t *testing.T) {
	d := small()
	d.Hosts, d.Hours, d.Step = 30, 2, 10
	used := time.Duration(0)
	more := func() (time.Duration, error) { used += used/2 + time.Second; return used, nil } // grows faster each time
	r := report.New("live", nil)
	c := live.Config{
		Server:     gatewayOn(t, memoryStore(t)),
		Store:      live.Embedded,
		Parts:      live.Parts[:4],
		Data:       d,
		Sockets:    []int{1, 3},
		Puts:       2,
		Every:      50 * time.Millisecond,
		Crowd:      12,
		CrowdPlans: 3,
		Long:       3000,
		Rounds:     1,
		Report:     r,
		Tick:       live.TickConfig{CPU: more, Plans: 2, Seconds: 1, Rounds: 1, Asks: 1, Downsample: "5m-avg"},
	}
	if err := live.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	// On a busy machine no delta may come within the second: then the tick has no figure.
	ticks := 1
	if slices.ContainsFunc(r.Aims, func(a report.Aim) bool { return a.Missing != "" }) {
		ticks = 0
	}
	if len(r.Latencies) != 2+2 || len(r.Figures) != 1+ticks+2+1+2*3 || len(r.Aims) != 3 {
		t.Errorf("%d latencies, %d figures, %d aims", len(r.Latencies), len(r.Figures), len(r.Aims))
	}
	for _, f := range r.Figures {
		if f.Median() <= 0 || f.Work <= 0 {
			t.Errorf("%+v", f)
		}
		if _, ok := r.Figure(f.Of); f.Of != "" && !ok && ticks > 0 {
			t.Errorf("%s is a multiple of %q, which is not there", f.Name, f.Of)
		}
	}
	for _, a := range r.Aims {
		if !slices.Contains(live.Parts, a.Row) || a.Want <= 0 || a.Missing == "" && a.Got.Median <= 0 {
			t.Errorf("%+v", a)
		}
	}
	c.Parts = []string{"tick", "tock"}
	if err := live.Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), `parts: got "tock"`) {
		t.Errorf("error %v, want one that names the part tock", err)
	}
}

// Viewers are compared, and what a browser reports becomes figures and aims; what it is asked to open
// is saved, and its queries have answers.
func TestLive_dashboards(t *testing.T) {
	d := small()
	d.Hosts, d.Hours, d.Step = 30, 2, 2
	used := time.Duration(0)
	more := func() (time.Duration, error) { used += time.Second; return used, nil }
	r := report.New("live", nil)
	server := gatewayOn(t, memoryStore(t))
	told := map[string]string{
		"paint": `{"ms":[900,500.5,600]}`,
		"wall": `{"taskMS":120,"scriptMS":80,"points":54000,"samples":[{"seconds":1,"heap":9e6,"resident":1e8},` +
			`{"seconds":2,"heap":1e7,"resident":1e8},{"seconds":3,"heap":1.2e7,"resident":1e8}]}`,
	}
	browse := func(ctx context.Context, args ...string) ([]byte, error) {
		if args[0] != server.URL {
			t.Errorf("asked to open %s", args[0])
		}
		answer, err := http.Get(args[0] + "/api/dashboards/" + args[2])
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		var saved struct {
			Panels []struct{ Queries []string }
		}
		if err := json.NewDecoder(answer.Body).Decode(&saved); err != nil || fmt.Sprint(len(saved.Panels)) != args[3] {
			t.Errorf("%s has %d panels, %v, want %s", args[2], len(saved.Panels), err, args[3])
		}
		for _, p := range saved.Panels {
			m := strings.Replace(p.Queries[0], ":auto:", ":5m-avg:", 1)
			q := workload.Query{Path: "/api/query?start=2h-ago&m=" + url.QueryEscape(m)}
			if _, err := server.Ask(ctx, q); err != nil {
				t.Error(err)
			}
		}
		return []byte("some words\n" + told[args[1]] + "\n"), nil
	}
	c := live.Config{Server: server, Store: live.Embedded, Parts: []string{"viewers", "dashboards"}, Data: d, Rounds: 1,
		Report: r, Tick: live.TickConfig{CPU: more},
		Dashboards: live.DashboardsConfig{
			Browser: browse,
			Data:    d,
			Paints:  3,
			Viewers: 3,
			Seconds: 3,
			Wall:    3 * time.Second,
		}}
	if err := live.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, a := range r.Aims {
		got[a.Row+" "+a.Unit] = a.Got.Median
	}
	if want := map[string]float64{"viewers ": 1, "dashboards ms": 600, "dashboards ": 1.2}; !maps.Equal(got, want) ||
		len(r.Figures) != 4 {
		t.Errorf("aims %v, want %v; figures %+v", got, want, r.Figures)
	}

	for want, change := range map[string]func(*live.Config){
		"parts: got viewers, which needs": func(c *live.Config) { c.Tick.CPU = nil },
		"dashboards: viewers: got 0":      func(c *live.Config) { c.Dashboards.Viewers = 0 },
		"dashboards: hosts: got 9":        func(c *live.Config) { c.Dashboards.Data.Hosts = 9 },
		"dashboards: there is no browser": func(c *live.Config) {
			c.Parts, c.Dashboards.Browser = []string{"dashboards"}, nil
			c.Server = gatewayOn(t, memoryStore(t))
		},
	} {
		wrong := c
		change(&wrong)
		if err := live.Run(t.Context(), wrong); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// An Arrow answer that differs from the JSON answer, or is cut, is an error.
func TestAnswers_differ(t *testing.T) {
	f := func(value int64, length int, want error) {
		t.Helper()
		group := batch.ResultGroup{Metric: "m", TagKeys: []string{"host"}, TagValues: []string{"a"}}
		group.Points.Append(1000, encoding.IntValue(value))
		var stream bytes.Buffer
		out := batch.NewResultWriter(&stream, []batch.ResultGroup{group}, batch.ResultOptions{})
		if err := errors.Join(out.Write(&group), out.Close()); err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept") == batch.StreamMediaType {
				w.Write(stream.Bytes()[:stream.Len()-length])
				return
			}
			io.WriteString(w, `[{"metric":"m","tags":{"host":"a"},"aggregateTags":[],"dps":[[1,7]]}]`)
		}))
		defer s.Close()
		defer peer.CloseIdle()
		figures, err := live.Answers(t.Context(), live.AnswersConfig{
			Server: peer.At("it", s.URL),
			Metric: "m",
			Start:  1,
			Last:   2,
			Store:  "a",
			Rounds: 2,
		})
		if !errors.Is(err, want) || err == nil && len(figures) != 1+2*3 {
			t.Errorf("value %d, %d bytes short: %d figures, error %v, want %v", value, length, len(figures), err, want)
		}
	}
	f(7, 0, nil)
	f(8, 0, peer.ErrDiffer)
	f(7, 8, batch.ErrCut)
}

// BenchmarkAnswers reads all 2.16 M points of an embedded store at rest, as Arrow and as JSON, and
// a larger Arrow answer, each in turn with a plain HTTP copy of as many bytes.
func BenchmarkAnswers(b *testing.B) {
	st := memoryStore(b)
	d := workload.Default()
	if err := bench.Fill(b.Context(), st, encoding.DefaultSchema(), "tsdb", d, write.Appended, nil); err != nil {
		b.Fatal(err)
	}
	if err := st.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	server := gatewayOn(b, st)
	b.ResetTimer()
	figures, err := live.Answers(b.Context(), live.AnswersConfig{
		Server: server,
		Metric: d.Metric(),
		Start:  d.Start,
		Last:   d.End() - 1,
		Store:  "memory",
		Rounds: b.N,
	})
	if err != nil {
		b.Fatal(err)
	}
	for i, name := range []string{"scan", "arrow", "arrow-wire", "json", "json-wire", "filled", "filled-wire"} {
		b.ReportMetric(figures[i].Median().Seconds()*1000, name+"-ms")
	}
}
