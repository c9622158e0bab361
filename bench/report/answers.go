package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is one answer of a replay.
type Answer struct {
	Took          time.Duration
	Points, Bytes int64
	Failed        bool // then the rest does not count
}

// Tallies counts answers by their queries. The zero value is empty.
type Tallies struct {
	byQuery map[string]*tally
}

// tally is the answers to one query.
type tally struct {
	errors, points, bytes int64
	took                  []time.Duration // of those that are no errors
}

// Add counts an answer.
func (t *Tallies) Add(query string, a Answer) {
	if t.byQuery == nil {
		t.byQuery = map[string]*tally{}
	}
	one := t.byQuery[query]
	if one == nil {
		one = new(tally)
		t.byQuery[query] = one
	}
	if a.Failed {
		one.errors++
		return
	}
	one.points += a.Points
	one.bytes += a.Bytes
	one.took = append(one.took, a.Took)
}

// Answers is what came of a replay, and how fast.
type Answers struct {
	Seconds  float64    `json:"seconds"` // from the first question to the last answer
	Requests int64      `json:"requests"`
	Points   int64      `json:"points"`
	Bytes    int64      `json:"bytes"`
	Queries  []Answered `json:"queries"` // those that took the most time in all first
}

// Answered is what came of one query of a replay.
type Answered struct {
	Query    string  `json:"query"`
	Requests int64   `json:"requests"`
	Errors   int64   `json:"errors"`
	Points   int64   `json:"points"`
	Bytes    int64   `json:"bytes"`
	P50      float64 `json:"p50"` // ms
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	Seconds  float64 `json:"seconds"` // all requests together
}

// Of makes the report of what was counted in a time.
func (t *Tallies) Of(took time.Duration) *Answers {
	a := &Answers{Seconds: max(took.Seconds(), 0)}
	for query, one := range t.byQuery {
		q := Answered{
			Query: query, Requests: int64(len(one.took)), Errors: one.errors, Points: one.points, Bytes: one.bytes}
		for _, d := range one.took {
			q.Seconds += d.Seconds()
		}
		slices.Sort(one.took)
		q.P50, q.P99, q.Max = rank(one.took, 50), rank(one.took, 99), rank(one.took, 100)
		a.Queries = append(a.Queries, q)
		a.Requests, a.Points, a.Bytes = a.Requests+q.Requests, a.Points+q.Points, a.Bytes+q.Bytes
	}
	slices.SortFunc(a.Queries, func(x, y Answered) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), strings.Compare(x.Query, y.Query))
	})
	return a
}

// rank is a percentile of sorted times, in ms: the least that so many percent are not above.
func rank(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return ms(sorted[(len(sorted)*percent+99)/100-1])
}

// Rates is the line of what came in a second.
func (a *Answers) Rates() string {
	per := func(n int64) float64 {
		if a.Seconds == 0 {
			return 0
		}
		return float64(n) / a.Seconds
	}
	return fmt.Sprintf("%.1f requests/s, %s points/s, %.1f MB/s", per(a.Requests), Thousands(per(a.Points)),
		per(a.Bytes)/1e6)
}

// MB is the bytes of all answers.
func (q Answered) MB() float64 { return float64(q.Bytes) / 1e6 }

// Text is the query in one line that is not too long.
func (q Answered) Text() string {
	const most = 160
	text := []rune(strings.Join(strings.Fields(q.Query), " "))
	if len(text) > most {
		text = append(text[:most-1], '…')
	}
	return string(text)
}

// text writes the rates, and a line for each query.
func (a *Answers) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", a.Rates())
	fmt.Fprintf(b, "\n%8s %6s %9s %9s %9s %14s %9s  %s\n", "requests", "errors", "p50 ms", "p99 ms", "max ms",
		"points", "MB", "query")
	for _, q := range a.Queries {
		fmt.Fprintf(b, "%8d %6d %9.2f %9.2f %9.2f %14s %9.2f  %s\n", q.Requests, q.Errors, q.P50, q.P99, q.Max,
			thousands(q.Points), q.MB(), q.Text())
	}
}
