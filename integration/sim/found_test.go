package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/announce"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/rpc/server"
	stores "downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// state is the table that has announcements.
const state = "downpour-state"

// tokens are those of the token file, the first for reading and the second of an administrator.
var tokens = [2]string{gatewaytest.ReadToken, gatewaytest.AdminToken}

// finding is what a cluster has whose pushdown servers announce themselves and whose gateways find them.
type finding struct {
	k       *cluster
	tokens  string // the file that all programs have
	allowed *auth.Tokens
	keys    func() ([]proof.Key, error) // of its admin token
	finds   []bool                      // by gateway, whether it finds its servers
	empty   *pebble.Store               // of strangers
	rumors  *rumors

	mu     sync.Mutex
	starts [servers]int
	now    [servers]self
}

// self is what a pushdown server says of itself.
type self struct {
	address, beside string
	table           string // it refuses parts of others
}

// newFinding draws whether servers of a world are found. Half a day of announcements would be too many.
func newFinding(k *cluster) *finding {
	if k.w.tempo != minutes || k.w.rand("found servers").IntN(3) > 0 {
		return nil
	}
	f := &finding{
		k:      k,
		tokens: gatewaytest.WriteTokens(k.w.t, fmt.Sprintf("read %s\nadmin %s\n", tokens[0], tokens[1])),
		empty:  opentest.Embedded(k.w.t, opentest.Table("tsdb", "t")),
	}
	var err error
	if f.allowed, err = auth.Load(f.tokens, auth.Read, k.w.log("tokens")); err != nil {
		k.w.t.Fatal(err)
	}
	if f.keys, err = announce.Keys(f.allowed, false); err != nil {
		k.w.t.Fatal(err)
	}
	k.w.token = tokens[1]
	f.rumors = newRumors(f)
	return f
}

// settings changes those of a gateway. The first one finds its servers, others may have a list or none.
func (f *finding) settings(r *rand.Rand, of map[string]string) {
	of["DOWNPOUR_TOKEN_FILE"] = f.tokens
	finds := len(f.finds) == 0 || r.IntN(2) == 0
	if f.finds = append(f.finds, finds); finds {
		of["DOWNPOUR_PUSHDOWN"] = "auto"
	}
}

// otherAddress is a second one at which a pushdown server may listen. No gateway has it in its list.
func otherAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", 42_810+i) }

// self draws what a pushdown server that starts says of itself, which need not be true, and where it listens.
func (f *finding) self(i int) self {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, before := f.k.w, f.now[i]
	r := w.rand(fmt.Sprintf("start %d of pushdown server %d", f.starts[i], i))
	f.starts[i]++
	s := self{[]string{pushdownAddress(i), otherAddress(i)}[r.IntN(2)], f.k.hbase.Nodes()[1+i], "tsdb"}
	switch r.IntN(6) {
	case 0:
		s.beside = []string{"", "nobody:16020", f.k.hbase.Nodes()[1+(i+1)%servers]}[r.IntN(3)]
		w.broke("pushdown server says that it is elsewhere", "pushdown server %d says that it is at %q", i, s.beside)
	case 1:
		s.table = "others"
		w.broke("pushdown server of another table", "pushdown server %d has another table than it says", i)
	}
	if before.address != "" {
		kind := "pushdown server back"
		if before.address != s.address {
			kind = "pushdown server back at another address"
		}
		w.broke(kind, "%s: %d at %s", kind, i, s.address)
	}
	f.now[i] = s
	return s
}

// at returns the addresses of the pushdown servers.
func (f *finding) at() (addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.now {
		addresses = append(addresses, s.address)
	}
	slices.Sort(addresses)
	return addresses
}

// protect has a pushdown server demand tokens and prove itself at an address, as the program does.
func (f *finding) protect(cfg *server.Config, address string) {
	cfg.Allow = func(token string) bool { return f.allowed.Check(token)&auth.Read != 0 }
	cfg.Prove = func(c io.ReadWriter) error {
		keys, err := f.keys()
		if err != nil {
			return err
		}
		return proof.Answer(c, address, keys)
	}
}

// announce announces a pushdown server until ctx ends.
func (f *finding) announce(ctx context.Context, name string, s self, st stores.Store) {
	(&announce.Announcer{
		Store: noting{st, f.rumors}, Table: state, Keys: f.keys, Log: f.k.w.log(name),
		Of: announce.Announcement{Address: s.address, Beside: s.beside, Table: "tsdb"},
	}).Run(ctx)
}

// mustRun are the faults that found servers have in a run of many worlds.
func mustRun() []string {
	all := []string{
		"pushdown server back", "pushdown server back at another address", "pushdown server says that it is elsewhere",
		"pushdown server of another table", "state table away", "state table away for minutes", "state table moved",
		"state table moved to another clock",
		"stranger hangs up", "stranger says nothing", "stranger passes the question on",
		"stranger shows the signature of the question", "stranger makes up a signature",
	}
	for _, kind := range allRumors {
		all = append(all, kind.name)
	}
	return all
}

// live breaks what has to do with announcements until the world stops.
func (f *finding) live() {
	var all sync.WaitGroup
	all.Go(f.breakState)
	all.Go(f.rumors.spread)
	all.Wait()
}

// breakState lets the state table be away, sometimes for minutes, and moves it.
func (f *finding) breakState() {
	w := f.k.w
	r := w.rand("state table")
	for w.pause(r, time.Minute) {
		switch r.IntN(3) {
		case 0:
			d := time.Minute + time.Duration(r.Int64N(int64(2*time.Minute)))
			w.broke("state table away for minutes", "%s is disabled for %v", state, d)
			f.k.hbase.Disable(state)
			w.rest(d)
			f.k.hbase.Enable(state)
		case 1:
			d := time.Duration(r.Int64N(int64(20 * time.Second)))
			w.broke("state table away", "%s is disabled for %v", state, d)
			f.k.hbase.Disable(state)
			w.rest(d)
			f.k.hbase.Enable(state)
		case 2:
			w.broke("state table moved", "%s moves", state)
			f.k.hbase.MoveRegion(state, nil)
		}
	}
}

// soon is within what time a server that joins is used, and one that is gone is not: see servers.md.
const soon = 5 * time.Second

// checkAtEnd checks, now that nothing fails, that gateways know all servers that run, and of strangers only the one
// with a true announcement, also when a server is killed and comes back. Strangers stay until the world ends.
func (f *finding) checkAtEnd() {
	w := f.k.w
	f.rumors.last()
	f.know(noticed, "after all faults", f.at()...)
	for _, address := range f.at() {
		f.rumors.ask(address)
	}
	i := w.rand("the last to be killed").IntN(servers)
	f.mu.Lock()
	killed, left := f.now[i].address, f.now[(i+1)%servers].address
	f.mu.Unlock()
	f.k.pushdown[i].kill()
	// All that it has announced comes again, as if it were new, in its row and in that of a stranger.
	row, now := f.rumors.lastOf(killed), func(int64) int64 { return time.Now().UnixMilli() }
	for n := range int(soon / time.Second) {
		f.rumors.again(row, row, n, now)
		f.rumors.again(row, rowsOf(f.rumors.unnamed.address)+"again", n, now)
		pass(time.Second)
	}
	f.know(0, "5 s after a server was killed", left)
	f.k.pushdown[i].start()
	pass(time.Second) // until it has drawn its address
	f.know(soon-time.Second, "after it is back", f.at()...)
	f.moveState()
}

// moveState checks that servers stay known while the state table is away, and while it moves between region servers
// whose clocks are apart.
func (f *finding) moveState() {
	f.k.hbase.Disable(state)
	f.stay(30*time.Second, "while the state table is away")
	f.k.hbase.Enable(state)
	f.stay(3*soon, "after the state table was away")
	if !f.k.clocksMayDiffer() {
		return
	}
	for i := range servers {
		f.k.hbase.SetBehind(i, int64(25_000*i))
	}
	for range servers {
		f.k.w.broke("state table moved to another clock", "%s moves", state)
		f.k.hbase.MoveRegion(state, nil)
		f.stay(soon, "after the state table has moved to another clock")
	}
}

// stay checks for a time that gateways know the servers that run.
func (f *finding) stay(d time.Duration, when string) {
	for range int(d / time.Second) {
		pass(time.Second)
		f.know(0, when, f.at()...)
	}
}

// close ends strangers, and checks what they have heard, and that no token is in the table.
func (f *finding) close() {
	f.rumors.close()
	f.rumors.check()
	text := f.k.hbase.Dump(state)
	for _, token := range tokens {
		if strings.Contains(text, token) {
			f.k.w.t.Errorf("seed %d: a token is in the table %s:\n%s", f.k.w.seed, state, text)
		}
	}
}

// know waits until the gateways that find servers know just these, and the stranger.
func (f *finding) know(within time.Duration, when string, want ...string) {
	w := f.k.w
	want = slices.Sorted(slices.Values(append(want, f.rumors.named.address)))
	for i, finds := range f.finds {
		if !finds {
			continue
		}
		got := f.known(i)
		for left := int(within / time.Second); left > 0 && !slices.Equal(got, want); left-- {
			pass(time.Second)
			got = f.known(i)
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("seed %d: %s gateway %d knows the pushdown servers %q, want %q within %v",
				w.seed, when, i, got, want, within)
		}
		w.checked("found servers")
	}
}

// known returns the addresses of the pushdown servers that a gateway has, as an operator sees them.
func (f *finding) known(gateway int) (addresses []string) {
	var report struct {
		Places struct {
			List []struct{ Address, State string }
		}
	}
	a := f.k.w.clients.ask(gateway, "GET", "/api/ops", "")
	if err := json.Unmarshal(a.body, &report); err != nil || !a.ok() {
		f.k.w.t.Errorf("seed %d: gateway %d, /api/ops: %v, %v", f.k.w.seed, gateway, err, a)
	}
	for _, p := range report.Places.List {
		if p.State != "" {
			addresses = append(addresses, p.Address)
		}
	}
	slices.Sort(addresses)
	return addresses
}
