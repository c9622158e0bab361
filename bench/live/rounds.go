package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"downpour/bench/peer"
)

// rounds are what the writer and the sockets share. Round i puts a point with
// the value first + i for each plan, so a frame says which rounds it shows, and
// no point of an earlier run is taken for one.
type rounds struct {
	server  *peer.Server
	plans   int
	readers int // sockets that are to show each round
	first   int64
	lastMS  int64 // time of the last round's points

	mu         sync.Mutex
	due        []time.Time // when a put was to begin
	sent       []time.Time // when it did
	shown      []int       // by how many readers
	shownByAll chan int    // rounds that all readers have shown
}

func newRounds(c FramesConfig, readers int) *rounds {
	return &rounds{
		server:     c.Server,
		plans:      c.Plans,
		readers:    readers,
		first:      time.Now().UnixMicro(),
		shownByAll: make(chan int, c.Puts+1),
	}
}

func planMetric(plan int) string { return fmt.Sprintf("bench.live.%d", plan) }

// planQuery returns the live query of a plan: the sum of its metric over the last
// hour.
func planQuery(plan int) string {
	return fmt.Sprintf(`{"start":"1h-ago","msResolution":true,"queries":[{"metric":%q,"aggregator":"sum"}]}`,
		planMetric(plan))
}

// put puts the next round, one point for each plan. due is when it was to begin.
func (r *rounds) put(ctx context.Context, due time.Time) error {
	now := time.Now()
	r.mu.Lock()
	value := r.first + int64(len(r.sent))
	r.due, r.sent, r.shown = append(r.due, due), append(r.sent, now), append(r.shown, 0)
	r.mu.Unlock()

	// Rounds have distinct times, so that none replaces the point of another.
	r.lastMS = max(now.UnixMilli(), r.lastMS+1)

	var body bytes.Buffer
	for plan := range r.plans {
		// A bracket opens the list, and a comma stands before each later point.
		fmt.Fprintf(&body, `%c{"metric":%q,"timestamp":%d,"value":%d,"tags":{"writer":"bench"}}`,
			"[,"[min(plan, 1)], planMetric(plan), r.lastMS, value)
	}

	body.WriteByte(']')

	return putJSON(ctx, r.server, body.Bytes())
}

// putJSON puts points by HTTP.
func putJSON(ctx context.Context, server *peer.Server, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.PutURL+"/api/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(io.LimitReader(resp.Body, 300))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("put: status %d: %s", resp.StatusCode, text)
	}
	return err
}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// see notes that a reader shows a value now, and with it its round and all earlier ones. It
// calls each for every round that the reader shows for the first time. before is how many
// rounds the reader had shown; see returns how many it has shown by now.
func (r *rounds) see(value int64, before int, now time.Time, each func(due, sent time.Time)) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := value - r.first
	if until < 0 || until >= int64(len(r.sent)) {
		return before // of another run
	}

	// The last reader to show a round lets putRounds put the next one.
	for ; int64(before) <= until; before++ {
		if each(r.due[before], r.sent[before]); r.shown[before]+1 == r.readers {
			r.shownByAll <- before // has room for all rounds, so it never blocks under the lock
		}
		r.shown[before]++
	}
	return before
}
