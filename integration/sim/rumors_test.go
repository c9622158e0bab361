package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/announce"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/rpc/proof"
	stores "downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
)

// rumors are announcements that are not what they seem, and the strangers to whom they lead.
type rumors struct {
	f *finding
	// named is where announcements with a true signature lead, as those of a server that was set up wrongly; unnamed is
	// where only others do: nobody may dial it. takers listen where a pushdown server may have been.
	named, unnamed *stranger
	takers         [servers]*stranger

	ends []func(killed bool) // of what is announced until the world ends

	mu      sync.Mutex
	written map[string][]stores.Mutation // by the keys of their rows, what pushdown servers have announced
	rows    []string                     // these keys, in their order
	passed  map[string]bool              // questions that strangers have passed on, perhaps to another stranger
}

func newRumors(f *finding) *rumors {
	m := &rumors{f: f, written: map[string][]stores.Mutation{}, passed: map[string]bool{}}
	m.named, m.unnamed = newStranger(f, "127.0.0.1:42820"), newStranger(f, "127.0.0.1:42821")
	for i := range m.takers {
		m.takers[i] = newStranger(f, otherAddress(i))
	}
	return m
}

// nowhere is an address at which nobody listens.
const nowhere = "127.0.0.1:42822"

// allRumors are the kinds that are spread, each for a time.
var allRumors = []struct {
	name   string
	spread func(m *rumors, r *rand.Rand, d time.Duration)
}{
	{"announcement of nobody", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.claimFor(r, d, nowhere, m.f.keys)
	}},
	{"announcement of a stranger", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.claimFor(r, d, m.named.address, m.f.keys)
	}},
	{"announcement by another token", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.claimFor(r, d, m.unnamed.address, ofStranger)
	}},
	{"announcement without a signature", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.claimFor(r, d, m.unnamed.address, unsigned)
	}},
	{"two announcements of one address", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.claimFor(r, d, m.f.at()[r.IntN(servers)], m.f.keys)
	}},
	{"announcement written back", func(m *rumors, r *rand.Rand, d time.Duration) {
		m.repeat(r, d, func(was int64) int64 { return was })
	}},
	{"announcement written back, clock ahead", func(m *rumors, r *rand.Rand, d time.Duration) {
		ahead := time.Duration(r.Int64N(int64(10 * 365 * 24 * time.Hour)))
		m.repeat(r, d, func(int64) int64 { return time.Now().Add(ahead).UnixMilli() })
	}},
	{"announcement written back, clock behind", func(m *rumors, r *rand.Rand, d time.Duration) {
		behind := time.Duration(r.Int64N(int64(365 * 24 * time.Hour)))
		m.repeat(r, d, func(int64) int64 { return time.Now().Add(-behind).UnixMilli() })
	}},
	{"stranger asks", func(m *rumors, r *rand.Rand, _ time.Duration) { m.ask(m.f.at()[r.IntN(servers)]) }},
	{"announcement deleted", func(m *rumors, r *rand.Rand, _ time.Duration) {
		if row := m.row(r); row != "" {
			m.f.k.hbase.DeleteRow(state, row, "s")
		}
	}},
}

// spread spreads rumors until the world stops.
func (m *rumors) spread() {
	w := m.f.k.w
	m.named.start()
	m.unnamed.start()
	r := w.rand("rumors")
	var all sync.WaitGroup
	for n := 0; w.pause(r, 20*time.Second); n++ {
		mine := w.rand(fmt.Sprint("rumor ", n))
		kind, d := allRumors[mine.IntN(len(allRumors))], time.Duration(mine.Int64N(int64(40*time.Second)))
		w.broke(kind.name, "rumor %d: %s, for %v", n, kind.name, d)
		all.Go(func() { kind.spread(m, mine, d) })
	}
	all.Wait()
}

// claim announces a server at an address, which is none or not this one, until what it returns is called. Its row
// stays if it is killed then.
func (m *rumors) claim(r *rand.Rand, address string, keys func() ([]proof.Key, error)) (end func(killed bool)) {
	k := m.f.k
	name, beside := "announcer of "+address, k.hbase.Nodes()[1+r.IntN(servers)]
	host := networktest.NewHost(&k.w.network)
	st, err := k.connect(name, host, hbase.ProofExact)
	if err != nil {
		k.w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		defer st.Close()
		(&announce.Announcer{
			Store: st, Table: state, Keys: keys, Log: k.w.log(name),
			Of: announce.Announcement{Address: address, Beside: beside, Table: "tsdb"},
		}).Run(ctx)
	})
	return func(killed bool) {
		if killed {
			host.Cut()
		}
		cancel()
		work.Wait()
	}
}

// claimFor announces one for a time.
func (m *rumors) claimFor(r *rand.Rand, d time.Duration, address string, keys func() ([]proof.Key, error)) {
	end := m.claim(r, address, keys)
	m.f.k.w.rest(d)
	end(r.IntN(2) == 0)
}

// ofStranger returns the key of a token that no gateway knows, and unsigned none.
func ofStranger() ([]proof.Key, error) {
	return proof.Keys([][sha256.Size]byte{sha256.Sum256([]byte(gatewaytest.WrongToken))})
}

func unsigned() ([]proof.Key, error) { return nil, nil }

// row draws one in which a pushdown server has announced itself, one of the last, "" if there is none.
func (m *rumors) row(r *rand.Rand) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rows) == 0 {
		return ""
	}
	return m.rows[max(0, len(m.rows)-1-r.IntN(2*servers))]
}

// repeat writes what a server has announced again, with other times of the cells, while a stranger listens where it
// was.
func (m *rumors) repeat(r *rand.Rand, d time.Duration, at func(was int64) int64) {
	w, row := m.f.k.w, m.row(r)
	for i, s := range m.takers {
		if strings.HasPrefix(row, rowsOf(otherAddress(i))) {
			s.start()
			defer s.stop()
		}
	}
	if row == "" {
		return
	}
	for n := range int(d / time.Second) {
		m.again(row, row, n, at)
		w.rest(time.Second)
		select {
		case <-w.stop:
			return
		default:
		}
	}
}

// rowsOf is what keys of rows begin with of servers at an address.
func rowsOf(address string) string { return "pushdown/" + address + "/" }

// again writes the n-th announcement of a row again, from the first on after the last, into the same row or another.
func (m *rumors) again(row, into string, n int, at func(was int64) int64) {
	m.mu.Lock()
	life := m.written[row]
	m.mu.Unlock()
	again := life[n%len(life)]
	m.f.k.hbase.PutAt(state, into, again.Family, string(again.Qualifier), string(again.Value), at(again.Timestamp))
}

// lastOf returns the row of the last process that was announced at an address.
func (m *rumors) lastOf(address string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range slices.Backward(m.rows) {
		if strings.HasPrefix(row, rowsOf(address)) {
			return row
		}
	}
	m.f.k.w.t.Fatalf("seed %d: nobody has announced a server at %s", m.f.k.w.seed, address)
	return ""
}

// passOn notes that a stranger passes a question on.
func (m *rumors) passOn(question []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed[string(question)] = true
}

func (m *rumors) hasPassedOn(question []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.passed[string(question)]
}

// noting is a store that notes what announcements are written to it.
type noting struct {
	stores.Store
	m *rumors
}

// Features are none.
func (noting) Features() stores.Features { return stores.Features{} }

// Apply writes, and notes what was written.
func (n noting) Apply(ctx context.Context, table string, all []stores.Mutation) error {
	err := n.Store.Apply(ctx, table, all)
	n.m.mu.Lock()
	defer n.m.mu.Unlock()
	for _, m := range all {
		if row := string(m.Row); err == nil && m.Kind == stores.Put {
			if n.m.written[row] == nil {
				n.m.rows = append(n.m.rows, row)
			}
			n.m.written[row] = append(n.m.written[row], m)
		}
	}
	return err
}

// last announces strangers until the world ends.
func (m *rumors) last() {
	r := m.f.k.w.rand("last rumors")
	m.ends = append(m.ends, m.claim(r, m.named.address, m.f.keys), m.claim(r, m.unnamed.address, ofStranger),
		m.claim(r, m.unnamed.address, unsigned))
}

// close ends the strangers, and what announces them.
func (m *rumors) close() {
	for _, end := range m.ends {
		end(false)
	}
	for _, s := range append(m.takers[:], m.named, m.unnamed) {
		s.stop()
	}
}

// check checks what strangers have heard.
func (m *rumors) check() {
	for _, s := range append(m.takers[:], m.named) {
		s.check()
	}
	if n := len(m.unnamed.calls()); n > 0 {
		m.f.k.w.t.Errorf("seed %d: %s was dialed %d times, and only announcements that do not count lead there",
			m.f.k.w.seed, m.unnamed.address, n)
	}
}
