//go:build integration

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
)

// kill -9 in the middle of puts, again and again, on one embedded store: every
// point that was acknowledged, over HTTP or telnet, is there after the restart
// with its value, and no value is there that was not sent. Each start seals rows that
// the ones before have put, while others go on.
func TestCrash_acknowledgedPointsSurvive(t *testing.T) {
	t.Parallel()
	for _, seal := range []string{"off", "2000"} {
		t.Run("seal "+seal, func(t *testing.T) {
			t.Parallel()
			crashCycles(t, seal)
		})
	}
}

func crashCycles(t *testing.T, seal string) {
	cycles := 10
	if *soak {
		cycles = 100
	}
	ctx := within(t, time.Duration(cycles)*30*time.Second)
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	ours := embedded(t, map[string]string{"DOWNPOUR_SEAL": seal})
	sealed := 0.0
	writers := []*crashWriter{
		{series: "http0", send: sendHTTP}, {series: "http1", send: sendHTTP},
		{series: "telnet0", send: sendTelnet}, {series: "telnet1", send: sendTelnet},
	}
	for cycle := range cycles {
		killAfter := r.IntN(60) // acknowledged batches, over all writers
		writeUntilKilled(ctx, t, ours, writers, killAfter)
		if err := ours.Restart(ctx); err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		for _, w := range writers {
			w.check(ctx, t, ours.URL)
		}
		sealed += sealedRows(ctx, t, ours.URL)
		if t.Failed() {
			t.Fatalf("cycle %d of seed %d, killed after %d batches", cycle, seed, killAfter)
		}
	}
	total := 0
	for _, w := range writers {
		total += w.acknowledged
	}
	t.Logf("%d points acknowledged in %d cycles, %v rows sealed", total, cycles, sealed)
	if sealed > 0 != (seal != "off") {
		t.Errorf("%v rows sealed", sealed)
	}
}

// sealedRows is how many rows a gateway has sealed since its start.
func sealedRows(ctx context.Context, t *testing.T, url string) (n float64) {
	a, err := e2e.Get(ctx, url+"/metrics")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(a.Body)) {
		if number, ok := strings.CutPrefix(line, "downpour_seal_rows_total "); ok {
			n, _ = strconv.ParseFloat(strings.TrimSpace(number), 64)
		}
	}
	return n
}

// crashWriter puts points into a series of its own: point i is at second i of
// the data and has the value i, so that what must be there needs no list.
type crashWriter struct {
	series       string
	send         func(ctx context.Context, p *e2e.Program, points []e2e.Point) error
	acknowledged int // points 0 to acknowledged-1 are promised
	sent         int // points up to sent-1 may be there
}

const crashBatch = 25

func (w *crashWriter) next() []e2e.Point {
	points := make([]e2e.Point, crashBatch)
	for i := range points {
		n := w.acknowledged + i // what was sent but not acknowledged is sent again
		points[i] = e2e.Point{
			Metric: "crash.test", Timestamp: dataStart + int64(n), Value: json.RawMessage(strconv.Itoa(n)),
			Tags: map[string]string{"writer": w.series},
		}
	}
	w.sent = max(w.sent, w.acknowledged+crashBatch)
	return points
}

// writeUntilKilled lets all writers put until killAfter batches are
// acknowledged, then kills the server under them.
func writeUntilKilled(ctx context.Context, t *testing.T, p *e2e.Program, writers []*crashWriter, killAfter int) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	acks := make(chan struct{})
	failed := make(chan error, len(writers))
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() {
			for {
				if err := w.send(ctx, p, w.next()); err != nil {
					failed <- err
					return
				}
				w.acknowledged += crashBatch
				select {
				case acks <- struct{}{}:
				case <-p.Process.Done():
				}
			}
		})
	}
	for n := 0; n < killAfter; n++ {
		select {
		case <-acks:
		case err := <-failed:
			t.Errorf("put before the kill: %v\n%s", err, p.Process.LogTail(20))
			n = killAfter
		}
	}
	p.Process.Kill()
	cancel()
	all.Wait()
}

// check asks for the series and holds it against what was sent.
func (w *crashWriter) check(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	if w.acknowledged == 0 {
		return // the metric itself may not be known yet
	}
	a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=none:crash.test%%7Bwriter=%s%%7D",
		url, dataStart, dataStart+w.sent, w.series))
	if err != nil {
		t.Error(err)
		return
	}
	var results []struct{ Dps [][2]int64 }
	if err := json.Unmarshal(a.Body, &results); err != nil || len(results) != 1 {
		t.Errorf("%s: %d results, want 1: %v: status %d, %.300s", w.series, len(results), err, a.Status, a.Body)
		return
	}
	for i, p := range results[0].Dps {
		if p[0] != dataStart+int64(i) || p[1] != int64(i) {
			t.Errorf("%s: point %d of %d acknowledged is %v, want [%d,%d]",
				w.series, i, w.acknowledged, p, dataStart+i, i)
			return
		}
	}
	if n := len(results[0].Dps); n < w.acknowledged || n > w.sent {
		t.Errorf("%s: %d points, want %d acknowledged to %d sent", w.series, n, w.acknowledged, w.sent)
	}
}

func sendHTTP(ctx context.Context, p *e2e.Program, points []e2e.Point) error {
	a, err := e2e.Post(ctx, p.URL+"/api/put", points)
	if err == nil && a.Status != 204 {
		err = fmt.Errorf("put: status %d: %s", a.Status, a.Body)
	}
	return err
}

// sendTelnet takes the answer to version as the acknowledgement.
func sendTelnet(ctx context.Context, p *e2e.Program, points []e2e.Point) error {
	c, err := dialTelnet(ctx, p.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	for _, point := range points {
		fmt.Fprintf(c.out, "put %s %d %s", point.Metric, point.Timestamp, point.Value)
		for key, value := range point.Tags {
			fmt.Fprintf(c.out, " %s=%s", key, value)
		}
		fmt.Fprintln(c.out)
	}
	answer, err := c.version()
	if err == nil && len(answer) > 0 {
		err = fmt.Errorf("telnet put: %q", answer)
	}
	return err
}

// telnet is a connection that speaks OpenTSDB's line protocol.
type telnet struct {
	net.Conn
	in  *bufio.Reader
	out *bufio.Writer
}

func dialTelnet(ctx context.Context, addr string) (*telnet, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &telnet{Conn: conn, in: bufio.NewReader(conn), out: bufio.NewWriter(conn)}, nil
}

// version sends the command and returns the lines that come before its answer: errors of earlier
// lines. The answer is the first line that is no "put:" error. Its second line, which begins with
// "Built", is left unread.
func (c *telnet) version() (earlier []string, err error) {
	if _, err := c.out.WriteString("version\n"); err != nil {
		return nil, err
	}
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return earlier, err
		}
		if strings.HasPrefix(line, "downpour ") {
			return earlier, nil
		}
		if !strings.HasPrefix(line, "put:") {
			return earlier, fmt.Errorf("an answer to version of %q", line)
		}
		earlier = append(earlier, line)
	}
}

// halfClose closes the client's side and returns all that the server still sends before it closes
// its own.
func (c *telnet) halfClose() (string, error) {
	if err := c.out.Flush(); err != nil {
		return "", err
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	rest, err := io.ReadAll(c.in)
	return string(rest), err
}
