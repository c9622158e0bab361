package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/announce"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

// site is an HBase with two region servers, pushdown servers that announce themselves, and a gateway that finds them,
// each on a machine of its own, in simulated time.
type site struct {
	*testing.T
	network networktest.Memory
	hbase   *hbasefake.Cluster
	tokens  string // the path of the file
	log     logtest.Log
	cfg     *gateway.Config
	http    *http.Client
	work    sync.WaitGroup

	queries int
}

const siteGateway = "127.0.0.1:4242"

// newSite starts all but pushdown servers, with the points of two days on two region servers.
func newSite(t *testing.T, tokens string) *site {
	s := &site{T: t, tokens: gatewaytest.WriteTokens(t, tokens)}
	s.hbase = hbasefake.For(t, hbasefake.Options{Servers: 2, Network: &s.network})
	gatewaytest.CreateTables(s.hbase)
	s.cfg = gatewaytest.Config(0)
	s.cfg.Store, s.cfg.AutoMetrics = "hbase:"+s.hbase.Address(), "true"
	s.cfg.Pushdown, s.cfg.TokenFile, s.cfg.Listen = []string{"auto"}, s.tokens, siteGateway
	s.cfg.PushdownPatience = 0
	host := networktest.NewHost(&s.network)
	s.cfg.Network = host
	s.http = &http.Client{Transport: &http.Transport{DialContext: s.network.DialContext}}
	if err := s.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	st := s.open(host)
	g, err := gateway.Start(t.Context(), s.cfg, st, s.log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		st.Close()
		s.work.Wait()
	})

	for hour := range 48 {
		body := fmt.Sprintf(`{"metric":"m","timestamp":%d,"value":1,"tags":{"host":"a"}}`, 1356998400+hour*3600)
		if status, text := s.ask("POST", "/api/put?sync", body); status != http.StatusNoContent {
			t.Fatalf("a put: %d %s", status, text)
		}
	}
	// The second day is at the other region server.
	s.hbase.SplitRegion("tsdb", []byte{0, 0, 1, 0x50, 0xe3, 0x78, 0x80})
	return s
}

func (s *site) open(host *networktest.Host) *hbase.Store {
	st, err := hbase.Open(hbase.Config{
		Quorum: s.hbase.Address(), Dial: host.DialContext, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	return st
}

// ask sends a request to the gateway.
func (s *site) ask(method, path, body string) (status int, text string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://"+siteGateway+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+gatewaytest.AdminToken)
	resp, err := s.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// query runs a query, which must be answered rightly, and returns where its parts were executed.
func (s *site) query() []string {
	s.Helper()
	s.queries++
	const at = "/api/query?start=1356998400&end=1357171200&m=sum:m"
	status, text := s.ask("GET", at, "")
	if status != 200 || strings.Count(text, `":1`) < 48 {
		s.Fatalf("a query: %d %.300s; log:\n%s", status, text, s.log.String())
	}
	status, text = s.ask("GET", at+"&explain=true", "")
	var plan struct{ Parts []struct{ Server string } }
	if err := json.Unmarshal([]byte(text), &plan); status != 200 || err != nil || len(plan.Parts) == 0 {
		s.Fatalf("explain: %d %.300s %v", status, text, err)
	}
	places := map[string]bool{}
	for _, p := range plan.Parts {
		places[p.Server] = true
	}
	return slices.Sorted(maps.Keys(places))
}

// within queries until parts are executed at just these places, for 5 s at most.
func (s *site) within5s(want ...string) {
	s.Helper()
	slices.Sort(want)
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		got := s.query()
		if took := time.Since(began); slices.Equal(got, want) {
			s.Logf("%v after %v", got, took)
			return
		} else if took > 5*time.Second {
			s.Fatalf("parts at %v after %v, want %v; log:\n%s", got, took, want, s.log.String())
		}
	}
}

// stays queries for a time, in which parts are executed at just these places.
func (s *site) stays(d time.Duration, want ...string) {
	s.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(time.Second) {
		if got := s.query(); !slices.Equal(got, want) {
			s.Fatalf("parts at %v, want %v; log:\n%s", got, want, s.log.String())
		}
	}
}

// running is a pushdown server that runs.
type running struct {
	host *networktest.Host
	end  context.CancelFunc
	gone chan struct{}
}

// stop ends it as a signal does, kill at once.
func (r *running) stop() { r.end(); <-r.gone }
func (r *running) kill() { r.host.Cut(); r.end() }

// pushdown starts the pushdown server of a region server, as the program does.
func (s *site) pushdown(i int) (r *running, address string) {
	s.Helper()
	address = fmt.Sprintf("127.0.0.1:%d", 4280+i)
	ctx, end := context.WithCancel(context.Background())
	r = &running{host: networktest.NewHost(&s.network), end: end, gone: make(chan struct{})}
	l, err := r.host.Listen("tcp", address)
	if err != nil {
		s.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	tokens, err := auth.Load(s.tokens, auth.Read, log)
	if err != nil {
		s.Fatal(err)
	}
	keys := s.keys()
	st, beside := s.open(r.host), s.hbase.Nodes()[1+i]
	srv, err := server.NewServer(server.Config{
		Program: "test", Beside: beside, Table: "tsdb", Schema: s.cfg.Schema(), Log: log,
		Allow: func(token string) bool { return tokens.Check(token)&auth.Read != 0 },
		Prove: func(c io.ReadWriter) error {
			known, err := keys()
			if err != nil {
				return err
			}
			return proof.Answer(c, address, known)
		},
	}, st)
	if err != nil {
		s.Fatal(err)
	}
	s.work.Go(func() {
		defer close(r.gone)
		defer st.Close()
		var work sync.WaitGroup
		defer work.Wait()
		announcer := &announce.Announcer{Store: st, Table: "downpour-state", Keys: keys, Log: log,
			Of: announce.Announcement{Address: address, Beside: beside, Table: "tsdb"}}
		work.Go(func() { announcer.Run(ctx) })
		_ = srv.Serve(ctx, l)
	})
	s.Cleanup(end)
	return r, address
}

const siteTokens = "admin " + gatewaytest.AdminToken + "\nread " + gatewaytest.ReadToken + "\n"

// Pushdown servers join and leave, are killed, hang and come back; the state table is away, and its clock set back.
// Each is used, or out of use, within 5 s, and no query is refused.
func TestFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, siteTokens)
		s.within5s("in-process")
		a, atA := s.pushdown(0)
		s.within5s(atA)
		b, atB := s.pushdown(1)
		s.within5s(atA, atB)
		s.stays(time.Minute, atA, atB)

		b.kill()
		s.within5s(atA)
		time.Sleep(5 * time.Second)
		synctest.Wait() // the gateway may look at this very moment
		if left := s.log.Lines("has left"); len(left) != 1 || !strings.Contains(left[0], atB) {
			t.Fatalf("5 s after a server was killed, these have left: %q", left)
		}
		b, _ = s.pushdown(1)
		s.within5s(atA, atB)

		b.host.Stall()
		s.within5s(atA)
		s.stays(time.Minute, atA)
		b.host.Resume()
		s.within5s(atA, atB)

		a.stop()
		s.within5s(atB)
		_, _ = s.pushdown(0)
		s.within5s(atA, atB)

		s.hbase.Disable("downpour-state")
		s.stays(3*time.Minute, atA, atB)
		s.hbase.Enable("downpour-state")
		s.stays(time.Minute, atA, atB)

		// The clock of the region server that has the state table is set back.
		s.hbase.SetBehind(0, 30_000)
		s.hbase.SetBehind(1, 30_000)
		s.hbase.MoveRegion("downpour-state", nil)
		s.stays(time.Minute, atA, atB)

		b.kill()
		s.within5s(atA)
		s.hbase.Disable("downpour-state")
		s.stays(20*time.Second, atA)
		t.Logf("%d queries", s.queries)
	})
}

// Who listens at an announced address and cannot prove anything is sent a question, and no token, and is not used. (It
// writes into the table what a server once announced there, which this gateway has not seen.)
func TestFound_stranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, siteTokens)
		const at = "127.0.0.1:4285"
		stranger, err := s.network.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		var heard logtest.Log
		s.work.Go(func() {
			for {
				c, err := stranger.Accept()
				if err != nil {
					return
				}
				s.work.Go(func() {
					defer c.Close()
					_, _ = io.Copy(&heard, c)
				})
			}
		})
		st := s.open(networktest.NewHost(&s.network))
		ctx, end := context.WithCancel(t.Context())
		s.work.Go(func() {
			defer st.Close()
			(&announce.Announcer{Store: st, Table: "downpour-state", Keys: s.keys(), Log: slog.New(slog.DiscardHandler),
				Of: announce.Announcement{Address: at, Table: "tsdb"}}).Run(ctx)
		})
		s.stays(time.Minute, "in-process")
		end()
		stranger.Close()
		if text := heard.String(); !strings.HasPrefix(text, proof.Magic) || strings.Contains(text, "0123456789") ||
			strings.Contains(text, "PRI") {
			t.Errorf("a stranger was sent %q, want a question", text)
		}
		if len(s.log.Lines("has not proven")) == 0 {
			t.Errorf("the log does not say why: %s", s.log.String())
		}
	})
}

// keys returns what returns the keys of the file of tokens.
func (s *site) keys() func() ([]proof.Key, error) {
	s.Helper()
	tokens, err := auth.Load(s.tokens, auth.Read, slog.New(slog.DiscardHandler))
	if err != nil {
		s.Fatal(err)
	}
	keys, err := announce.Keys(tokens, false)
	if err != nil {
		s.Fatal(err)
	}
	return keys
}

// Without an admin token or mutual TLS nobody could prove anything: the gateway does not start. On an embedded store it
// runs, in process.
func TestFound_refused(t *testing.T) {
	cfg := config(0)
	cfg.Pushdown = []string{"auto"}
	startError(t, cfg, memoryStore(t, cfg), "DOWNPOUR_PUSHDOWN=auto", "scope admin in DOWNPOUR_TOKEN_FILE")
	cfg.TokenFile = gatewaytest.WriteTokens(t, "read "+gatewaytest.ReadToken+"\n")
	startError(t, cfg, memoryStore(t, cfg), "DOWNPOUR_PUSHDOWN=auto", "DOWNPOUR_PUSHDOWN_CA")
	cfg.Pushdown = []string{"auto", "127.0.0.1:4280"}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "want auto alone") {
		t.Errorf("auto and a list: %v, want it refused", err)
	}

	cfg.Pushdown, cfg.TokenFile = []string{"auto"}, gatewaytest.WriteTokens(t, siteTokens)
	var log logtest.Log
	g, err := gateway.Start(t.Context(), cfg, memoryStore(t, cfg), log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log says why", func() bool { return len(log.Lines("reads an embedded store")) == 1 })
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
