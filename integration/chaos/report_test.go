package chaos

import (
	"downpour/integration/conformance"

	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var question = conformance.Query{
	Path:     "/api/query",
	Request:  json.RawMessage(`{}`),
	Status:   200,
	Response: json.RawMessage(`[{"dps":{"1":1}}]`),
}

// judge takes only the recorded answer as equal, and only an error that says why as a refusal.
func TestJudge(t *testing.T) {
	f := func(status int, body string, err error, want Kind) {
		t.Helper()
		if got := judge(question, status, []byte(body), err); got.Kind != want {
			t.Errorf("%d %s %v: %s (%s), want %s", status, body, err, got.Kind, got.Detail, want)
		}
	}
	f(200, `[{"dps":{"1":1}}]`, nil, Equal)
	f(200, `[{"dps":{"1":2}}]`, nil, Wrong)
	f(200, `[{"dps":{"1":1.0}}]`, nil, Wrong)
	f(200, `[{"dps":{}}]`, nil, Wrong)
	f(200, `[]`, nil, Wrong)
	f(200, `[{"dps":{"1":1`, nil, Wrong)
	f(408, `{"error":{"code":408,"message":"too long"}}`, nil, Refused)
	f(424, `{"error":{"code":424,"message":"away"}}`, nil, Refused)
	f(503, `{"error":{"code":503,"message":"holes","missing":[["00","01"]]}}`, nil, Refused)
	f(503, `{"error":{"code":503,"message":"holes"}}`, nil, Wrong)
	f(503, `busy`, nil, Wrong)
	f(408, `{"error":{"code":408}}`, nil, Wrong)
	f(400, `{"error":{"code":400,"message":"no"}}`, nil, Wrong)
	f(500, `{"error":{"code":500,"message":"no"}}`, nil, Wrong)
	f(0, "", errors.New("connection reset"), Silent)
	refusal := question
	refusal.Status = 400
	refusal.Response = json.RawMessage(`{"error":{"code":400,"message":"No such name for 'metrics': 'x'"}}`)
	if got := judge(refusal, 400, refusal.Response, nil); got.Kind != Equal {
		t.Errorf("a recorded refusal: %v", got)
	}
}

// Breaches lists each kind of breach, and none of a good run.
func TestBreaches(t *testing.T) {
	good := func() *Report {
		r := newReport()
		for range 2 * atLeast {
			r.answer("region moved", true, Outcome{Kind: Equal}, time.Millisecond, question)
		}
		r.answer("region moved", true, Outcome{Refused, "408 deadline"}, time.Second, question)
		for range 10 {
			r.answer("region server killed", false, Outcome{Refused, "408 deadline"}, time.Second, question)
		}
		r.event(event{fault: "region moved", whole: WholeWithin})
		return r
	}
	f := func(want string, harm func(r *Report)) {
		t.Helper()
		r := good()
		harm(r)
		got := r.Breaches()
		if want == "" && len(got) > 0 ||
			want != "" && !slices.ContainsFunc(got, func(b string) bool { return strings.Contains(b, want) }) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", func(*Report) {})
	f("wrong during region moved", func(r *Report) {
		r.answer("region moved", true, Outcome{Kind: Wrong}, 0, question)
	})
	f("silent during region server killed", func(r *Report) {
		r.answer("region server killed", false, Outcome{Kind: Silent}, 0, question)
	})
	f("answers refused under mild faults", func(r *Report) {
		for range 4 {
			r.answer(calm, true, Outcome{Refused, "424"}, 0, question)
		}
	})
	f("whole again 5.001s", func(r *Report) { r.event(event{fault: "x", whole: WholeWithin + time.Millisecond}) })
	f("whole again 7.001s", func(r *Report) {
		r.event(event{fault: "x", whole: WholeWithin + 2001*time.Millisecond, look: time.Second})
	})
	f("", func(r *Report) { r.event(event{fault: "x", whole: WholeWithin + 2*time.Second, look: time.Second}) })
	f("whole again 5.001s", func(r *Report) {
		for i := range 20 { // three of twenty are too many
			r.event(event{fault: "x", whole: WholeWithin + time.Duration(i/17)*time.Millisecond})
		}
	})
	f("", func(r *Report) {
		for i := range repeats { // one of three may be the machine's
			r.event(event{fault: "x", whole: WholeWithin + time.Duration(i/2)*time.Millisecond})
		}
	})
	f("not whole after the healing: why", func(r *Report) {
		r.event(event{fault: "x", ill: true, err: errors.New("why")})
	})
	f("", func(r *Report) { r.event(event{fault: "x", err: errors.New("HBase would not")}) })
	if got := newReport().Breaches(); len(got) != 1 || !strings.Contains(got[0], "only 0 answers") {
		t.Errorf("a run without answers: %q", got)
	}
	// 411 answers are twice atLeast, one refused and ten under a fault that is not mild.
	text := good().Text()
	for _, want := range []string{"411 answers", "1 faults", "10 x 408 deadline"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// unsure names a fault whose healing was slow once, until it was done often enough to judge it.
func TestUnsure(t *testing.T) {
	r := newReport()
	r.event(event{fault: "quick", whole: time.Second})
	r.event(event{fault: started, whole: WholeWithin + time.Second})
	for n := range repeats {
		if got := r.unsure(); (n < repeats-1) != slices.Equal(got, []string{started}) {
			t.Errorf("after %d times: %q, want the fault until the last time", n+1, got)
		}
		r.event(event{fault: started, whole: time.Second})
	}
	for _, f := range append(faults, fault{name: started}) {
		if got := faultNamed(f.name); got.name != f.name && f.name != started {
			t.Errorf("%s: got %s", f.name, got.name)
		}
	}
}

// Every recording has queries, points, and a probe for at least five of its metrics.
func TestLoadRecording(t *testing.T) {
	for _, name := range []string{"seed1", "seed2", "seed3_salted", "edges"} {
		r, err := LoadRecording(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Queries) < 200 || len(r.Points) < 3000 || len(r.probes()) < 5 || len(r.metrics()) < len(r.probes()) {
			t.Errorf("%s: %d queries, %d points, %d probes, %d metrics; want at least 200, 3000, 5, "+
				"and no more probes than metrics",
				name, len(r.Queries), len(r.Points), len(r.probes()), len(r.metrics()))
		}
	}
	if _, err := LoadRecording("none"); err == nil {
		t.Error("a recording that is not there: no error, want one")
	}
}
