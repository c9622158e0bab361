package scenario

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/integration/e2e"
)

// profiledServer is a server whose profile is that of this test, and whose
// process does nothing.
func profiledServer(t *testing.T) *peer.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	idle, err := e2e.Start(t.Context(), e2e.Command{
		Name: "idle",
		Path: "sleep",
		Args: []string{"60"},
		Dir:  t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(idle.Kill)
	t.Cleanup(peer.CloseIdle)
	return &peer.Server{Peer: report.Peer{Name: "ours"}, URL: web.URL, Process: idle}
}

// spin keeps a processor busy for some milliseconds.
//
//go:noinline
func spin() (sum int) {
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		for i := range 1000 {
			sum += i * i
		}
	}
	return sum
}

// A profile names the function that takes the time, and how long one run takes. A run that fails
// ends it.
func TestProfile(t *testing.T) {
	server := profiledServer(t)
	again := repeatable{
		server: func(context.Context) (*peer.Server, error) { return server, nil },
		run:    func(context.Context, *peer.Server, int) error { _ = spin(); return nil },
	}
	p, err := new(stage).profile(t.Context(), again, 3) // so long that a busy machine gives us some time, too
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Functions, func(s report.Share) bool {
		return strings.HasSuffix(s.Name, "bench/scenario.spin")
	})
	if i < 0 || p.Runs < 1 || p.Functions[i].Took <= 0 || p.Functions[i].Took > p.Took*2 {
		t.Errorf("%+v; want some of a run's time in spin", p)
	}
	if len(p.Processes) != 2 || p.Processes[0].Name != "gateway" || p.Processes[1].Took <= 0 {
		t.Errorf("processes %+v, want the gateway and this one, which is busy", p.Processes)
	}
	broken := again
	broken.run = func(context.Context, *peer.Server, int) error { return errors.New("the server is dead") }
	if _, err := new(stage).profile(t.Context(), broken, 60); err == nil || err.Error() != "the server is dead" {
		t.Errorf("a run that fails: error %v, want its own at once", err)
	}
}

// explain profiles the figures of its group's aims that are not met. It leaves out aims of other
// rows and scales, and figures that it cannot repeat.
func TestExplain(t *testing.T) {
	asked := map[string]int{}
	refuse := errors.New("asked")
	made := func(name string) repeatable {
		return repeatable{server: func(context.Context) (*peer.Server, error) { asked[name]++; return nil, refuse }}
	}
	cfg := config(nil, nil)
	cfg.Report.Aims = []report.Aim{
		{Row: "a", Scale: "1x", Figure: "met", AtLeast: true, Want: 1, Got: report.Single(2)},
		{Row: "a", Scale: "10x", Figure: "other scale", AtLeast: true, Want: 2, Got: report.Single(1)},
		{Row: "b", Scale: "1x", Figure: "other row", AtLeast: true, Want: 2, Got: report.Single(1)},
		{Row: "a", Scale: "1x", Figure: "unknown", AtLeast: true, Want: 2, Got: report.Single(1)},
		{Row: "a", Scale: "1x", Figure: "slow", AtLeast: true, Want: 2, Got: report.Single(1)},
	}
	s := &stage{cfg: &cfg}
	for _, name := range []string{"met", "other scale", "other row", "slow"} {
		s.keepAs(name, s.timed(made(name)))
	}
	err := s.explain(t.Context(), group{scenario{rows: []string{"a"}}, "1x"})
	if !errors.Is(err, refuse) || !strings.Contains(err.Error(), "profile of slow") {
		t.Errorf("error %v, want that of slow", err)
	}
	if len(asked) != 1 || asked["slow"] != 1 || len(s.profilers) != 0 {
		t.Errorf("profiled %v, kept %d; want slow once and nothing kept", asked, len(s.profilers))
	}
}
