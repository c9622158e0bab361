package announce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

const table = "downpour-state"

// town is a table with servers that announce themselves, and a gateway that finds them.
type town struct {
	*testing.T
	st      *faultstore.Store
	log     logtest.Log
	watcher *Watcher

	mu    sync.Mutex
	found []string
	calls int
}

// open opens a town in simulated time. The gateway knows some tokens.
func open(t *testing.T, tokens ...string) *town {
	return openOn(t, opentest.Embedded(t, lease.Table(table, "NONE")), tokens...)
}

// openOn opens one on a store.
func openOn(t *testing.T, st store.Store, tokens ...string) *town {
	w := &town{T: t, st: faultstore.New(st)}
	w.watcher = &Watcher{
		Store: w.st, Table: table, Data: "tsdb", Keys: keysOf(t, tokens...), Log: w.log.Logger(),
		Changed: func(found []string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.found = found
			w.calls++
		},
	}
	return w
}

// keysOf returns what returns the keys of tokens.
func keysOf(t *testing.T, tokens ...string) func() ([]proof.Key, error) {
	var hashes [][sha256.Size]byte
	for _, token := range tokens {
		hashes = append(hashes, sha256.Sum256([]byte(token)))
	}
	keys, err := proof.Keys(hashes)
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]proof.Key, error) { return keys, nil }
}

// run runs something until the end of the test, or until what it returns is called, which waits for its end.
func (w *town) run(what func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		what(ctx)
	}()
	return func() { cancel(); <-ended }
}

// announcer returns the announcer of a server, which does not run yet.
func (w *town) announcer(address string, tokens ...string) *Announcer {
	return &Announcer{
		Store: w.st, Table: table, Keys: keysOf(w.T, tokens...), Log: w.log.Logger(),
		Of: Announcement{Address: address, Beside: "rs:16020", Version: "1", Table: "tsdb"},
	}
}

// within waits until these are the servers that are found, for a time at most.
func (w *town) within(d time.Duration, want ...string) {
	w.Helper()
	for began := time.Now(); !slices.Equal(w.get(), want); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > d {
			w.Fatalf("found %q after %v, want %q; log:\n%s", w.get(), d, want, w.log.String())
		}
	}
}

// stays checks for a time that no other servers are found.
func (w *town) stays(d time.Duration, want ...string) {
	w.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(50 * time.Millisecond) {
		if got := w.get(); !slices.Equal(got, want) {
			w.Fatalf("found %q, want %q; log:\n%s", got, want, w.log.String())
		}
	}
}

func (w *town) get() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// put writes a row, as who can write the table.
func (w *town) put(key, value []byte) {
	w.Helper()
	w.change(store.Mutation{
		Kind: store.Put, Row: key, Family: lease.Family, Qualifier: []byte(column), Value: value,
	})
}

func (w *town) change(m store.Mutation) {
	w.Helper()
	if err := w.st.Apply(w.Context(), table, []store.Mutation{m}); err != nil {
		w.Fatal(err)
	}
}

// row returns the row of an address, nil if there is none.
func (w *town) row(address string) (key, value []byte) {
	w.Helper()
	rows, _, err := read(w.Context(), w.st, table)
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range rows {
		if bytes.HasPrefix(r.Key, []byte(firstRow+address+"/")) {
			return r.Key, cellOf(r)
		}
	}
	return nil, nil
}

// lines fails unless the log has so many lines with a text.
func (w *town) lines(n int, with string) {
	w.Helper()
	if got := w.log.Lines(with); len(got) != n {
		w.Errorf("%d lines with %q, want %d:\n%s", len(got), with, n, w.log.String())
	}
}

const token, other = "admin-0123456789", "other-0123456789"

// A server is found within 5 s after it has started, and gone within 5 s after it was killed; one that ends says so. No
// clock but the watcher's counts.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		w.stays(10 * time.Second)
		endA := w.run(w.announcer("a:4280", token).Run)
		w.within(5*time.Second, "a:4280")
		endB := w.run(w.announcer("b:4280", token).Run)
		w.within(5*time.Second, "a:4280", "b:4280")
		w.stays(time.Minute, "a:4280", "b:4280")

		endA()
		w.within(1500*time.Millisecond, "b:4280")
		if key, row := w.row("a:4280"); row != nil {
			t.Errorf("row %q of a server that has ended: %q", key, row)
		}
		// Its row is written back.
		key, row := w.row("b:4280")
		endB()
		w.put(key, row)
		w.within(5 * time.Second)
		w.stays(time.Minute)
		w.lines(2, "a pushdown server has joined")
		w.lines(2, "a pushdown server has left")
		w.lines(0, "level=WARN")
	})
}

// A server that is killed, and whose row stays, is gone within 5 s. A gateway that starts later does not find it.
func TestWatcher_killed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		a := w.announcer("a:4280", token)
		// As seen from the table, it is killed: no write of it arrives any more.
		own := faultstore.New(w.st)
		a.Store = own
		end := w.run(a.Run)
		defer end()
		w.within(5*time.Second, "a:4280")
		killed := errors.New("killed")
		own.Set(faultstore.Rule{Err: killed})
		w.within(5 * time.Second)
		if key, _ := w.row("a:4280"); key == nil {
			t.Error("the row is gone, want it left as it was")
		}
		// It comes back, under the same address.
		own.Set()
		w.within(5*time.Second, "a:4280")

		own.Set(faultstore.Rule{Err: killed})
		w.within(5 * time.Second)
		later := *w.watcher
		var found []string
		later.Changed, later.servers, later.now = func(a []string) { found = a }, nil, nil
		endLater := w.run(later.Run)
		time.Sleep(time.Minute)
		endLater()
		if found != nil {
			t.Errorf("a gateway that has started later finds %q", found)
		}
	})
}

// What others write into the table adds no server: neither without a signature nor with a wrong one, nor what was once
// right.
//
//fault:unsigned-announcement-counts !ok && !unsigned => !ok && false
//fault:announcement-of-another-address !bytes.Equal(key, a.rowKey()) => false
func TestWatcher_forged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		known, _ := keysOf(t, token)()
		stranger, _ := keysOf(t, other)()
		a := Announcement{Address: "evil:4280", Table: "tsdb", Instance: "x"}
		good := Announcement{Address: "good:4280", Table: "tsdb", Instance: "y"}
		long, far := a, a
		long.Version, far.Table = strings.Repeat("x", maxValue), "others"
		bad := func(address string) Announcement {
			x := a
			x.Address = address
			return x
		}
		value := func(a Announcement, keys []proof.Key) []byte {
			b, err := encode(a, keys)
			if err != nil {
				b = fmt.Appendf(nil, `{"address":%q,"instance":"x","version":%q}`, a.Address, a.Version)
			}
			return b
		}
		for name, row := range map[string]struct {
			why string
			key string
			of  func(sequence uint64) []byte
		}{
			"unsigned": {errUnsigned.Error(), "pushdown/evil:4280/x", func(n uint64) []byte {
				a.Sequence = n
				return value(a, nil)
			}},
			"signed by another token": {errUnsigned.Error(), "pushdown/evil:4280/x", func(n uint64) []byte {
				a.Sequence = n
				return value(a, stranger)
			}},
			"the signature of another": {errUnsigned.Error(), "pushdown/evil:4280/x", func(n uint64) []byte {
				a.Sequence, good.Sequence = n, n
				_, signature, _ := bytes.Cut(value(good, known), []byte("\n"))
				line, _, _ := bytes.Cut(value(a, nil), []byte("\n"))
				return fmt.Appendf(nil, "%s\n%s", line, signature)
			}},
			"in the row of another": {errMoved.Error(), "pushdown/evil:4280/x", func(n uint64) []byte {
				good.Sequence = n
				return value(good, known)
			}},
			"of another table": {"it is of another table", "pushdown/evil:4280/x", func(n uint64) []byte {
				far.Sequence = n
				return value(far, known)
			}},
			"garbage": {errUnreadable.Error(), "pushdown/evil:4280/x", func(n uint64) []byte {
				return fmt.Append(nil, "\xff{", n)
			}},
			"nothing": {errUnreadable.Error(), "pushdown/evil:4280/x", func(uint64) []byte { return []byte("\n") }},
			"too long": {errUnreadable.Error(), "pushdown/evil:4280/x", func(uint64) []byte {
				return value(long, known)
			}},
			"an address with a blank": {errUnreadable.Error(), "pushdown/e vil:4280/x", func(n uint64) []byte {
				return value(bad("e vil:4280"), known)
			}},
			"an address without a port": {errUnreadable.Error(), "pushdown/evil/x", func(n uint64) []byte {
				return value(bad("evil"), known)
			}},
		} {
			synctest.Wait() // the watcher waits for its next look
			w.log.Take()
			w.watcher.logged = nil
			for n := range uint64(5) {
				w.put([]byte(row.key), row.of(n+1))
				time.Sleep(time.Second)
			}
			if got := w.get(); len(got) > 0 {
				t.Errorf("%s: found %q", name, got)
			}
			w.lines(1, "level=WARN")
			w.lines(1, row.why)
			w.change(store.Mutation{Kind: store.DeleteRow, Row: []byte(row.key), Family: lease.Family})
			time.Sleep(2 * time.Second)
		}
	})
}

// A server's life was recorded; after its end it is written back, and does not count.
//
//fault:replayed-announcement-counts a.Sequence > s.Sequence => a.Sequence != s.Sequence
func TestWatcher_replayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		end := w.run(w.announcer("good:4280", token).Run)
		var key []byte
		var life [][]byte
		for range 10 {
			time.Sleep(time.Second)
			var row []byte
			key, row = w.row("good:4280")
			life = append(life, row)
		}
		w.stays(2*time.Second, "good:4280") // and all of it was seen
		end()
		w.within(2 * time.Second)
		for _, row := range life {
			w.put(key, row)
			w.stays(time.Second)
		}
	})
}

// A flood of rows takes bounded work, and is logged once. The servers in the rows that are read count.
func TestWatcher_flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		defer w.run(w.announcer("a:4280", token).Run)()
		w.within(5*time.Second, "a:4280")
		for i := range 3 * maxRows {
			w.put(fmt.Appendf(nil, "pushdown/x%05d:1", i), []byte("garbage"))
		}
		w.stays(time.Minute, "a:4280")
		w.lines(1, "why=\"too many\"")
		w.lines(1, errUnreadable.Error())
		rows, all, err := read(t.Context(), w.st, table)
		if err != nil || len(rows) != maxRows || all {
			t.Errorf("read %d rows, all: %t, %v; want %d", len(rows), all, err, maxRows)
		}
	})
}

// With mutual TLS and no admin token at the gateway, announcements count unsigned.
func TestWatcher_certified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.run(w.announcer("a:4280").Run)()
		end := w.run(w.watcher.Run)
		w.stays(10 * time.Second)
		w.lines(1, errUnsigned.Error())
		end()

		w.watcher.Certified = true
		defer w.run(w.watcher.Run)()
		w.within(5*time.Second, "a:4280")
	})
}

// While the table cannot be reached, for minutes, the servers that were known stay; then they count on, or have left.
func TestWatcher_away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		defer w.run(w.announcer("a:4280", token).Run)()
		b := w.announcer("b:4280", token)
		own := faultstore.New(w.st)
		b.Store = own
		defer w.run(b.Run)()
		w.within(5*time.Second, "a:4280", "b:4280")
		for _, rule := range []faultstore.Rule{
			{Table: table, Err: store.ErrUnavailable}, {Table: table, Delay: time.Hour},
			{Table: table, Delay: 4 * time.Second},
			{Table: table, Err: store.ErrDenied}, {Table: table, Err: store.ErrNoTable},
		} {
			w.log.Take()
			w.st.Set(rule)
			w.stays(5*time.Minute, "a:4280", "b:4280")
			w.lines(1, "pushdown servers are not looked for")
			w.lines(2, "cannot announce")
			w.st.Set()
			w.stays(2*time.Minute, "a:4280", "b:4280")
			w.lines(1, "pushdown servers are looked for again")
		}

		// One that dies during the outage is noticed after it.
		w.st.Set(faultstore.Rule{Table: table, Err: store.ErrUnavailable})
		own.Set(faultstore.Rule{Err: errors.New("killed")})
		w.stays(5*time.Minute, "a:4280", "b:4280")
		w.st.Set()
		w.within(afterOutage+5*time.Second, "a:4280")
	})
}

// A gateway without the table, or without a right to it, has no servers, one line in its log, and finds them later.
func TestWatcher_noTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, soon := range map[error]time.Duration{
			store.ErrNoTable: 5 * time.Second, store.ErrDenied: slowAfter + 5*time.Second,
		} {
			w := open(t, token)
			w.st.Set(faultstore.Rule{Op: faultstore.Scan, Err: err})
			end := w.run(w.watcher.Run)
			endA := w.run(w.announcer("a:4280", token).Run)
			w.stays(5 * time.Minute)
			w.lines(1, "level=WARN")
			w.st.Set()
			w.within(soon, "a:4280")
			endA()
			end()
		}
	})
}

// Tokens are replaced while servers run: as long as a gateway and a server have one in common, all goes on.
func TestWatcher_rotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		var mu sync.Mutex
		of := map[string][]string{"gateway": {token}, "server": {token}}
		known := func(who string) func() ([]proof.Key, error) {
			return func() ([]proof.Key, error) {
				mu.Lock()
				defer mu.Unlock()
				return keysOf(t, of[who]...)()
			}
		}
		set := func(who string, tokens ...string) {
			mu.Lock()
			defer mu.Unlock()
			of[who] = tokens
		}
		w.watcher.Keys = known("gateway")
		a := w.announcer("a:4280")
		a.Keys = known("server")
		defer w.run(w.watcher.Run)()
		defer w.run(a.Run)()
		w.within(5*time.Second, "a:4280")
		for _, step := range []struct {
			who    string
			tokens []string
		}{
			{"server", []string{other, token}}, {"gateway", []string{token, other}}, {"gateway", []string{other}},
			{"server", []string{other}},
		} {
			set(step.who, step.tokens...)
			w.stays(10*time.Second, "a:4280")
		}
		set("gateway", token)
		w.within(5 * time.Second)
	})
}

// Two servers with one address are one; the log says so, once. When one ends, the other stays.
func TestWatcher_twoWithOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		defer w.run(w.watcher.Run)()
		endA := w.run(w.announcer("a:4280", token).Run)
		time.Sleep(300 * time.Millisecond)
		endB := w.run(w.announcer("a:4280", token).Run)
		w.within(5*time.Second, "a:4280")
		w.stays(time.Minute, "a:4280")
		endA()
		time.Sleep(2 * time.Second)
		w.within(5*time.Second, "a:4280")
		w.stays(time.Minute, "a:4280")
		endB()
		w.within(2 * time.Second)
		w.lines(1, "level=WARN")
		w.lines(1, "two servers announce one address")

		// A restart is not two servers.
		w.log.Take()
		for range 3 {
			end := w.run(w.announcer("a:4280", token).Run)
			w.within(5*time.Second, "a:4280")
			end()
			w.within(2 * time.Second)
		}
		w.lines(0, "level=WARN")
	})
}

// Rows of servers that were killed are deleted after some minutes, others stay.
func TestAnnouncer_tidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, token)
		w.put([]byte("pushdown/gone:4280/x"), []byte("garbage"))
		w.put([]byte("pushdowX"), []byte("not ours"))
		defer w.run(w.announcer("a:4280", token).Run)()
		b := w.announcer("b:4280", token)
		defer w.run(b.Run)()
		time.Sleep(2*tidyEvery + time.Minute)
		for address, want := range map[string]bool{"gone:4280": false, "a:4280": true, "b:4280": true} {
			if _, row := w.row(address); (row != nil) != want {
				t.Errorf("%s: row %q, want one: %t", address, row, want)
			}
		}
		rows, err := w.st.Get(t.Context(), table, lease.Family, [][]byte{[]byte("pushdowX")})
		if err != nil || len(rows) != 1 {
			t.Errorf("%v, %v: a row of others is gone", rows, err)
		}
		w.lines(0, "level=WARN")
	})
}

// A process that stood still for so long that others have deleted its row goes on in it, and is found again, although
// HBase hides what is written after a deletion.
func TestAnnouncer_suspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{})
		st := opentest.HBaseWith(t, fake, hbase.Config{}, lease.Table(table, "NONE"))
		fake.KeepVersions(table)
		w := openOn(t, st, token)
		defer w.run(w.watcher.Run)()
		defer w.run(w.announcer("a:4280", token).Run)()
		b := w.announcer("b:4280", token)
		own := faultstore.New(w.st)
		b.Store = own
		defer w.run(b.Run)()
		w.within(5*time.Second, "a:4280", "b:4280")
		own.Set(faultstore.Rule{Err: store.ErrUnavailable})
		time.Sleep(3 * tidyEvery)
		if now, _ := w.row("b:4280"); now != nil {
			t.Errorf("its row is still there: %q", now)
		}
		own.Set()
		w.within(5*time.Second, "a:4280", "b:4280")
	})
}

// The last announcement before an outage may be seen only after it: the server has as much time as the others to go on.
func TestWatcher_afterOutage(t *testing.T) {
	w := open(t, token)
	keys, _ := keysOf(t, token)()
	at := time.Now()
	observe := func(d time.Duration, sequence uint64) {
		t.Helper()
		a := Announcement{Address: "a:4280", Table: "tsdb", Instance: "x", Sequence: sequence}
		value, err := encode(a, keys)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(d)
		w.watcher.observe(at, []store.Row{{Key: a.rowKey(), Cells: []store.Cell{
			{Qualifier: []byte(column), Value: value},
		}}}, keys)
	}
	observe(0, 1)
	observe(every, 2)
	observe(5*time.Minute, 3)
	for range afterOutage / every {
		observe(every, 3)
		if got := w.get(); !slices.Equal(got, []string{"a:4280"}) {
			t.Fatalf("found %q soon after the outage", got)
		}
	}
	for range 5 {
		observe(every, 3)
	}
	if got := w.get(); len(got) > 0 {
		t.Errorf("found %q, though it has not gone on", got)
	}
}
