package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
)

// LiveConfig says what Live measures.
type LiveConfig struct {
	Server *peer.Server
	// Sockets subscribe to the same chart, each on a connection of its own.
	Sockets int
	// Puts of one point each, Every so often.
	Puts     int
	Every    time.Duration
	Progress *progress.Progress
}

// Validate names the first field that is wrong.
func (c LiveConfig) Validate() error {
	switch {
	case c.Sockets < 1:
		return fmt.Errorf("sockets: got %d, want at least 1", c.Sockets)
	case c.Puts < 1:
		return fmt.Errorf("puts: got %d, want at least 1", c.Puts)
	case c.Every < time.Millisecond:
		return fmt.Errorf("every: got %s, want at least 1ms", c.Every)
	}
	return nil
}

const liveMetric = "bench.live"

// liveRun is what the writer and the sockets share: put i has the value i, so a
// frame tells which puts it shows.
type liveRun struct {
	cfg LiveConfig

	mu   sync.Mutex
	sent []time.Time // when put i began
	done []time.Time // when it was acknowledged
}

// Live puts points and measures, at every socket, the time from the beginning of
// a put to the arrival of the first frame that shows it. Every socket must see
// the last point, or it is an error.
func Live(ctx context.Context, cfg LiveConfig) (report.Latency, error) {
	if err := cfg.Validate(); err != nil {
		return report.Latency{}, err
	}
	run := &liveRun{cfg: cfg}
	if err := run.put(ctx); err != nil { // the metric must exist before anybody asks for it
		return report.Latency{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cfg.Puts)*cfg.Every+2*time.Minute)
	defer cancel()
	sockets := make([]*liveSocket, cfg.Sockets)
	defer func() {
		for _, s := range sockets {
			if s != nil {
				s.conn.Close()
			}
		}
	}()
	for i := range sockets {
		var err error
		if sockets[i], err = run.subscribe(ctx); err != nil {
			return report.Latency{}, fmt.Errorf("socket %d: %w", i, err)
		}
	}
	return run.measure(ctx, sockets)
}

func (run *liveRun) measure(ctx context.Context, sockets []*liveSocket) (report.Latency, error) {
	errs := make([]error, len(sockets)+1)
	var all sync.WaitGroup
	for i, s := range sockets {
		all.Go(func() { errs[i] = s.watch(ctx) })
	}
	all.Go(func() {
		for i := range run.cfg.Puts {
			if errs[len(sockets)] = run.put(ctx); errs[len(sockets)] != nil {
				return
			}
			run.cfg.Progress.Add(1)
			if i+1 < run.cfg.Puts && !until(ctx, run.began().Add(run.cfg.Every)) {
				errs[len(sockets)] = ctx.Err()
				return
			}
		}
	})
	all.Wait()
	response, acknowledged := report.NewHistogram(), report.NewHistogram()
	for _, s := range sockets {
		response.Merge(s.response)
		acknowledged.Merge(s.acknowledged)
	}
	name := fmt.Sprintf("put to frame, sockets: %d", len(sockets))
	return report.NewLatency(name, fmt.Sprintf("one put every %s", run.cfg.Every), response, acknowledged, 0), errors.Join(errs...)
}

// put puts the next point.
func (run *liveRun) put(ctx context.Context) error {
	run.mu.Lock()
	i := len(run.sent)
	run.sent = append(run.sent, time.Now())
	run.mu.Unlock()
	body := fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":%d,"tags":{"writer":"bench"}}`, liveMetric, time.Now().UnixMilli(), i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, run.cfg.Server.PutURL+"/api/put", strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := putClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("put: status %d", resp.StatusCode)
	}
	run.mu.Lock()
	run.done = append(run.done, time.Now())
	run.mu.Unlock()
	return nil
}

// began is when the last put did.
func (run *liveRun) began() time.Time {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.sent[len(run.sent)-1]
}

// times are when put i began and ended; a frame may come before its end.
func (run *liveRun) times(i int, now time.Time) (began, ended time.Time) {
	run.mu.Lock()
	defer run.mu.Unlock()
	ended = now
	if i < len(run.done) {
		ended = run.done[i]
	}
	return run.sent[i], ended
}

// liveSocket is one subscription.
type liveSocket struct {
	run                    *liveRun
	conn                   *websocket.Conn
	seen                   int // the last put that it has shown
	response, acknowledged *report.Histogram
}

// liveMessage is what of the server's messages tells values.
type liveMessage struct {
	Type    string
	Results []struct{ DPS [][2]json.RawMessage }
	Upserts []struct{ DPS [][2]json.RawMessage }
	Error   *struct{ Message string }
}

func (run *liveRun) subscribe(ctx context.Context) (*liveSocket, error) {
	address := strings.Replace(run.cfg.Server.URL, "http", "ws", 1) + "/api/ws"
	config, err := websocket.NewConfig(address, run.cfg.Server.URL)
	if err != nil {
		return nil, err
	}
	config.Protocol = []string{"downpour.v1"}
	conn, err := config.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	s := &liveSocket{run: run, conn: conn, response: report.NewHistogram(), acknowledged: report.NewHistogram()}
	subscribe := fmt.Sprintf(`{"type":"subscribe","id":"a","query":{"start":"1h-ago","msResolution":true,"queries":[{"metric":%q,"aggregator":"sum"}]}}`, liveMetric)
	if err := websocket.Message.Send(conn, subscribe); err != nil {
		conn.Close()
		return nil, err
	}
	for { // the first message about the subscription is its snapshot
		m, err := s.receive(ctx)
		if err != nil {
			conn.Close()
			return nil, err
		}
		if m.Type == "snapshot" {
			return s, nil
		}
	}
}

// patience is how long a socket waits for a message.
const livePatience = 30 * time.Second

func (s *liveSocket) receive(ctx context.Context) (m liveMessage, err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Now()) })
	defer stop()
	if err := s.conn.SetReadDeadline(time.Now().Add(livePatience)); err != nil {
		return m, err
	}
	var text []byte
	if err := websocket.Message.Receive(s.conn, &text); err != nil {
		return m, errors.Join(ctx.Err(), err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Error != nil {
		return m, errors.New(m.Error.Message)
	}
	return m, nil
}

// watch takes frames until the last put is shown.
func (s *liveSocket) watch(ctx context.Context) error {
	for s.seen < s.run.cfg.Puts {
		m, err := s.receive(ctx)
		if err != nil {
			return fmt.Errorf("put %d of %d is not shown: %w", s.seen+1, s.run.cfg.Puts, err)
		}
		now := time.Now()
		for _, u := range append(m.Results, m.Upserts...) {
			for _, p := range u.DPS {
				if v, err := strconv.ParseFloat(string(p[1]), 64); err == nil {
					s.shown(int(v), now)
				}
			}
		}
	}
	return nil
}

// shown counts all puts up to i that were not shown before: one frame may show
// several.
func (s *liveSocket) shown(i int, now time.Time) {
	for s.seen < i {
		s.seen++
		began, ended := s.run.times(s.seen, now)
		s.response.Record(now.Sub(began))
		s.acknowledged.Record(now.Sub(ended))
	}
}
