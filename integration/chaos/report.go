package chaos

import (
	"downpour/integration/conformance"

	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits that a run is held to.
const (
	// MayRefuse is the share of answers that may be refusals while nothing but
	// regions and pushdown servers is harmed.
	MayRefuse = 0.01
	// WholeWithin is how soon after a healing all must be whole again, on a
	// machine with nothing else to do; twice the time that a look at what is
	// whole takes is added, because on a busy one looks differ by that much.
	WholeWithin = 5 * time.Second
	// repeats is how often a fault is done whose healing was slow once.
	repeats = 3
	// atLeast is the number of answers under which a share says nothing.
	atLeast = 200
)

// calm stands for the time between two faults.
const calm = "none"

// Report is the account of a run. Its methods may be called from many
// goroutines.
type Report struct {
	mu     sync.Mutex
	began  time.Time
	kinds  map[string]*tally
	events []event
	wrong  []string
	// revived counts the servers of HBase that ended by themselves and were started again. It is set at the end.
	revived int
}

// tally counts what came of questions during one kind of fault.
type tally struct {
	mild    bool
	by      [Silent + 1]int
	reasons map[string]int
	slowest time.Duration
}

// event is one fault and its healing.
type event struct {
	fault, detail string
	mild          bool
	at            time.Duration // since the beginning of the run
	lasted        time.Duration // until it was healed
	whole         time.Duration // from the healing on, except for the look
	look          time.Duration // that a look at what is whole takes
	err           error         // HBase would not do it, or it never became whole
	ill           bool          // err is of the second kind
}

func newReport() *Report {
	return &Report{began: time.Now(), kinds: map[string]*tally{}}
}

// answer enters what came of a question that was asked during a fault.
func (r *Report) answer(fault string, mild bool, o Outcome, took time.Duration, q conformance.Query) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.kinds[fault]
	if t == nil {
		t = &tally{mild: mild, reasons: map[string]int{}}
		r.kinds[fault] = t
	}
	t.by[o.Kind]++
	t.slowest = max(t.slowest, took)
	if o.Kind == Refused {
		t.reasons[o.Detail]++
	}
	if o.Kind == Wrong || o.Kind == Silent {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s during %s, after %v: %s\n%s",
			time.Since(r.began).Round(time.Millisecond), o.Kind, fault, took.Round(time.Millisecond), o.Detail,
			q.Request))
	}
}

func (r *Report) event(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Breaches lists what a run must not show; a good run has none.
func (r *Report) Breaches() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out = slices.Clone(r.wrong)
	refused, answers := 0, 0
	for _, t := range r.kinds {
		if t.mild { // the others may take answers away
			refused += t.by[Refused]
			answers += t.by[Equal] + t.by[Refused]
		}
	}
	switch {
	case answers < atLeast:
		out = append(out, fmt.Sprintf("only %d answers under mild faults, want at least %d", answers, atLeast))
	case float64(refused) > MayRefuse*float64(answers):
		out = append(out, fmt.Sprintf("%d of %d answers refused under mild faults, want at most %g %%",
			refused, answers, 100*MayRefuse))
	}
	for _, e := range r.events {
		if e.ill {
			out = append(out, fmt.Sprintf("%v %s (%s): not whole after the healing: %v",
				e.at.Round(time.Second), e.fault, e.detail, e.err))
		}
	}
	return append(out, r.slow()...)
}

// slow lists the slow healings of those kinds of fault that heal slowly again and
// again. One alone among several may be the machine's doing: what Downpour does
// wrong after a fault, it does again.
func (r *Report) slow() (out []string) {
	times, slow := map[string]int{}, map[string][]string{}
	for _, e := range r.events {
		times[e.fault]++
		if e.slow() {
			slow[e.fault] = append(slow[e.fault], fmt.Sprintf("%v %s (%s): whole again %v after the healing, want %v",
				e.at.Round(time.Second), e.fault, e.detail, e.whole.Round(time.Millisecond),
				e.limit().Round(time.Millisecond)))
		}
	}
	for _, fault := range slices.Sorted(maps.Keys(slow)) {
		// Of a kind with enough events one healing, or one in ten, is put down to the machine.
		if times[fault] < repeats || len(slow[fault]) > max(1, times[fault]/10) {
			out = append(out, slow[fault]...)
		}
	}
	return out
}

// limit is how soon all must be whole again.
func (e *event) limit() time.Duration { return WholeWithin + 2*e.look }

func (e *event) slow() bool { return !e.ill && e.whole > e.limit() }

// unsure lists the kinds of fault that had a slow healing and too few others to
// tell why.
func (r *Report) unsure() (faults []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	times, slow := map[string]int{}, map[string]bool{}
	for _, e := range r.events {
		times[e.fault]++
		slow[e.fault] = slow[e.fault] || e.slow()
	}
	for _, fault := range slices.Sorted(maps.Keys(slow)) {
		if slow[fault] && times[fault] < repeats {
			faults = append(faults, fault)
		}
	}
	return faults
}

// Text is the report as a table of faults.
func (r *Report) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	total := 0
	for _, t := range r.kinds {
		for _, n := range t.by {
			total += n
		}
	}
	fmt.Fprintf(&b, "%d answers in %v, %d faults; %d servers of HBase ended by themselves and were started again\n",
		total, time.Since(r.began).Round(time.Second), len(r.events), r.revived)
	fmt.Fprintf(&b, "%-22s %6s %6s %8s %6s %8s  %s\n",
		"fault", "times", "equal", "refused", "wrong", "slowest", "whole again after: median, longest")
	for _, name := range slices.Sorted(maps.Keys(r.kinds)) {
		t := r.kinds[name]
		times, whole := r.wholeTimes(name)
		fmt.Fprintf(&b, "%-22s %6d %6d %8d %6d %8s  %s",
			name, times, t.by[Equal], t.by[Refused], t.by[Wrong]+t.by[Silent], t.slowest.Round(time.Millisecond), whole)
		for _, reason := range slices.Sorted(maps.Keys(t.reasons)) {
			fmt.Fprintf(&b, "; %d x %s", t.reasons[reason], reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// wholeTimes counts the events of a fault. text is the median and the longest time until all
// was whole again, of those events that had no error.
func (r *Report) wholeTimes(fault string) (times int, text string) {
	var whole []time.Duration
	for _, e := range r.events {
		if e.fault != fault {
			continue
		}
		times++
		if e.err == nil {
			whole = append(whole, e.whole)
		}
	}
	if len(whole) == 0 {
		return times, "-"
	}
	slices.Sort(whole)
	return times, fmt.Sprintf("%v, %v",
		whole[len(whole)/2].Round(time.Millisecond), whole[len(whole)-1].Round(time.Millisecond))
}
