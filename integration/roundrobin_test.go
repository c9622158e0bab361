//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// Of two gateways on one HBase, behind a round robin, one is killed during puts and queries and
// comes back later. Clients, which send again what failed, go on; each answer is right; and either
// gateway has each acknowledged point.
func TestRoundRobin_oneIsKilled(t *testing.T) {
	t.Parallel()
	ctx := within(t, 90*time.Second)
	tables := createTables(t)
	oneIsKilled(ctx, t, layouts[0].gateway(t, tables, nil), layouts[0].gateway(t, tables, nil))
}

func oneIsKilled(ctx context.Context, t *testing.T, gateways ...*e2e.Program) {
	robin := newRoundRobin(t, gateways[0].URL, gateways[1].URL)
	front := httptest.NewServer(robin)
	defer front.Close()
	put(ctx, t, front.URL, dataset(23))

	l := &load{t: t, url: front.URL, comparer: compare.Comparer{Permits: compare.Standard}}
	l.settle(ctx, gateways[0].URL)
	for i := range 3 {
		l.writers = append(l.writers, &robinWriter{name: fmt.Sprintf("w%d", i)})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for _, w := range l.writers {
		all.Go(func() { l.write(ctx, w) })
	}
	all.Go(func() { l.readSettled(ctx) })
	l.await(ctx, 10, 5)
	all.Go(func() { l.readWritten(ctx) })
	l.await(ctx, 10, 10)
	gateways[0].Process.Kill()
	l.await(ctx, 30, 15)
	if robin.failed.Load() == 0 {
		t.Error("no request met the killed gateway, want at least one")
	}
	if err := gateways[0].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	was := robin.served[0].Load()
	back := func(context.Context) error {
		if robin.served[0].Load() == was {
			return errors.New("the gateway that came back got no request")
		}
		return nil
	}
	if err := e2e.Until(ctx, 20*time.Millisecond, back); err != nil { // it may still be left out for a while
		t.Fatal(err)
	}
	l.await(ctx, 10, 10)
	stop()
	all.Wait()
	for _, g := range gateways {
		l.check(t.Context(), g.URL)
	}
	t.Logf("%d batches and %d queries answered, %d requests failed and were sent again",
		l.batches.Load(), l.queries.Load(), robin.failed.Load())
}

// roundRobin passes requests on to each backend in turn; one that failed is left
// out for a while.
type roundRobin struct {
	proxies []*httputil.ReverseProxy
	down    []atomic.Int64 // until when each is left out, ns since 1970
	served  []atomic.Int64
	busy    []atomic.Int64 // requests that each has now
	next    atomic.Uint64
	failed  atomic.Int64
}

// leftOut is how long a backend that failed gets no request.
const leftOut = 300 * time.Millisecond

func newRoundRobin(t *testing.T, urls ...string) *roundRobin {
	t.Helper()
	r := &roundRobin{
		down:   make([]atomic.Int64, len(urls)),
		served: make([]atomic.Int64, len(urls)),
		busy:   make([]atomic.Int64, len(urls)),
	}
	for i, text := range urls {
		p := httputil.NewSingleHostReverseProxy(must[*url.URL](t)(url.Parse(text)))
		p.ErrorLog = log.New(io.Discard, "", 0)
		p.ErrorHandler = func(w http.ResponseWriter, q *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				r.failed.Add(1)
				r.down[i].Store(time.Now().Add(leftOut).UnixNano())
			}
			w.WriteHeader(http.StatusBadGateway)
		}
		r.proxies = append(r.proxies, p)
	}
	return r
}

// ServeHTTP picks the next backend that is not left out.
func (r *roundRobin) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	first := r.next.Add(1) // once: other requests draw at the same time, and none may meet one backend twice
	for k := range uint64(len(r.proxies)) {
		if r.pass(int((first+k)%uint64(len(r.proxies))), w, q) {
			return
		}
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// pass passes a request on to a backend, unless that is left out.
func (r *roundRobin) pass(i int, w http.ResponseWriter, q *http.Request) bool {
	// Busy first: a caller that leaves the backend out and then sees it idle knows that nothing more comes.
	r.busy[i].Add(1)
	defer r.busy[i].Add(-1)
	if time.Now().UnixNano() < r.down[i].Load() {
		return false
	}
	r.served[i].Add(1)
	r.proxies[i].ServeHTTP(w, q)
	return true
}

// load is the clients: what they ask, what they must be answered, and how much they have done.
type load struct {
	t                *testing.T
	url              string
	comparer         compare.Comparer
	settled          []question
	truth            []compare.Answer
	writers          []*robinWriter
	batches, queries atomic.Int64
	refused          atomic.Int64 // requests that failed and were sent again
	ended            atomic.Bool  // no client sends another request
	outages          bool         // HBase itself may be away: what is refused because of that is sent again
}

// robinWriter puts points into a series of its own, point i at second i with the
// value i, and into new series that all writers name at the same time.
type robinWriter struct {
	name               string
	acknowledged, sent atomic.Int64
}

const robinBatch = 20

// settle learns the answers about data that does not change.
func (l *load) settle(ctx context.Context, url string) {
	for i, q := range questions() {
		if i%9 != 0 {
			continue
		}
		l.settled = append(l.settled, q)
		l.truth = append(l.truth, ask(ctx, l.t, url, q))
	}
}

// try sends a request until it is answered: as clients do, what fails on the way
// or is answered with 5xx is sent again.
func (l *load) try(ctx context.Context, send func() (e2e.Answer, error)) (a e2e.Answer, ok bool) {
	err := e2e.Until(ctx, 20*time.Millisecond, func(context.Context) (err error) {
		away := func() bool { return l.outages && (a.Status == 408 || a.Status == 424) }
		if a, err = send(); err == nil && (a.Status >= 500 || away()) {
			err = fmt.Errorf("status %d: %.300s", a.Status, a.Body)
		}
		if err != nil && ctx.Err() == nil {
			if l.refused.Add(1) <= 5 {
				l.t.Logf("a request is sent again: %v", err)
			}
		}
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		l.t.Error(err)
	}
	return a, err == nil
}

func (l *load) write(ctx context.Context, w *robinWriter) {
	for ctx.Err() == nil && !l.ended.Load() {
		from := w.acknowledged.Load()
		var points []e2e.Point
		for n := from; n < from+robinBatch; n++ {
			points = append(points, robinPoint("robin.points", w.name, n))
		}
		points = append(points, robinPoint("robin.names", fmt.Sprint("n", from/robinBatch), from))
		w.sent.Store(from + robinBatch)
		a, ok := l.try(ctx, func() (e2e.Answer, error) { return e2e.Post(ctx, l.url+"/api/put", points) })
		if !ok {
			return
		}
		if a.Status != http.StatusNoContent {
			l.t.Errorf("put: %d %.300s", a.Status, a.Body)
			return
		}
		w.acknowledged.Add(robinBatch)
		l.batches.Add(1)
	}
}

func robinPoint(metric, series string, n int64) e2e.Point {
	return e2e.Point{
		Metric:    metric,
		Timestamp: dataStart + n,
		Value:     json.RawMessage(strconv.FormatInt(n, 10)),
		Tags:      map[string]string{"series": series},
	}
}

// readSettled asks about what does not change.
func (l *load) readSettled(ctx context.Context) {
	for i := 0; ctx.Err() == nil && !l.ended.Load(); i++ {
		q, want := l.settled[i%len(l.settled)], l.truth[i%len(l.truth)]
		a, ok := l.try(ctx, func() (e2e.Answer, error) {
			if q.path != "" {
				return e2e.Get(ctx, l.url+q.path)
			}
			return e2e.Post(ctx, l.url+"/api/query", q.body)
		})
		if !ok {
			return
		}
		r, err := l.comparer.Answers(want, compare.Answer{Status: a.Status, Body: a.Body})
		if err != nil || !r.Equal() {
			l.t.Errorf("%s: %v, %v: %d %.300s", q.name, err, r, a.Status, a.Body)
		}
		l.queries.Add(1)
	}
}

// readWritten asks about what is being written: what was acknowledged before the
// question must be in the answer, and nothing that was not sent.
func (l *load) readWritten(ctx context.Context) {
	for i := 0; ctx.Err() == nil && !l.ended.Load(); i++ {
		w := l.writers[i%len(l.writers)]
		least := w.acknowledged.Load()
		if least == 0 {
			continue // the series' name may not be known yet; another writer's may
		}
		a, ok := l.try(ctx, func() (e2e.Answer, error) { return e2e.Get(ctx, l.url+w.path()) })
		if !ok {
			return
		}
		w.read(l.t, a, least)
		l.queries.Add(1)
	}
}

func (w *robinWriter) path() string {
	return fmt.Sprintf("/api/query?start=%d&end=%d&arrays=true&m=none:robin.points%%7Bseries=%s%%7D",
		dataStart, dataStart+1_000_000, w.name)
}

// read compares an answer about the writer's series with what it has sent.
func (w *robinWriter) read(t *testing.T, a e2e.Answer, least int64) {
	t.Helper()
	var results []struct{ Dps [][2]int64 }
	if err := json.Unmarshal(a.Body, &results); err != nil || a.Status != http.StatusOK || len(results) != 1 {
		t.Errorf("%s: %d results, want 1: %v: status %d, %.300s", w.name, len(results), err, a.Status, a.Body)
		return
	}
	points := results[0].Dps
	wrong := slices.IndexFunc(points, func(p [2]int64) bool { return p[0] != dataStart+p[1] })
	if wrong < 0 {
		for i, p := range points {
			if p[1] != int64(i) {
				wrong = i
				break
			}
		}
	}
	if n := int64(len(points)); wrong >= 0 || n < least || n > w.sent.Load() {
		t.Errorf("%s: %d points, want %d to %d; the first wrong one is %d", w.name, n, least, w.sent.Load(), wrong)
	}
}

// await lets the clients do so many more batches and queries.
func (l *load) await(ctx context.Context, batches, queries int64) {
	l.t.Helper()
	batches, queries = batches+l.batches.Load(), queries+l.queries.Load()
	err := e2e.Until(ctx, 5*time.Millisecond, func(context.Context) error {
		if b, q := l.batches.Load(), l.queries.Load(); b < batches || q < queries {
			return fmt.Errorf("%d batches of %d, %d queries of %d", b, batches, q, queries)
		}
		return nil
	})
	if err != nil {
		l.t.Fatalf("the clients do not go on: %v", err)
	}
}

// check asks one gateway for everything in the end.
func (l *load) check(ctx context.Context, url string) {
	most := int64(0)
	for _, w := range l.writers {
		a := must[e2e.Answer](l.t)(e2e.Get(ctx, url+w.path()))
		w.read(l.t, a, w.acknowledged.Load())
		most = max(most, w.acknowledged.Load())
	}
	for i, q := range l.settled {
		if r, err := l.comparer.Answers(l.truth[i], ask(ctx, l.t, url, q)); err != nil || !r.Equal() {
			l.t.Errorf("%s: %s: %v, %v", url, q.name, err, r)
		}
	}
	// A new name that several clients sent at once, through two gateways, is one series.
	a := must[e2e.Answer](l.t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=none:robin.names",
		url, dataStart, dataStart+1_000_000)))
	var names []struct {
		Tags map[string]string
		DPS  map[string]int64
	}
	if err := json.Unmarshal(a.Body, &names); err != nil {
		l.t.Fatalf("%v: %d %.300s", err, a.Status, a.Body)
	}
	seen := map[string]bool{}
	for _, n := range names {
		name := n.Tags["series"]
		if i, err := strconv.ParseInt(name[1:], 10, 64); err != nil || seen[name] || len(n.DPS) != 1 ||
			n.DPS[strconv.FormatInt(dataStart+i*robinBatch, 10)] != i*robinBatch {
			l.t.Errorf("series of the name %s: %v, seen before: %t", name, n.DPS, seen[name])
		}
		seen[name] = true
	}
	if int64(len(seen)) < most/robinBatch {
		l.t.Errorf("%d series of robin.names, want at least %d", len(seen), most/robinBatch)
	}
}

// While a backend is left out each request is answered by the other one, however many come at once.
func TestRoundRobin_leftOut(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	defer backend.Close()
	r := newRoundRobin(t, "http://127.0.0.1:1", backend.URL)
	r.down[0].Store(math.MaxInt64)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3000 {
				w := httptest.NewRecorder()
				if r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusNoContent {
					t.Errorf("status %d, want the other backend's", w.Code)
					return
				}
			}
		})
	}
	all.Wait()
}
