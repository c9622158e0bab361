package storm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"downpour/integration/hostile"
)

// beside is the client that asks a light query and puts a point again and again.
type beside struct {
	r      *run
	client *http.Client
	puts   int
}

// pace is the time between two rounds of the client beside, aloneRounds how many
// it makes before the storm.
const (
	pace        = 100 * time.Millisecond
	aloneRounds = 50
)

const besideMetric, besideWriter = "hostile.beside", "beside"

// newBeside makes the client and its series.
func newBeside(ctx context.Context, r *run) (*beside, error) {
	b := &beside{r: r, client: &http.Client{Transport: &http.Transport{}}}
	if _, err := b.put(ctx); err != nil {
		return nil, fmt.Errorf("the first put: %w", err)
	}
	_, err := b.ask(ctx)
	return b, err
}

func (b *beside) close() { b.client.CloseIdleConnections() }

// Served are the latencies of a client, in the order of its rounds.
type Served struct{ Query, Put []time.Duration }

// alone measures how the client is served by a gateway with nothing else to do.
func (b *beside) alone(ctx context.Context) (s Served, err error) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for range aloneRounds {
		<-tick.C
		if err := b.round(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// run goes on until ctx ends, and notes as a breach what is not served. Queries and puts each
// keep their own pace, so that a slow query holds no put back.
func (b *beside) run(ctx context.Context) (s Served) {
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, step := range []struct {
		what string
		do   func(context.Context) (time.Duration, error)
		to   *[]time.Duration
	}{{"a light query", b.ask, &s.Query}, {"a put", b.put, &s.Put}} {
		work.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for ctx.Err() == nil {
				// What has begun is finished: broken off, it would look like a breach.
				took, err := step.do(context.WithoutCancel(ctx))
				if err != nil && b.r.Gateway.Process.Err() == nil {
					b.r.breach("%s beside the storm is not served: %v\nbeside\n%s", step.what, err, &b.r.flights)
				}
				mu.Lock()
				*step.to = append(*step.to, took)
				mu.Unlock()
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	work.Wait()
	return s
}

func (b *beside) round(ctx context.Context, s *Served) error {
	asked, err := b.ask(ctx)
	if err != nil {
		return err
	}
	put, err := b.put(ctx)
	s.Query, s.Put = append(s.Query, asked), append(s.Put, put)
	return err
}

func (b *beside) ask(ctx context.Context) (time.Duration, error) {
	url := fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:1m-avg:%s",
		b.r.Gateway.URL, hostile.Era, hostile.Era+3599, hostile.Light)
	return b.request(ctx, http.MethodGet, url, nil)
}

func (b *beside) put(ctx context.Context) (time.Duration, error) {
	p := hostile.Point{
		Metric: besideMetric,
		Writer: besideWriter,
		Time:   hostile.Era + int64(b.puts),
		Value:  int64(b.puts),
	}
	b.puts++
	body := fmt.Appendf(nil, `{"metric":%q,"timestamp":%d,"value":%d,"tags":{"writer":%q}}`,
		p.Metric, p.Time, p.Value, p.Writer)
	took, err := b.request(ctx, http.MethodPost, b.r.Gateway.URL+"/api/put", body)
	if err == nil {
		b.r.acknowledged([]hostile.Point{p})
	}
	return took, err
}

// request is sent once more where the process had too little of the machine to
// answer in time: that is no fault of its own.
func (b *beside) request(ctx context.Context, method, url string, body []byte) (time.Duration, error) {
	for {
		before, _ := b.r.Gateway.Process.CPU()
		began := time.Now()
		status, err := b.once(ctx, method, url, body)
		took := time.Since(began)
		after, _ := b.r.Gateway.Process.CPU()
		if starved := status == http.StatusRequestTimeout && after-before < took/2; !starved {
			return took, err
		}
		b.r.add(func(p *Report) { p.Starved++ })
	}
}

func (b *beside) once(ctx context.Context, method, url string, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, outer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case resp.StatusCode/100 != 2:
		err = fmt.Errorf("status %d: %.300s", resp.StatusCode, text)
	case method == http.MethodGet && !bytes.Contains(text, []byte(hostile.Light)):
		err = errors.New("no point of the metric in the answer: " + string(text[:min(300, len(text))]))
	}
	return resp.StatusCode, err
}
