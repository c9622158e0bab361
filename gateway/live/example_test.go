package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/gateway/live"
)

// fixedSource gives two answers: all groups, and then one changed point.
type fixedSource struct {
	asked   int
	changed chan struct{}
}

func (s *fixedSource) Next(context.Context, time.Time) (live.Answer, error) {
	s.asked++
	switch s.asked {
	case 1:
		r := live.Result{Metric: "cpu", Tags: map[string]string{"host": "web01"}, Key: "web01"}
		r.Points.Append(1_700_000_000_000, encoding.IntValue(1))
		r.Points.Append(1_700_000_010_000, encoding.IntValue(2))
		return live.Answer{Results: []live.Result{r}}, nil
	case 2:
		w := live.Window{From: 1_700_000_020_000, To: 1_700_000_020_999}
		w.Points.Append(1_700_000_020_000, encoding.FloatValue(2.5))
		change := live.Change{Key: "web01", Windows: []live.Window{w}}
		return live.Answer{Kept: map[int]bool{0: true}, Changes: []live.Change{change}}, nil
	}
	return live.Answer{Kept: map[int]bool{0: true}}, nil // nothing new
}

func (s *fixedSource) Changed() <-chan struct{} { return s.changed }
func (s *fixedSource) Close()                   {}

// A subscriber gets a snapshot of the answer, and a delta when its source has news.
func ExampleHub_Subscribe() {
	source := &fixedSource{changed: make(chan struct{})}
	hub := live.New(live.Config{
		OpenSource: func(live.Question) live.Source { return source },
		Interval:   time.Hour,
		Quick:      time.Millisecond,
	})
	defer hub.Close()

	woken := make(chan struct{}, 1)
	wake := func() { // must not block
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	query := json.RawMessage(`{"start":"1h-ago","queries":[{"metric":"cpu","aggregator":"sum"}]}`)
	sub, err := hub.Subscribe(live.Request{Query: query}, wake)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sub.Close()

	next := func() {
		for range woken {
			u := sub.Next()
			if u == nil {
				continue // woken without an update
			}
			text, err := u.JSON()
			if err != nil {
				fmt.Println(err)
				return
			}
			_, afterEpoch, _ := strings.Cut(string(text), `"seq"`)
			fmt.Printf("%s: \"seq\"%s\n", u.Kind, strings.TrimSuffix(afterEpoch, "}"))
			return
		}
	}
	next()
	source.changed <- struct{}{}
	next()
	// Output:
	// snapshot: "seq":1,"results":[{"queryIndex":0,"metric":"cpu","tags":{"host":"web01"},"aggregateTags":[],"dps":[[1700000000,1],[1700000010,2]]}]
	// delta: "seq":2,"groups":[],"removed":[],"upserts":[{"group":0,"dps":[[1700000020,2.5]]}],"deletes":[],"finalBefore":0
}
