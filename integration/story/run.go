package story

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/process/network"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// Place is where a story plays: a store with gateways, which serve on a network.
type Place interface {
	// Server returns a gateway by its name in stories.
	Server(name string) Server
	// Network reaches the gateways, and Socket opens a WebSocket on it.
	Network() network.Network
	Socket(ctx context.Context, url string) (Socket, error)
	// Pass lets time pass.
	Pass(time.Duration)
	// Store reads and writes the tables as another program does. Table returns the place's name of one of OpenTSDB's
	// tables.
	Store() store.Cells
	Table(name string) string
	// Fault makes calls of the store fail by these rules, and by no others.
	Fault(rules ...faultstore.Rule)
}

// Server is a gateway, or an OpenTSDB.
type Server interface {
	// Start starts it, with settings beyond those of the place, and returns its address.
	Start(settings map[string]string) (address string, err error)
	// Stop ends it as a signal does, and Crash as its machine ends. One that does not run is stopped already.
	Stop() error
	Crash() error
}

// Socket is a WebSocket, as gorilla/websocket has them.
type Socket interface {
	WriteMessage(kind int, data []byte) error
	ReadMessage() (kind int, data []byte, err error)
	Close() error
}

// run is a story that runs.
type run struct {
	place   Place
	first   map[string]string // settings that the story begins with
	servers map[string]*known
	*known  // that commands are for
	http    *http.Client
	lives   map[string]*live
	tags    []string // hashes of ETags that were shown
}

// known is a gateway that the story has named.
type known struct {
	server   Server
	settings map[string]string
	address  string
}

// commands are all of a story.
var commands = map[string]func(*run, *Step) (string, error){
	"on":        func(*run, *Step) (string, error) { return "", nil },
	"settings":  func(*run, *Step) (string, error) { return "", nil },
	"put":       (*run).put,
	"telnet":    (*run).telnet,
	"get":       (*run).request,
	"delete":    (*run).request,
	"post":      (*run).request,
	"PUT":       (*run).request,
	"each":      (*run).each,
	"subscribe": (*run).subscribe,
	"resume":    (*run).resume,
	"next":      (*run).next,
	"shown":     (*run).shown,
	"leave":     (*run).leave,
	"gateway":   (*run).gateway,
	"advance":   (*run).advance,
	"restart":   (*run).restart,
	"crash":     (*run).restart,
	"fault":     (*run).fault,
	"rows":      (*run).rows,
	"cells":     (*run).cells,
}

// Play runs a story in a place, and fails the test for each step that prints something else than it wants. With update
// it changes what the steps want instead.
func (s *Script) Play(t testing.TB, place Place, update bool) {
	t.Helper()
	settings, err := s.settings()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{place: place, first: settings, servers: map[string]*known{}, lives: map[string]*live{}}
	r.http = &http.Client{
		Transport:     &http.Transport{DialContext: place.Network().DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer r.end(t, s.Path)
	if err := r.use("a"); err != nil {
		t.Fatalf("%s: %v", s.Path, err)
	}
	for _, step := range s.Steps {
		got, failed := r.step(step)
		switch {
		case update && failed && !strings.Contains(step.Want, "error: "):
			t.Errorf("%s:%d: %s %s: %s\nIf that is right, write a line \"error: \" below it first.",
				s.Path, step.Line, step.Command, step.Args, got)
		case update:
			step.Want = got
		case got != step.Want && !same(place, step.Want, got):
			diff := cmp.Diff(strings.Split(step.Want, "\n"), strings.Split(got, "\n"))
			t.Errorf("%s:%d: %s %s (-want +got)\n%s", s.Path, step.Line, step.Command, step.Args, diff)
		}
	}
}

// Loose is a Place whose server may print the same in another way.
type Loose interface {
	Same(want, got string) bool
}

func same(place Place, want, got string) bool {
	loose, is := place.(Loose)
	return is && loose.Same(want, got)
}

// step returns what a step prints, and whether that ends with an error.
func (r *run) step(s *Step) (printed string, failed bool) {
	do := commands[s.Command]
	if do == nil {
		return fmt.Sprintf("error: got the command %q, which is none\n", s.Command), true
	}
	out, err := do(r, s)
	if err != nil {
		out += "error: " + err.Error()
	}
	if out == "" {
		return "", false
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		if line == "" {
			lines[i] = "."
		}
	}
	return joined(lines), err != nil
}

// use has the commands that follow go to a gateway, which is started at its first use.
func (r *run) use(name string) (err error) {
	if r.known = r.servers[name]; r.known != nil {
		return nil
	}
	r.known = &known{server: r.place.Server(name), settings: r.first}
	r.servers[name] = r.known
	r.address, err = r.server.Start(r.settings)
	return err
}

// end ends all gateways.
func (r *run) end(t testing.TB, path string) {
	for _, k := range r.servers {
		r.known = k
		r.disconnect()
		if err := k.server.Stop(); err != nil {
			t.Errorf("%s: a gateway ended with %v", path, err)
		}
	}
}

// disconnect closes all connections to the gateway.
func (r *run) disconnect() {
	for _, l := range r.lives {
		if l.at == r.known {
			l.conn.Close()
		}
	}
	r.http.CloseIdleConnections()
}

func (r *run) gateway(s *Step) (string, error) { return "", r.use(s.Args) }

func (r *run) advance(s *Step) (string, error) {
	d, err := time.ParseDuration(s.Args)
	if err != nil {
		return "", err
	}
	r.place.Pass(d)
	return "", nil
}

func (r *run) restart(s *Step) (string, error) {
	settings := maps.Clone(r.settings)
	if err := addSettings(settings, s.Input); err != nil {
		return "", err
	}
	r.settings = settings
	end := r.server.Stop
	if s.Command == "crash" {
		end = r.server.Crash
	}
	r.disconnect()
	err := end()
	address, startErr := r.server.Start(settings)
	r.address = address
	return "", errors.Join(err, startErr)
}
