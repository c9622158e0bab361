package activity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
)

// noon is a full minute.
var noon = time.Unix(1356998400, 0)

func took(list []*Query) (out []time.Duration) {
	for _, q := range list {
		out = append(out, q.Took)
	}
	return out
}

// Of drawn queries within an hour and a half, the lists are those of a sort over all that ended
// within the last 60 minutes.
func TestQueries(t *testing.T) {
	seed := seedtest.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var q Queries
	type ended struct {
		at    time.Time
		query *Query
	}
	var all []ended
	now := noon
	times, sizes := random.Perm(5000), random.Perm(5000) // no two are equal
	for i := range 5000 {
		now = noon.Add(time.Duration(i) * 90 * time.Minute / 5000)
		x := &Query{Took: time.Duration(times[i]), Bytes: int64(sizes[i]), Query: fmt.Sprint(i)}
		q.Add(now, x.Took, x.Bytes, x.Points, func() *Query { return x })
		all = append(all, ended{now, x})
	}
	all = slices.DeleteFunc(all, func(e ended) bool { return e.at.Unix()/60 <= now.Unix()/60-60 })
	want := func(n int, order func(a, b *Query) int) (out []*Query) {
		for _, e := range all {
			out = append(out, e.query)
		}
		slices.SortStableFunc(out, order)
		return out[:n]
	}
	if diff := cmp.Diff(want(PerMinute, bySlowness), q.Slowest(now, PerMinute)); diff != "" {
		t.Errorf("slowest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want(PerMinute, byWeight), q.Heaviest(now, PerMinute)); diff != "" {
		t.Errorf("heaviest (-want +got):\n%s", diff)
	}
	if got := q.Slowest(now.Add(time.Hour), 5); len(got) != 0 {
		t.Errorf("an hour later: %v, want nothing", took(got))
	}
}

// What is kept is bounded, and a query that is not kept is not described.
func TestQueries_bounded(t *testing.T) {
	var q Queries
	described := 0
	for i := range 1000 { // each is quicker and lighter than the one before
		q.Add(noon, time.Duration(1000-i), int64(1000-i), 0, func() *Query {
			described++
			return &Query{Took: time.Duration(1000 - i), Bytes: int64(1000 - i)}
		})
	}
	if got := q.Slowest(noon, 1000); len(got) != PerMinute || got[0].Took != 1000 || described != PerMinute {
		t.Errorf("%d are kept, %d were described; want the first %d of each", len(got), described, PerMinute)
	}
	// A clock that was set back by an hour changes nothing that is newer.
	q.Add(noon.Add(-time.Hour), 5000, 0, 0, func() *Query { return &Query{Took: 5000} })
	if got := q.Slowest(noon, 2); !slices.Equal(took(got), []time.Duration{5000, 1000}) {
		t.Errorf("after the clock was set back: %v, want the query and those before it", took(got))
	}
}

// Points are counted in the second in which they come; seconds without any are 0, and the present
// one is not shown before it is over.
func TestPuts(t *testing.T) {
	var p Puts
	p.Add(noon, HTTP, 10, 1)
	p.Add(noon.Add(500*time.Millisecond), Telnet, 5, 0)
	p.Add(noon.Add(2*time.Second), HTTP, 7, 2)
	p.Add(noon.Add(3*time.Second), Telnet, -3, 3) // lines that were lost after they were counted
	p.Add(noon.Add(4*time.Second), HTTP, 100, 100)
	got := p.Lately(noon.Add(4*time.Second), 5)
	want := Lately{
		From: noon.Unix() - 1,
		Stored: [sources][]int64{HTTP: {0, 10, 0, 7, 0}, Telnet: {0, 5, 0, 0, 0}, Own: make([]int64, 5),
			RemoteWrite: make([]int64, 5), OTLP: make([]int64, 5)},
		Refused: []int64{0, 1, 0, 2, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	later := p.Lately(noon.Add(Seconds*time.Second), 1000)
	if len(later.Refused) != Seconds-1 || later.Stored[HTTP][0] != 0 || later.Stored[HTTP][1] != 7 {
		t.Errorf("%d seconds, want %d, and what has passed out of the ring is gone: %v",
			len(later.Refused), Seconds-1, later.Stored[HTTP][:5])
	}
	for i, n := range p.Lately(noon.Add((Seconds+10)*time.Second), 1000).Stored[HTTP] {
		if n != 0 {
			t.Errorf("%d points in second %d of the last %d, in which none came", n, i, Seconds-1)
		}
	}
}

// Refusals are counted by way and reason, with an error of the newest second; reasons are bounded
// and errors shortened.
func TestPuts_refusals(t *testing.T) {
	var p Puts
	p.Refused(noon, "/api/put", "time", 3, errors.New("first"))
	p.Refused(noon.Add(time.Millisecond), "/api/put", "time", 4, errors.New("second"))
	p.Refused(noon.Add(2*time.Second), "telnet put", "value", 0, errors.New(strings.Repeat("ä", maxErr)))
	got := p.Refusals()
	want := []Refusal{
		{
			Via:      "telnet put",
			Reason:   "value",
			Requests: 1,
			Last:     noon.Add(2 * time.Second),
			Err:      strings.Repeat("ä", maxErr/2) + "…",
		},
		{Via: "/api/put", Reason: "time", Points: 7, Requests: 2, Last: noon, Err: "first"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 1000 {
		p.Refused(noon.Add(time.Duration(i)*time.Hour), fmt.Sprint("way ", i), "r", 1, errors.New("x"))
	}
	all := p.Refusals()
	var points int64
	for _, r := range all {
		points += r.Points
	}
	if len(all) != maxReasons+1 || points != 1007 || all[0].Reason != "others" {
		t.Errorf("%d reasons of %d points, the newest %q; want %d of 1007, the newest “others”",
			len(all), points, all[0].Reason, maxReasons+1)
	}
}
