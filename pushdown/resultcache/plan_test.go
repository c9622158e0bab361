package resultcache

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/storetest"
)

// versioner counts the version tokens that are taken, and can fail.
type versioner struct {
	store.Store
	taken atomic.Int64
	err   error
	none  bool // nothing can be proven now
}

func (m *versioner) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(m.Version)}
}

func (m *versioner) Version(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	m.taken.Add(1)
	if m.err != nil || m.none {
		return "", m.err
	}
	return storetest.Version(ctx, m.Store.Features().Versioner, table, family, r)
}

// total is an answer to a whole plan, which takes as many bytes as its value.
type total int64

func (n total) Bytes() int64 { return int64(n) }

// salted returns a world with three salt buckets, its store with counted version tokens, and a
// plan, which has three ranges.
func salted(t *testing.T) (*world, *versioner, *scanplan.Plan) {
	w := newWorld(t, rand.New(rand.NewPCG(5, 5)), openPebble(t))
	w.schema.SaltWidth, w.schema.SaltBuckets, w.cache = 1, 3, New(1<<20, nil)
	plan := operatortest.Plan(w.schema, operatortest.UID(1), base, base+hours*3600)
	return w, &versioner{Store: w.store}, &plan
}

// write puts a point of series k into an hour of the plan.
func (w *world) write(k, hour int) {
	w.Helper()
	tags := w.schema.AppendTags(nil, []encoding.TagPair{operatortest.Tag(1, k)})
	at := base + 3600*int64(hour)
	q, value := operatortest.Encode(at*1000, encoding.IntValue(1))
	w.apply(store.Mutation{
		Row:       w.schema.AppendRowKey(nil, operatortest.UID(1), uint32(at), tags),
		Family:    encoding.FamilyData,
		Qualifier: encoding.AppendQualifier(nil, q),
		Value:     value,
	})
}

// A plan that is queried once costs no version token. If it is queried again its answer may be
// stored, and is then found until a row of any of its ranges has changed.
func TestLookupPlan(t *testing.T) {
	w, st, plan := salted(t)
	ask := func() *PlanLookup { return LookupPlan(t.Context(), w.cache, st, plan, "a way", nil) }
	if a := ask(); a.Wanted() || a.Found() != nil || st.taken.Load() != 0 {
		t.Errorf("the first ask: wanted %v, found %v, %d tokens taken; want nothing wanted, found or taken",
			a.Wanted(), a.Found(), st.taken.Load())
	}
	for k := range 20 { // some in each salt bucket
		a := ask()
		if !a.Wanted() || a.Found() != nil || a.Unchanged() {
			t.Fatalf("after change %d: wanted %v, found %v, want an answer to be wanted and none found", k, a.Wanted(),
				a.Found())
		}
		a.Store(total(k))
		if a := ask(); a.Found() != total(k) || !a.Unchanged() {
			t.Errorf("found %v, unchanged: %v, want %d, unchanged", a.Found(), a.Unchanged(), k)
		}
		if got := LookupPlan(t.Context(), w.cache, st, plan, "another way", nil).Found(); got != nil {
			t.Errorf("found %v under another way, want nothing", got)
		}
		if !w.cache.HoldsPlan(plan, "a way") || w.cache.HoldsPlan(plan, "another way") {
			t.Error("want HoldsPlan to be true for one way and false for the other")
		}
		w.write(k, k%hours)
	}
	if c := w.cache.Counts(); c.PlanHits != 20 || c.Hits != 20 || c.Kept != 20 || c.Changed != 19 {
		t.Errorf("%+v, want 20 hits, all whole, 20 kept, 19 changed", c)
	}
}

// earlyStore gives version tokens before they are proven.
type earlyStore struct {
	*versioner
	proof error // of all tokens
	asked int   // how often a proof was waited for
}

func (s *earlyStore) Features() store.Features { return store.Features{Versioner: s} }

func (s *earlyStore) Version(ctx context.Context, table, family string,
	r store.KeyRange) (string, func() error, error) {
	token, err := s.versioner.Version(ctx, table, family, r)
	return token, func() error { s.asked++; return cmp.Or(ctx.Err(), s.proof) }, err
}

// An answer may be found under a token that is not yet proven, whose proof must then be
// awaited. Nothing is stored under such a token.
//
//fault:stored-before-proven proof() => error(nil)
func TestLookupPlan_unproven(t *testing.T) {
	w, versioner, plan := salted(t)
	st := &earlyStore{versioner: versioner}
	proofs := NewProofs(t.Context())
	ask := func(proofs *Proofs) *PlanLookup { return LookupPlan(t.Context(), w.cache, st, plan, "", proofs) }
	ask(proofs)

	st.proof = errors.New("the region was opened again")
	if a := ask(proofs); a != nil || st.asked != 1 {
		t.Errorf("got %v after %d proofs, want nothing to store under a token whose proof has failed", a, st.asked)
	}

	st.proof, st.asked = nil, 0
	a := ask(proofs)
	if !a.Wanted() || st.asked != len(plan.Ranges) {
		t.Errorf("wanted %v after %d proofs, want all %d before rows are read", a.Wanted(), st.asked, len(plan.Ranges))
	}
	a.Store(total(1))

	// A proof may take longer than the sub-query that has found the answer.
	late := NewProofs(t.Context())
	brief, end := context.WithCancel(t.Context())
	if got := LookupPlan(brief, w.cache, st, plan, "", late).Found(); got != total(1) {
		t.Errorf("found %v, want the answer", got)
	}
	end()
	if err := late.Wait(); err != nil {
		t.Errorf("after the end of the sub-query: %v", err)
	}

	st.proof, st.asked = errors.New("the region was opened again"), 0
	if got := ask(proofs).Found(); got != total(1) || st.asked != 0 {
		t.Errorf("found %v after %d proofs, want it before they are waited for", got, st.asked)
	}
	for range 2 {
		if err := proofs.Wait(); !errors.Is(err, ErrUnproven) || !errors.Is(err, st.proof) {
			t.Errorf("got %v, want %v: %v", err, ErrUnproven, st.proof)
		}
	}
	if a := ask(nil); a != nil {
		t.Errorf("found %v without proofs to wait for, though the token's proof fails; want no lookup", a.Found())
	}

	st.proof = nil
	none := NewProofs(t.Context())
	if err := errors.Join(none.Wait(), (*Proofs)(nil).Wait()); err != nil {
		t.Error(err)
	}
}

// A result of rows that changed while they were read is not found.
func TestPlanLookup_changedInBetween(t *testing.T) {
	w, st, plan := salted(t)
	ask := func() *PlanLookup { return LookupPlan(t.Context(), w.cache, st, plan, "", nil) }
	ask()
	a := ask()
	w.write(1, 0)
	a.Store(total(1))
	if got := ask().Found(); got != nil {
		t.Errorf("found %v, want nothing", got)
	}
	a, b := ask(), ask()
	a.Store(total(2))
	b.Store(total(3)) // of the same rows
	if got := ask().Found(); got != total(2) {
		t.Errorf("found %v, want what was kept first", got)
	}
	a = ask()
	w.write(2, 0)
	ask()
	a.Store(total(4)) // a newer lookup has seen the change
	if got := ask().Found(); got != nil {
		t.Errorf("found %v, want nothing", got)
	}
}

// An answer that is too large is not stored. Without a version token or a cache no answer is wanted
// or found.
func TestPlanLookup_not(t *testing.T) {
	w, st, plan := salted(t)
	ask := func() *PlanLookup { return LookupPlan(t.Context(), w.cache, st, plan, "", nil) }
	ask()
	ask().Store(total(1<<20/answerShare + 1))
	if a := ask(); !a.Wanted() {
		t.Errorf("found %v, want nothing: the answer is too large", a.Found())
	}
	ask().Store(total(1))
	st.err = errors.New("no token")
	if a := ask(); a.Wanted() || a.Found() != nil || a.Unchanged() || a.Reason() != "no token" {
		t.Errorf("wanted %v, found %v, unchanged %v, reason %q without a token; want the reason alone", a.Wanted(),
			a.Found(), a.Unchanged(), a.Reason())
	}
	st.err, st.none = nil, true
	before := w.cache.Counts().Unproven
	if a := ask(); a != nil || w.cache.Counts().Unproven != before+1 {
		t.Errorf("found %v with an empty token, want nothing, and it counted as unproven", a)
	}
	for name, a := range map[string]*PlanLookup{"no cache": LookupPlan(t.Context(), nil, st, plan, "", nil),
		"no tokens": LookupPlan(t.Context(), w.cache, &operatortest.Store{}, plan, "", nil)} {
		if a.Store(total(1)); a.Wanted() || a.Found() != nil {
			t.Errorf("%s: wanted %v, found %v, want neither", name, a.Wanted(), a.Found())
		}
	}
	if (*Cache)(nil).HoldsPlan(plan, "") {
		t.Error("a nil cache says that it holds an answer")
	}
}

// Why answers are not cached is logged, unless it is that the request ends.
func TestLookupPlan_logged(t *testing.T) {
	for _, ended := range []bool{false, true} {
		w, inner, plan := salted(t)
		var log logtest.Log
		w.cache.log = log.Logger()
		st := &earlyStore{versioner: inner, proof: errors.New("opened again")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		LookupPlan(ctx, w.cache, st, plan, "", nil)
		if ended {
			cancel()
		}
		LookupPlan(ctx, w.cache, st, plan, "", nil)
		inner.err = errors.New("no token")
		LookupPlan(ctx, w.cache, st, plan, "", nil)
		for _, reason := range []string{"opened again", "no token"} {
			if n := len(log.Lines(reason)); (n == 1) == ended {
				t.Errorf("ended %v: %q is logged %d times", ended, reason, n)
			}
		}
	}
}

// The token of a plan is of all keys that its ranges depend on: also of rows before its hours, which hold
// points of them.
func TestPlanVersion_reads(t *testing.T) {
	plan := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), base, base+3600)
	var got store.KeyRange
	_, _, err := planVersion(t.Context(), store.VersionFunc(func(_ context.Context, _, _ string,
		r store.KeyRange) (string, error) {
		got = r
		return "m", nil
	}), &plan)
	reads := plan.Reads(plan.Ranges[0])
	if want := (store.KeyRange{Start: reads.Start, Stop: reads.Stop}); err != nil ||
		string(want.Start) == string(plan.Ranges[0].Start) || string(got.Start) != string(want.Start) ||
		string(got.Stop) != string(want.Stop) {
		t.Errorf("a token of keys %x, error %v, want one of %x", got, err, want)
	}
}

// A whole answer depends on everything but the bounds that it is trimmed to.
func TestPlanKey(t *testing.T) {
	keyOf := func(change func(*scanplan.Plan)) ID {
		p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), base, base+hours*3600)
		p.Downsample, p.Rate = &scanplan.Downsample{Interval: 300_000, Function: "avg"}, &scanplan.Rate{}
		change(&p)
		return PlanKey(&p, "")
	}
	usual := keyOf(func(*scanplan.Plan) {})
	f := func(name string, same bool, change func(*scanplan.Plan)) {
		t.Helper()
		if got := keyOf(change) == usual; got != same {
			t.Errorf("%s: same key %v, want %v", name, got, same)
		}
	}
	f("bounds", true, func(p *scanplan.Plan) { p.Start, p.End = p.Start+60_000, p.End-1 })
	f("hours", false, func(p *scanplan.Plan) { p.From += 3600 })
	f("ranges", false, func(p *scanplan.Plan) { p.Ranges = nil })
	f("tags", false, func(p *scanplan.Plan) { p.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(1)}} })
	f("aggregator", false, func(p *scanplan.Plan) { p.Aggregator = "max" })
	f("group-by", false, func(p *scanplan.Plan) { p.GroupBy = []encoding.UID{operatortest.UID(1)} })
	f("rate", false, func(p *scanplan.Plan) { p.Rate.Counter = true })
	f("fixes", false, func(p *scanplan.Plan) { p.Fix = scanplan.FixGaps })
	f("memory", false, func(p *scanplan.Plan) { p.MaxBytes = 1 })
	all := func(start int64) ID {
		return keyOf(func(p *scanplan.Plan) { p.Downsample.All, p.Start = true, start })
	}
	if all(1) == all(2) {
		t.Error("the key of one bucket for the whole query does not name its start")
	}
}
