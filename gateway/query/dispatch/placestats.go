package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// States of a pushdown server.
const (
	StateHealthy   = "healthy"
	StateAway      = "away"      // it has failed, and gets nothing for a while
	StateUnchecked = "unchecked" // not checked lately: it is checked before the next query
)

// PlaceStats is an operator's view of one place where parts are executed. Counts are
// those of the last hour.
type PlaceStats struct {
	Address string // of a pushdown server, or InProcess
	Beside  string // its region server, "" if it has named none, and for this process
	State   string // "" for this process
	Regions int    // of the requested table that are read there

	Parts   int64 // accepted
	Failed  int64 // attempts
	Bytes   int64 // read from the store, by accepted parts
	Mean    time.Duration
	Longest time.Duration // of accepted parts

	LastError string // of an attempt or a health check, "" for none since the start
	LastFail  time.Time
}

// PlaceRun is a run of neighbouring regions that are read at the same place.
type PlaceRun struct {
	Place   int // index of the places, -1 if it is not known which
	Regions int
}

// maxRuns bounds the runs of one table.
const maxRuns = 1000

// Places returns the state of all places, the pushdown servers in their order and this process last, and where the
// regions of a table are read, in the order of their keys. There are none if no query has listed them since the start.
// It makes no calls.
func (e *Executor) Places(table string) (places []PlaceStats, runs []PlaceRun) {
	index := map[*place]int{}
	now, all := time.Now(), append(slices.Clone(e.servers.list()), e.here)
	for _, at := range all {
		p := at.tally.stats(now)
		p.Address = at.name()
		if at.remote() {
			e.servers.addState(at, now, &p)
		}
		index[at] = len(places)
		places = append(places, p)
	}

	servers := e.servers.placement(table)
	for i, r := range e.regions.last(table) {
		at := len(places) - 1
		// A server that has joined since is shown the next time.
		if known, ok := index[servers.closest(r.Server, i)]; ok {
			at = known
		}
		places[at].Regions++
		if n := len(runs); n > 0 && runs[n-1].Place == at || n == maxRuns {
			runs[n-1].Regions++
			continue
		}
		runs = append(runs, PlaceRun{Place: at, Regions: 1})
	}
	return places, runs
}

// addState adds a server's region server, its state, and the error of its last health
// check that failed, if no attempt has failed since.
func (r *registry) addState(at *place, now time.Time, p *PlaceStats) {
	r.mu.Lock()
	defer r.mu.Unlock()

	e := &at.health
	p.Beside = e.regionServer
	if e.lastFail.After(p.LastFail) {
		p.LastError, p.LastFail = e.lastError, e.lastFail
	}

	switch {
	case e.backoff > 0:
		p.State = StateAway
	case e.checked.IsZero() || now.Sub(e.checked) >= healthTTL:
		p.State = StateUnchecked
	default:
		p.State = StateHealthy
	}
}

// last returns the regions of a table as they were listed last.
func (l *regionLists) last(table string) []store.Region {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tables[table].regions
}

// tally counts the attempts at one place within the last hour, by minutes.
type tally struct {
	mu        sync.Mutex
	ring      [60]tallied
	lastError string
	lastFail  time.Time
}

// tallied are the attempts that ended within a minute.
type tallied struct {
	minute               int64 // since 1970
	parts, failed, bytes int64
	took, longest        time.Duration // of accepted parts
}

// maxLastError bounds the text of an error that is kept, in bytes.
const maxLastError = 500

// textOf returns the text of an error that is kept.
func textOf(err error) string {
	text := err.Error()
	return text[:min(len(text), maxLastError)]
}

// count takes in an attempt that has ended. One that ended because the query did, or because a
// cached answer could not be proven, has not failed.
func (t *tally) count(ctx context.Context, now time.Time, took time.Duration, bytes int64, err error) {
	if err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, resultcache.ErrUnproven)) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	minute := now.Unix() / 60
	m := &t.ring[minute%60]
	if m.minute < minute {
		*m = tallied{minute: minute}
	}
	if err != nil {
		m.failed++
		t.lastError, t.lastFail = textOf(err), now
		return
	}
	m.parts++
	m.bytes += bytes
	m.took += took
	m.longest = max(m.longest, took)
}

// stats sums up the last hour.
func (t *tally) stats(now time.Time) PlaceStats {
	t.mu.Lock()
	defer t.mu.Unlock()

	p := PlaceStats{LastError: t.lastError, LastFail: t.lastFail}
	var took time.Duration
	for _, m := range t.ring {
		if m.minute <= now.Unix()/60-60 {
			continue
		}
		p.Parts += m.parts
		p.Failed += m.failed
		p.Bytes += m.bytes
		p.Longest = max(p.Longest, m.longest)
		took += m.took
	}
	if p.Parts > 0 {
		p.Mean = took / time.Duration(p.Parts)
	}
	return p
}
