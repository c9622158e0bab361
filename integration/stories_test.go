//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/integration/e2e"
	"downpour/integration/story"
	"downpour/pushdown/process/network"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	hbasestore "downpour/pushdown/store/hbase"
)

// Stories that run in simulated time (integration/story) print the same on a real HBase.
func TestStories_hbase(t *testing.T) {
	t.Parallel()
	play(t, story.RealHBase, func(t *testing.T) story.Place {
		return &onServers{t: t, tables: createTables(t), start: func(env map[string]string) (server, string, error) {
			g, err := e2e.StartGateway(within(t, time.Minute), e2e.ProgramOptions{Env: env})
			if err != nil {
				return nil, "", err
			}
			return gatewayServer{g}, g.Addr, nil
		}}
	})
}

// Those that say so print what a real OpenTSDB answers.
func TestStories_openTSDB(t *testing.T) {
	t.Parallel()
	play(t, story.OpenTSDB, func(t *testing.T) story.Place {
		tables := createTables(t)
		tsdsFor(t, 1)
		return likeOpenTSDB{&onServers{t: t, tables: tables, start: func(map[string]string) (server, string, error) {
			tsd, err := e2e.StartOpenTSDB(within(t, time.Minute), layouts[0].tsdOptions(t, tables, nil))
			if err != nil {
				return nil, "", err
			}
			return tsdServer{tsd}, tsd.Addr, nil
		}}}
	})
}

// play plays all stories of a place, each on tables of its own.
func play(t *testing.T, place string, open func(*testing.T) story.Place) {
	paths, err := filepath.Glob("story/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, path := range paths {
		s, err := story.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !s.On(place) {
			continue
		}
		played++
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s.Play(t, open(t), false)
		})
	}
	if played == 0 {
		t.Errorf("no story of %d plays on %s", len(paths), place)
	}
}

// server is a process that a story talks to.
type server interface {
	close() error
	kill()
}

type gatewayServer struct{ *e2e.Program }

func (p gatewayServer) close() error { return p.Program.Close() }
func (p gatewayServer) kill()        { p.Process.Kill() }

type tsdServer struct{ *e2e.OpenTSDB }

func (p tsdServer) close() error { return p.OpenTSDB.Close() }
func (p tsdServer) kill()        { p.Process.Kill() }

// onServers is a place with a process on tables of the shared HBase.
type onServers struct {
	t      *testing.T
	tables e2e.Tables
	start  func(env map[string]string) (server, string, error)
	now    server // nil if none runs
	st     store.Store
}

func (s *onServers) Server(string) story.Server { return s }

func (s *onServers) Start(settings map[string]string) (address string, err error) {
	env := layouts[0].env(s.t, s.tables)
	env["DOWNPOUR_SELF_METRICS"] = "0"
	maps.Copy(env, settings)
	s.now, address, err = s.start(env)
	return address, err
}

func (s *onServers) Stop() error {
	p := s.now
	s.now = nil
	if p == nil {
		return nil
	}
	return p.close()
}

func (s *onServers) Crash() error {
	s.now.kill()
	s.now = nil
	return nil
}

func (s *onServers) Socket(ctx context.Context, url string) (story.Socket, error) {
	d := websocket.Dialer{Subprotocols: []string{"downpour.v1"}}
	conn, _, err := d.DialContext(ctx, url, nil)
	return conn, err
}

func (s *onServers) Network() network.Network { return network.System{} }
func (s *onServers) Pass(time.Duration)       {}
func (s *onServers) Fault(...faultstore.Rule) {}

func (s *onServers) Store() store.Cells {
	if s.st == nil {
		st, err := hbasestore.Open(hbasestore.Config{Quorum: hbase(s.t).Quorum()})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { st.Close() })
		s.st = st
	}
	return s.st
}

func (s *onServers) Table(name string) string {
	return map[string]string{
		"tsdb":      s.tables.Data,
		"tsdb-uid":  s.tables.UID,
		"tsdb-meta": s.tables.Meta,
		"tsdb-tree": s.tables.Tree,
	}[name]
}

// likeOpenTSDB is a place of an OpenTSDB, whose hash maps decide on the order of tags and groups.
type likeOpenTSDB struct{ *onServers }

func (likeOpenTSDB) Same(want, got string) bool {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	return slices.EqualFunc(a, b, func(a, b string) bool { return unordered(a) == unordered(b) })
}

// unordered returns the JSON values of a line in an order of their own, and other lines as they are.
func unordered(line string) string {
	var all []string
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	for {
		var v map[string]any
		err := d.Decode(&v)
		if err == io.EOF {
			break
		}
		if err != nil {
			return line
		}
		if tags, ok := v["aggregateTags"].([]any); ok {
			slices.SortFunc(tags, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		text, _ := json.Marshal(v)
		all = append(all, string(text))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
