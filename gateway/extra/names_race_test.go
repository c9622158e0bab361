package extra_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/write"
)

var racesFlag = flag.Int("races", 100, "how many races of puts with changes of names are run")

// A name is deleted or renamed, or all names without points are deleted, while points are put by telnet and by HTTP, on
// a store that pauses between the steps. Every acknowledged point is found afterwards once: under the name that
// it was put with or, if it was sent before a rename was answered, under the new one.
//
// -races 2000 runs more races.
func TestNames_races(t *testing.T) {
	seed := seedtest.Of(t)
	for name, open := range map[string]func(*testing.T, uint64) *bench{
		"embedded": hesitantEmbedded, "HBase": hesitantHBase,
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, seed)
			counts := map[string]int{}
			for i := range *racesFlag / 2 {
				newRace(b, seed, i).run(counts)
				if t.Failed() {
					t.Fatalf("race %d of seed %d", i, seed)
				}
			}
			t.Log(counts)
		})
	}
}

func hesitantEmbedded(t *testing.T, seed uint64) *bench {
	cfg := config(0)
	cfg.AllowDelete = true
	st := memoryStore(t, cfg)
	return serve(t, cfg, &hesitantStager{newHesitant(st, seed)})
}

func hesitantHBase(t *testing.T, seed uint64) *bench {
	cfg, st := gatewaytest.FakeHBase(t)
	return serve(t, cfg, newHesitant(st, seed))
}

// race is one change of a name with puts around it.
type race struct {
	*bench
	rnd *rand.Rand
	// names are the metric, tag key and tag value of the points; changed says which of them is
	// deleted, or renamed to renamed. reclaims says that those without points are deleted.
	names    [3]string
	changed  int
	renamed  string // empty: it is deleted
	reclaims bool

	mu       sync.Mutex
	answered bool // the change was answered
	next     int
	acked    map[int]bool // points that were acknowledged, and whether they were sent after the change was answered
	refused  int
}

func newRace(b *bench, seed uint64, i int) *race {
	r := &race{bench: b, rnd: rand.New(rand.NewPCG(seed, uint64(i))), acked: map[int]bool{}}
	r.names = [3]string{fmt.Sprint("metric", i), fmt.Sprint("key", i), fmt.Sprint("value", i)}
	r.changed = r.rnd.IntN(3)
	switch r.rnd.IntN(3) {
	case 0:
		r.renamed = "new-" + r.names[r.changed]
	case 1:
		r.reclaims = true
	}
	return r
}

// raceKinds has what the API and the tools call a metric, a tag key and a tag value.
var raceKinds = [3][2]string{{"metric", "metrics"}, {"tagk", "tagk"}, {"tagv", "tagv"}}

func (r *race) run(counts map[string]int) {
	if r.rnd.IntN(2) == 0 {
		r.put(r.json(1)) // so that the gateway has the series in its cache
	} else {
		r.Post("/api/uid/assign", fmt.Sprintf(`{%q:[%q]}`, raceKinds[r.changed][0], r.names[r.changed]))
	}
	if r.renamed == "" {
		r.clear()
	}
	var work sync.WaitGroup
	for range 3 {
		sends := make([]func(int), 1+r.rnd.IntN(4))
		sizes := make([]int, len(sends))
		for i := range sends {
			sizes[i] = 1
			switch r.rnd.IntN(3) {
			case 0:
				sends[i] = func(n int) { r.put(r.json(n)) }
			case 1:
				if sizes[i] = 5; r.Config.Embedded() {
					sizes[i] = write.UsualRequestBatchFrom // for a batch of its own
				}
				sends[i] = func(n int) { r.put(r.json(n)) }
			case 2:
				sends[i] = r.telnet
			}
		}
		work.Go(func() {
			for i, send := range sends {
				send(sizes[i])
			}
		})
	}
	late := time.Duration(r.rnd.IntN(8)) * time.Millisecond
	if r.reclaims { // it reads all names and rows before it changes anything
		late /= 8
	}
	work.Go(func() {
		<-time.After(late)
		what := r.change()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answered = true
		counts[what]++
	})
	work.Wait()
	r.put(r.json(1))
	r.telnet(1)
	r.check()
	counts["points"] += len(r.acked)
	counts["points refused"] += r.refused
}

// change deletes or renames the name and returns the outcome.
func (r *race) change() string {
	if r.reclaims {
		return r.reclaim()
	}
	kind := raceKinds[r.changed]
	var a answer
	var err error
	if r.renamed == "" {
		a, err = r.Try(r.Context(), http.MethodPost, "/api/tools/delete",
			strings.NewReader(fmt.Sprintf(`{"kind":%q,"name":%q}`, kind[1], r.names[r.changed])))
	} else {
		a, err = r.Try(r.Context(), http.MethodPost, "/api/uid/rename",
			strings.NewReader(fmt.Sprintf(`{%q:%q,"name":%q}`, kind[0], r.names[r.changed], r.renamed)))
	}
	what := "rename"
	if r.renamed == "" {
		what = "delete"
	}
	switch {
	case err != nil:
		r.Errorf("%s: %v", what, err)
	case a.Status == 200:
		return what
	case r.renamed != "" || !strings.Contains(a.Body, "has data"):
		r.Errorf("%s: %d %s", what, a.Status, a.Body)
	}
	return what + " refused"
}

// reclaim deletes the names without points and returns the outcome.
func (r *race) reclaim() string {
	a, err := r.Try(r.Context(), http.MethodPost, "/api/tools/uid",
		strings.NewReader(`{"command":"reclaim","noTSDs":true,"yesDelete":1000}`))
	if err != nil || a.Status != 200 || !strings.Contains(a.Body, "#end ") {
		r.Errorf("reclaim: %v, %d %s", err, a.Status, a.Body)
	}
	if strings.Contains(a.Body, fmt.Sprintf("%s %s: deleted", raceKinds[r.changed][1], r.names[r.changed])) {
		return "reclaim"
	}
	return "reclaim of others"
}

// clear deletes the points put so far: a name that has points cannot be deleted.
func (r *race) clear() {
	if len(r.acked) == 0 {
		return
	}
	a := r.Do(http.MethodDelete,
		"/api/query?start=1356990000&end=1357100000&m="+url.QueryEscape("none:"+r.names[0]), nil)
	if a.Status != 200 {
		r.Errorf("delete: %d %s", a.Status, a.Body)
	}
	clear(r.acked)
}

// raceStart is the time of a race's first point.
const raceStart = 1356998400 // a full hour; a race has less than a day of points

// take returns the number of the first of n points that are about to be sent, and whether the
// change was answered before.
func (r *race) take(n int) (first int, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next += n
	return r.next - n, r.answered
}

// told records whether points were acknowledged.
func (r *race) told(first, n int, late, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.refused += n
		return
	}
	for i := range n {
		r.acked[first+i] = late
	}
}

func (r *race) json(n int) (body string, first, count int, late bool) {
	first, late = r.take(n)
	points := make([]string, n)
	for i := range points {
		points[i] = fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":%d,"tags":{%q:%q}}`,
			r.names[0], raceStart+first+i, first+i, r.names[1], r.names[2])
	}
	return "[" + strings.Join(points, ",") + "]", first, n, late
}

func (r *race) put(body string, first, n int, late bool) {
	a, err := r.Try(r.Context(), http.MethodPost, "/api/put", strings.NewReader(body))
	if err != nil {
		r.Errorf("put: %v", err)
		return
	}
	// 503: the name cannot be used for a while. A refused point may or may not be stored.
	if a.Status != 204 && a.Status != 503 {
		r.Errorf("put: %d %s", a.Status, a.Body)
	}
	r.told(first, n, late, a.Status == 204)
}

func (r *race) telnet(int) {
	first, late := r.take(1)
	c, err := net.Dial("tcp", r.Address())
	if err != nil {
		r.Errorf("put by telnet: %v", err)
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "put %s %d %d %s=%s\n", r.names[0], raceStart+first, first, r.names[1], r.names[2])
	c.(*net.TCPConn).CloseWrite()
	said, err := io.ReadAll(c)
	if err != nil {
		r.Errorf("put by telnet: %v", err)
		return
	}
	if len(said) > 0 && !strings.HasPrefix(string(said), "put: HBase error") {
		r.Errorf("put by telnet: %s", said)
	}
	r.told(first, 1, late, len(said) == 0)
}

// check fails the test for each acknowledged point that is not found once, where it belongs.
func (r *race) check() {
	found := map[int][]string{}
	metrics := []string{r.names[0]}
	if r.changed == 0 && r.renamed != "" {
		metrics = append(metrics, r.renamed)
	}
	for _, m := range metrics {
		a := r.Get("/api/query?start=1356990000&end=1357100000&m=" + url.QueryEscape("none:"+m))
		if strings.Contains(a.Body, "No such name for 'metrics'") {
			continue
		}
		var results []struct {
			Metric string
			Tags   map[string]string
			DPS    map[string]int
		}
		if err := json.Unmarshal([]byte(a.Body), &results); err != nil || a.Status != 200 {
			r.Errorf("query %s: %d %s", m, a.Status, a.Body)
			return
		}
		for _, x := range results {
			for _, i := range x.DPS {
				found[i] = append(found[i], fmt.Sprint(x.Metric, x.Tags))
			}
		}
	}
	asPut := spelledSeries(r.names)
	after := r.names
	if r.renamed != "" {
		after[r.changed] = r.renamed
	}
	for i, late := range r.acked {
		places := strings.Join(found[i], ", ")
		if places == asPut || !late && places == spelledSeries(after) {
			continue
		}
		r.Errorf("point %d of %d, change %s to %q, answered before %t: found at %q, want %s",
			i, len(r.acked), r.names[r.changed], r.renamed, late, places, asPut)
	}
}

func spelledSeries(names [3]string) string {
	return fmt.Sprint(names[0], map[string]string{names[1]: names[2]})
}
