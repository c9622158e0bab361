package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/pushdown/process/network/networktest"
)

// clients put by HTTP and telnet, and query, each request at a drawn gateway, as behind a balancer.
type clients struct {
	w         *World
	host      *networktest.Host
	http      *http.Client
	following []*follower
	followers sync.WaitGroup

	// Names that a gateway has had UIDs for, and the other way round.
	uids, named map[string]string
}

// patience is how long a client waits for an answer.
const patience = 5 * time.Minute

func newClients(w *World) *clients {
	host := networktest.NewHost(&w.network)
	return &clients{
		w:     w,
		host:  host,
		http:  &http.Client{Transport: &http.Transport{DialContext: host.DialContext, MaxIdleConnsPerHost: 4}},
		uids:  map[string]string{},
		named: map[string]string{},
	}
}

func (c *clients) close() {
	for _, f := range c.following {
		f.end()
	}
	c.followers.Wait()
	c.http.CloseIdleConnections()
}

// answer is a status, 0 without an answer, and a body.
type answer struct {
	status int
	body   []byte
	err    error
}

func (a answer) ok() bool { return a.err == nil && a.status/100 == 2 }

func (a answer) String() string { return fmt.Sprintf("status %d, %v, %.300s", a.status, a.err, a.body) }

// ask sends a request to a gateway, with headers by name and value.
func (c *clients) ask(gateway int, method, path, body string, headers ...string) answer {
	c.w.counted(func(*Counts) { c.w.busy[time.Now().Unix()/60] = true })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+gatewayAddress(gateway)+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if c.w.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.w.token)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(resp.Body))
	return answer{resp.StatusCode, text, err}
}

// recovers is how long a gateway may take, after the last fault, until it is ready.
const recovers = 5 * time.Minute

// await waits until all gateways answer.
func (c *clients) await() {
	for i := range c.w.gateways {
		for left := int(recovers / time.Second); ; pass(time.Second) {
			a := c.ask(i, "GET", "/readyz", "")
			if a.ok() {
				break
			}
			if left--; left < 0 {
				c.w.t.Fatalf("seed %d: gateway %d is not ready %v after the last fault: %v", c.w.seed, i, recovers, a)
			}
		}
	}
}

// writers are how many clients put.
const writers = 4

// ofNewHost moves a point to a host for which all writers, at all gateways, want a UID at the same
// time. Each writer has its own seconds of it.
func (w *World) ofNewHost(p point, writer int) point {
	const all = writers + 1 // and the TSD
	p.host = fmt.Sprint("n", int(time.Since(w.began)/w.slower(20*time.Second)))
	p.at += int64(writer) - p.at%all
	return p
}

// work starts writers and readers.
func (c *clients) work() {
	for i := range writers {
		c.w.all.Go(func() { c.write(i) })
	}
	for i := range c.w.tempo.followers {
		c.follow(subQuery{Aggregator: "none", Metric: fmt.Sprint("m", i%2)}, false)
	}
	if _, embedded := c.w.ground.(*disk); embedded {
		c.w.all.Go(c.assignNames)
		if c.w.tempo == hours { // rows of a few points are not sealed
			c.w.all.Go(c.writeDense)
		}
	}
	for i := range 2 {
		c.w.all.Go(func() { c.read(i) })
		c.w.all.Go(func() { c.askRecorded(i) })
	}
}

// write puts points of a host as time goes by, until the world stops.
func (c *clients) write(writer int) {
	r := c.w.rand(fmt.Sprint("writer ", writer))
	for c.w.pause(r, 2*time.Second) {
		c.writeSome(r, writer)
	}
}

// writeSome puts some points of a writer's host, some of them late, some again, and perhaps deletes an hour before. It
// returns false if the points are refused for good.
func (c *clients) writeSome(r *rand.Rand, writer int) (done bool) {
	host := fmt.Sprint("h", writer)
	if c.w.deletes && r.IntN(15) == 0 {
		c.delete(r.IntN(len(c.w.gateways)), point{
			fmt.Sprint("m", r.IntN(2)), host, time.Now().Unix()/3600*3600 - int64(r.IntN(3))*3600,
		})
	}
	put := map[point]int64{}
	now := time.Now().Unix()
	for range 1 + r.IntN(5) {
		p := point{fmt.Sprint("m", r.IntN(2)), host, now - int64(r.IntN(3))}
		if r.IntN(3) == 0 {
			p.at -= int64(r.IntN(3 * 3600))
		}
		if r.IntN(4) == 0 {
			p = c.w.ofNewHost(p, writer)
		}
		if !c.w.recorded.lenient && c.w.model.known(p) {
			continue // two values of one time would be an error of the row
		}
		if value, ok := c.w.model.begin(p); ok && put[p] == 0 {
			put[p] = value
		}
	}
	// As collectors do, it puts what was refused again, somewhere else, and gives up after some time.
	for range 1 + r.IntN(4) {
		send := c.putJSON
		if r.IntN(3) == 0 {
			send = c.putLines
		}
		if len(put) == 0 || c.put(r.IntN(len(c.w.gateways)), put, send) {
			return true
		}
		if !c.w.pause(r, 30*time.Second) {
			break
		}
	}
	return false
}

// before is how long before the world began all points are, in seconds: those that come late are up to five hours old.
const before = 6 * 3600

// denseEvery is the distance of the points of the dense series, in seconds.
const denseEvery = 30

// writeDense puts a series of a point each half minute, those of some minutes at a time, until the world stops. Some
// come hours late, into rows that may be sealed, and some hours are deleted.
func (c *clients) writeDense() {
	r := c.w.rand("dense writer")
	next := time.Now().Unix() / denseEvery * denseEvery
	for c.w.pause(r, 4*time.Second) {
		now := time.Now().Unix()
		if c.w.deletes && r.IntN(20) == 0 {
			c.delete(0, point{"m0", "dense", now/3600*3600 - int64(r.IntN(4))*3600})
		}
		put := map[point]int64{}
		add := func(at int64) {
			p := point{"m0", "dense", at}
			if !c.w.recorded.lenient && c.w.model.known(p) {
				return
			}
			if value, ok := c.w.model.begin(p); ok {
				put[p] = value
			}
		}
		for ; next < now; next += denseEvery {
			if r.IntN(20) > 0 {
				add(next)
			}
		}
		if r.IntN(3) == 0 {
			late := now/denseEvery*denseEvery - int64(r.IntN(5*3600))
			for i := range int64(r.IntN(10)) {
				if at := late + i*denseEvery; at < now && put[point{"m0", "dense", at}] == 0 {
					add(at)
				}
			}
		}
		if len(put) > 0 {
			c.put(0, put, c.putJSON)
		}
	}
}

// putJSON puts points by HTTP.
func (c *clients) putJSON(gateway int, values map[point]int64) answer {
	var list []map[string]any
	for p, value := range values {
		list = append(list, map[string]any{
			"metric":    p.metric,
			"timestamp": p.at,
			"value":     value,
			"tags":      map[string]string{"host": p.host},
		})
	}
	body, _ := json.Marshal(list)
	return c.ask(gateway, "POST", "/api/put?sync", string(body))
}

// put puts points with one request. It returns false if they may be put again.
func (c *clients) put(
	gateway int, values map[point]int64, send func(gateway int, values map[point]int64) answer,
) (done bool) {
	a := send(gateway, values)
	c.w.counted(func(n *Counts) {
		n.Puts++
		if !a.ok() {
			n.PutsRefused++
			return
		}
		n.Points += len(values)
	})
	if a.ok() {
		c.w.model.acknowledge(values)
		return true
	}
	c.w.model.refuse(values)
	if a.err == nil && !temporary(a.status) {
		c.wrong(gateway, "a put of %d points: %v, want that it is stored or may be retried", len(values), a)
	}
	c.w.note("gateway %d: a put of %d points: %v", gateway, len(values), a)
	return false
}

// delete deletes an hour of a series. As in OpenTSDB, a query that ends in the last second of an
// hour reads the row of the next one, too, and would delete that.
func (c *clients) delete(gateway int, hour point) {
	deleted := c.w.model.beginDeletion(hour)
	if len(deleted) == 0 {
		return
	}
	a := c.ask(gateway, "DELETE",
		fmt.Sprintf("/api/query?start=%d&end=%d&m=none:%s{host=%s}", hour.at, hour.at+3598, hour.metric, hour.host), "")
	c.w.note("gateway %d: deletion of %d points of the hour of %v: %v", gateway, len(deleted), hour, a)
	if a.ok() {
		c.w.model.acknowledge(deleted)
		c.w.counted(func(n *Counts) { n.Deleted += len(deleted) })
		return
	}
	c.w.model.refuseDeletion(hour)
	if a.err == nil && !temporary(a.status) {
		c.wrong(gateway, "a deletion: %v, want that it is done or may be retried", a)
	}
}

// read queries until the world stops.
func (c *clients) read(reader int) {
	r := c.w.rand(fmt.Sprint("reader ", reader))
	for c.w.pause(r, 10*time.Second) {
		q := allQueries[r.IntN(len(allQueries))]
		gateway := r.IntN(len(c.w.gateways))
		metric := fmt.Sprint("m", r.IntN(2))
		if err := q.check(c, gateway, metric); err != nil {
			c.w.counted(func(n *Counts) { n.QueriesRefused++ })
			c.w.note("gateway %d: %s of %s: %v", gateway, q.name, metric, err)
		} else {
			c.w.checked(q.name)
		}
		c.w.counted(func(n *Counts) { n.Queries++ })
	}
}
