package announce

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"downpour/pushdown/lease"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/store"
)

const (
	// maxRows and maxBytes bound what is read of the table at a time.
	maxRows  = 1024
	maxBytes = 4 << 20
	// maxServers bounds the processes that are remembered, and forgetAfter how long one is after its row was seen last.
	maxServers  = 4 * maxRows
	forgetAfter = time.Hour
	// afterOutage is how much longer servers count once the table can be read again: they may be slower to notice.
	afterOutage = slowAfter + 5*time.Second
	// logEvery is how often is logged that rows of a kind are ignored.
	logEvery = time.Hour
)

// Watcher finds the pushdown servers that announce themselves. The fields are set before it is used.
type Watcher struct {
	Store store.Reader
	// Table is Downpour's own table, and Data that of the points: servers of another one do not count.
	Table, Data string
	// Keys returns the keys of the admin tokens, see package proof. An announcement counts if one has signed it.
	Keys func() ([]proof.Key, error)
	// Certified is set with mutual TLS. Then announcements count unsigned if there are no keys.
	Certified bool
	// Changed is called with the addresses, in their order, whenever they are others. Calls do not overlap.
	Changed func(addresses []string)
	Log     *slog.Logger

	servers map[string]*server // by the keys of their rows
	read    time.Time          // when the table was last read
	failure failure            // why it was not read last
	now     []string           // what Changed was called with last
	logged  map[string]time.Time
}

// server is what is known of a process.
type server struct {
	Announcement           // with the highest sequence that was seen
	counts       bool      // its sequence has advanced
	since        time.Time // when it last did
	seen         time.Time // when its row was last read
}

// Run looks at the table each second until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = wait.For(ctx, w.look(ctx))
	}
}

// look reads the table once, and returns how long to wait until the next time.
func (w *Watcher) look(ctx context.Context) time.Duration {
	rows, all, err := read(ctx, w.Store, w.Table)
	var keys []proof.Key
	if err == nil {
		keys, err = w.Keys()
	}
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		if kind := kindOf(err); kind != w.failure {
			w.failure = kind
			w.Log.Warn("pushdown servers are not looked for (DOWNPOUR_PUSHDOWN=auto); those that are known are used, "+
				"all else is executed in process", "known", len(w.now), "table", w.Table, "err", err)
		}
		// The first server makes the table, and is to be found soon.
		if errors.Is(err, store.ErrDenied) {
			return slowAfter
		}
		return every
	}
	if w.failure != noFailure {
		w.failure = noFailure
		w.Log.Info("pushdown servers are looked for again", "table", w.Table)
	}
	if !all {
		w.ignore("too many", "table", w.Table, "rows", maxRows, "bytes", maxBytes)
	}
	w.observe(time.Now(), rows, keys)
	return every
}

// observe takes in what the table has now.
func (w *Watcher) observe(now time.Time, rows []store.Row, keys []proof.Key) {
	if w.servers == nil {
		w.servers = map[string]*server{}
	}
	// Nobody is gone because nobody looked.
	since := now
	if outage := now.Sub(w.read) > 2*every+within; outage {
		since = now.Add(afterOutage)
		for _, s := range w.servers {
			s.since = since
		}
	}
	w.read = now

	for _, r := range rows {
		a, err := parse(r.Key, cellOf(r), keys, w.Certified && len(keys) == 0)
		switch {
		case err != nil:
			w.ignore(err.Error(), "row", string(r.Key))
			continue
		case a.Table != w.Data:
			w.ignore("it is of another table", "address", a.Address, "got", a.Table, "want", w.Data)
			continue
		}
		s := w.servers[string(r.Key)]
		switch {
		case s == nil && len(w.servers) >= maxServers: // unsigned ones may be of any number of addresses
			w.ignore("there are too many", "address", a.Address)
			continue
		case s == nil:
			s = &server{Announcement: a}
			w.servers[string(r.Key)] = s
		case a.Sequence > s.Sequence: //fault:replayed-announcement-counts TestWatcher_replayed
			s.Announcement, s.counts, s.since = a, true, since
		}
		s.seen = now
	}

	for key, s := range w.servers {
		if s.counts && (s.seen != now || now.Sub(s.since) >= goneAfter) {
			s.counts = false
		}
		if now.Sub(s.seen) >= forgetAfter {
			delete(w.servers, key)
		}
	}
	w.report()
}

// report calls Changed if the servers that count are others than before.
func (w *Watcher) report() {
	var addresses []string
	fresh := map[string]bool{} // addresses whose process is alive; one that was killed a moment ago counts, too
	for _, key := range slices.Sorted(maps.Keys(w.servers)) {
		s := w.servers[key]
		switch {
		case !s.counts:
			continue
		case slices.Contains(addresses, s.Address):
			if s.since == w.read && fresh[s.Address] {
				w.ignore("two servers announce one address, which counts as one", "address", s.Address)
			}
			fresh[s.Address] = fresh[s.Address] || s.since == w.read
			continue
		case !slices.Contains(w.now, s.Address):
			w.Log.Info("a pushdown server has joined", "address", s.Address, "beside", s.Beside, "version", s.Version)
		}
		addresses = append(addresses, s.Address)
		fresh[s.Address] = s.since == w.read
	}
	for _, address := range w.now {
		if !slices.Contains(addresses, address) {
			w.Log.Info("a pushdown server has left", "address", address)
		}
	}
	if !slices.Equal(addresses, w.now) {
		w.now = addresses
		w.Changed(addresses)
	}
}

// ignore logs that rows of a kind are ignored, now and then.
func (w *Watcher) ignore(why string, about ...any) {
	if w.logged == nil {
		w.logged = map[string]time.Time{}
	}
	now := time.Now()
	if last, ok := w.logged[why]; ok && now.Sub(last) < logEvery {
		return
	}
	w.logged[why] = now
	w.Log.Warn("announcements of pushdown servers are ignored", append([]any{"why", why}, about...)...)
}

// read reads the rows of announcements, all of them unless they are too many.
func read(ctx context.Context, from store.Reader, table string) (rows []store.Row, all bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	scan, err := from.Scan(ctx, store.Scan{
		Table: table, Family: lease.Family, Start: []byte(firstRow), Stop: []byte(afterRows),
		MaxRows: maxRows + 1, BlockBytes: maxBytes / 16,
	})
	if err != nil {
		return nil, false, err
	}
	defer scan.Close()
	for bytes := 0; ; {
		block, err := scan.Next()
		if err == io.EOF {
			return rows, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, r := range block {
			bytes += len(cellOf(r))
			if len(rows) == maxRows || bytes > maxBytes {
				return rows, false, nil
			}
			rows = append(rows, clone(r))
		}
	}
}

// clone returns a copy of a row that is valid for ever.
func clone(r store.Row) store.Row {
	out := store.Row{Key: bytes.Clone(r.Key)}
	for _, c := range r.Cells {
		out.Cells = append(out.Cells, c.Clone())
	}
	return out
}

// cellOf returns the value of a row's cell, nil if it has none.
func cellOf(r store.Row) []byte {
	for _, c := range r.Cells {
		if string(c.Qualifier) == column {
			return c.Value
		}
	}
	return nil
}
