package extra_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway"
)

// stretch are twelve minutes, before which as many are compared; a bucket has a minute.
const stretch = 1356998400

// minutes puts a value for each minute of both stretches; "-" is none.
func minutes(b *bench, metric, tags string, values ...any) {
	b.Helper()
	var lines []string
	for i, v := range values {
		if v != "-" {
			lines = append(lines, fmt.Sprintf("%s %d %v %s", metric, stretch-720+i*60, v, tags))
		}
	}
	b.Put(lines...)
}

// times repeats a value.
func times(n int, v any) []any { return slices.Repeat([]any{v}, n) }

type changedSeries struct {
	Metric        string
	Tags          map[string]string
	Before, After *float64
	Score         *float64
	Rate          bool
}

type changesAnswer struct {
	Before, After               struct{ Start, End int64 }
	Step                        int64
	Changed, Appeared, Vanished struct {
		All    int
		Series []changedSeries
	}
	Looked      struct{ Metrics, Series, Sparse int }
	NotLookedAt *struct {
		Metrics int
		Listed  []struct{ Metric, Why string }
		More    int
	}
}

// askChanges returns what changed within the stretch.
func askChanges(b *bench, parameters string) (a changesAnswer) {
	b.Helper()
	got := b.Get(fmt.Sprintf("/api/changes?start=%d&end=%d&%s", stretch, stretch+720, parameters))
	if err := json.Unmarshal([]byte(got.Body), &a); err != nil || got.Status != http.StatusOK {
		b.Fatalf("%d %s: %v", got.Status, got.Body, err)
	}
	return a
}

// names are the series of a list in a readable form.
func names(list []changedSeries) (out []string) {
	for _, s := range list {
		value := func(v *float64) string {
			if v == nil {
				return "none"
			}
			return fmt.Sprintf("%.4g", *v)
		}
		out = append(out, fmt.Sprintf("%s %v %s -> %s", s.Metric, s.Tags, value(s.Before), value(s.After)))
	}
	return out
}

// The series that changed are listed, the most changed first; what appeared, vanished or has too few points is
// counted apart; the answer says what it is of.
func TestChanges(t *testing.T) {
	b := open(t, nil)
	for i := range 20 {
		minutes(b, "web.cpu", fmt.Sprintf("host=h%02d", i), times(24, 10+i)...)
	}
	minutes(b, "web.cpu", "host=moved", append(times(12, 10), times(12, 60)...)...)
	var noisy []any
	for i := range 24 {
		noisy = append(noisy, 100+i%2*50+i/12*40)
	}
	minutes(b, "web.noisy", "host=a", noisy...)
	minutes(b, "web.born", "host=a", append(times(12, "-"), times(12, 5)...)...)
	minutes(b, "web.gone", "host=a", times(12, 7)...)
	minutes(b, "web.rare", "host=a", 1, "-", 2)
	var count []any
	for i := range 24 {
		count = append(count, i*60+max(0, i-12)*600)
	}
	minutes(b, "db.requests", "host=a", count...)

	a := askChanges(b, "")
	if d := cmp.Diff([]string{
		"db.requests map[host:a] 1 -> 11",
		"web.cpu map[host:moved] 10 -> 60",
		"web.noisy map[host:a] 125 -> 165",
	}, names(a.Changed.Series)); d != "" || a.Changed.All != 3 || !a.Changed.Series[0].Rate {
		t.Errorf("changed, -want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{"web.born map[host:a] none -> 5"}, names(a.Appeared.Series)); d != "" {
		t.Errorf("appeared, -want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{"web.gone map[host:a] 7 -> none"}, names(a.Vanished.Series)); d != "" {
		t.Errorf("vanished, -want +got:\n%s", d)
	}
	if a.Looked.Metrics != 6 || a.Looked.Series != 26 || a.Looked.Sparse != 1 || a.NotLookedAt != nil {
		t.Errorf("looked at %+v, not at %+v; want 6 metrics of 26 series with 1 sparse, and all",
			a.Looked, a.NotLookedAt)
	}
	if a.Before.Start != (stretch-720)*1000 || a.Before.End != a.After.Start || a.After.Start != stretch*1000 ||
		a.After.End != (stretch+720)*1000 || a.Step != 60_000 {
		t.Errorf("stretches %+v and %+v of %d ms", a.Before, a.After, a.Step)
	}

	a = askChanges(b, "metric=WEB&limit=1")
	if a.Changed.All != 2 || len(a.Changed.Series) != 1 || a.Changed.Series[0].Metric != "web.cpu" ||
		a.Looked.Metrics != 5 {
		t.Errorf("of the metrics with web, one series: %+v", a)
	}
	if a = askChanges(b, "metric=no+such+name"); a.Looked.Metrics != 0 || a.NotLookedAt != nil {
		t.Errorf("of no metric: %+v", a)
	}
}

// What the time was too short for, and what is too large to be read, is said with the reason; the other metrics are
// looked at.
func TestChanges_saysWhatIsMissing(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.LimitPoints = 100 })
	for _, m := range []string{"a.small", "b.large", "c.small"} {
		for i := range map[string]int{"b.large": 10}[m] + 1 {
			minutes(b, m, fmt.Sprintf("host=h%d", i), append(times(12, 1), times(12, 3)...)...)
		}
	}
	a := askChanges(b, "")
	if a.Looked.Metrics != 2 || a.Changed.All != 2 || a.NotLookedAt == nil || a.NotLookedAt.Metrics != 1 ||
		a.NotLookedAt.Listed[0].Metric != "b.large" ||
		!strings.Contains(a.NotLookedAt.Listed[0].Why, "more than 100 points") {
		t.Errorf("got %+v, not looked at: %+v", a.Looked, a.NotLookedAt)
	}

	a = askChanges(b, "budget=1ns")
	if a.Looked.Metrics != 0 || a.NotLookedAt == nil || a.NotLookedAt.Metrics != 3 || len(a.NotLookedAt.Listed) != 3 ||
		!strings.Contains(a.NotLookedAt.Listed[0].Why, "the time budget of 1ns was over") {
		t.Errorf("without time: %+v, not looked at: %+v", a.Looked, a.NotLookedAt)
	}
}

func TestChanges_refused(t *testing.T) {
	b := open(t, nil)
	for query, message := range map[string]string{
		"":                                "Missing parameter <code>start</code>",
		"start=yesterday":                 "start: ",
		"start=1h-ago&end=x":              "end: ",
		"start=1356998400&end=1356998400": "must be greater than the start time",
		"start=1h-ago&limit=0":            `limit: got "0", want 1 to 1000`,
		"start=1h-ago&limit=1001":         `limit: got "1001", want 1 to 1000`,
		"start=1h-ago&budget=1h":          `budget: got "1h", want a time such as 5s, at most`,
		"start=1h-ago&budget=-1s":         `budget: got "-1s"`,
	} {
		b.Refused(b.Get("/api/changes?"+query), http.StatusBadRequest, message)
	}
	b.Refused(b.Post("/api/changes", "{}"), http.StatusMethodNotAllowed, "Method not allowed")
}
