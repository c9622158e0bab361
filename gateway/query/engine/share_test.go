package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/query"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// held is a board whose queries call spending once they have read rows.
type held struct {
	*board
	// plain is an engine on which nothing runs at the same time.
	plain    *Engine
	spending func(ctx context.Context, q *query.Query) error
}

// spends is a budget that calls spending.
type spends struct {
	operator.Budget
	h *held
	q *query.Query
}

func (s spends) Spend(ctx context.Context, _, _ int64) error { return s.h.spending(ctx, s.q) }

// newHeld returns a board whose engines wait for ever until an equal query has ended.
func newHeld(t *testing.T) *held {
	seed := seedtest.Of(t)
	b := newBoard(t, rand.New(rand.NewPCG(seed, 0)), embedded(t))
	plain := b.reading.cfg
	plain.Budget = nil
	h := &held{board: b, plain: New(plain)}
	b.budget = func(_ context.Context, q *query.Query, _ *query.SubQuery) operator.Budget {
		return spends{operator.NewBudget(0, 0), h, q}
	}
	b.reading.waitsFor(time.Hour)
	b.caching.waitsFor(time.Hour)
	return h
}

// waitsFor has queries wait so long for an equal one that runs.
func (e *Engine) waitsFor(d time.Duration) {
	e.stages = stage.New(stage.Config{
		Exec:          e.cfg.Exec,
		RollupProver:  e.cfg.RollupProver,
		Log:           e.cfg.Log,
		SharePatience: d,
	})
}

// answered is what a query was answered.
type answered struct {
	results []Result
	stats   Stats
	err     error
}

// start runs a query.
func start(ctx context.Context, e *Engine, q *query.Query) <-chan answered {
	out := make(chan answered, 1)
	go func() {
		var a answered
		a.results, a.stats, a.err = e.Run(ctx, q, Options{})
		out <- a
	}()
	return out
}

// waiting returns how many queries wait for the next execution of a plan.
func waiting(e *Engine) int {
	_, n := e.stages.Sharing()
	return n
}

// executing returns how many plans are being executed.
func executing(e *Engine) int {
	n, _ := e.stages.Sharing()
	return n
}

// untilWaiting returns once so many queries wait.
func (h *held) untilWaiting(e *Engine, n int) {
	h.Helper()
	for end := time.Now().Add(time.Minute); waiting(e) != n; runtime.Gosched() {
		if time.Now().After(end) { // they do not share
			h.Fatalf("%d queries wait, want %d", waiting(e), n)
		}
	}
}

// right checks that an answer is that of an engine on which nothing runs at the same time.
func (h *held) right(q *query.Query, a answered) {
	h.Helper()
	if a.err != nil {
		h.Fatal(a.err)
	}
	want, fresh, err := h.plain.Run(h.Context(), q, Options{})
	if err != nil {
		h.Fatal(err)
	}
	if d := cmp.Diff(want, a.results, cmpopts.EquateEmpty()); d != "" {
		h.Fatalf("-want +got\n%s", d)
	}
	if a.stats.Points != fresh.Points || a.stats.Rows != fresh.Rows || a.stats.PointsOut != fresh.PointsOut {
		h.Errorf("stats %+v, want %+v", a.stats, fresh)
	}
}

// overwrite overwrites a point in the first hour.
func (b *board) overwrite(v int64) {
	b.Helper()
	tags := b.schema.AppendTags(nil,
		[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, 1}},
			{K: encoding.UID{0, 0, 2}, V: encoding.UID{0, 0, 1}}})
	q, value := operatortest.Encode((hourZero+607)*1000,
		encoding.IntValue(v<<32)) // 8 bytes: all values have one qualifier
	b.apply(store.Mutation{
		Row:       b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, hourZero, tags),
		Family:    encoding.FamilyData,
		Qualifier: encoding.AppendQualifier(nil, q),
		Value:     value,
	})
}

// numberOf returns a value, whatever its kind.
func numberOf(v encoding.Value) float64 {
	if v.Float {
		return v.Double()
	}
	return float64(v.Int())
}

// released closes a channel once.
func released() (until <-chan struct{}, release func()) {
	c := make(chan struct{})
	return c, sync.OnceFunc(func() { close(c) })
}

// Queries that ask while an equal one is executed share the execution after that, whatever their
// windows inside the same hours. It has what was written before they asked, also if the one that
// ran had read the row already.
func TestShared_readsAfterTheAsk(t *testing.T) {
	for _, caching := range []bool{false, true} {
		h := newHeld(t)
		e := h.reading
		if caching {
			e = h.caching
		}
		first := h.question(hourZero, hourZero+7000)
		read, hasRead := released()
		open, release := released()
		h.spending = func(_ context.Context, q *query.Query) error {
			if q == first {
				hasRead()
				<-open
			}
			return nil
		}
		h.overwrite(1)
		if caching {
			for range 3 { // the last is in the result cache, until something is written
				h.right(h.question(hourZero, hourZero+7000),
					<-start(t.Context(), e, h.question(hourZero, hourZero+7000)))
			}
			h.overwrite(2)
		}
		running := start(t.Context(), e, first)
		<-read
		h.overwrite(3)
		var later []*query.Query
		var answers []<-chan answered
		for i := range int64(6) {
			q := h.question(hourZero+50*i, hourZero+7150-20*i)
			q.Trace = true
			later, answers = append(later, q), append(answers, start(t.Context(), e, q))
		}
		h.untilWaiting(e, len(later))
		release()
		if a := <-running; a.err != nil {
			t.Fatal(a.err)
		}
		traces := 0
		for i, q := range later {
			a := <-answers[i]
			h.right(q, a)
			for _, n := range a.stats.Trace.Children[0].Children {
				if n.Name == "shared execution" {
					traces++
				}
			}
		}
		if n := e.SharedAnswers(); n != int64(len(later)-1) || traces != len(later)-1 {
			t.Errorf("%d answers by another's execution, %d traces say so, want %d", n, traces, len(later)-1)
		}
		if n := executing(e); n != 0 {
			t.Errorf("%d plans are still held", n)
		}
	}
}

// What a query has of another's execution it holds until its own client has read it: it is reserved
// as if the query had executed itself.
func TestShared_reserves(t *testing.T) {
	h := newHeld(t)
	first := h.question(hourZero, hourZero+7000)
	read, hasRead := released()
	open, release := released()
	h.spending = func(_ context.Context, q *query.Query) error {
		if q == first {
			hasRead()
			<-open
		}
		return nil
	}
	pool := memory.New(64 << 20)
	running := start(t.Context(), h.reading, first)
	<-read
	var accounts []*memory.Account
	var answers []<-chan answered
	for range 4 {
		a := pool.Open(memory.Query)
		defer a.Close()
		accounts = append(accounts, a)
		answers = append(answers, start(memory.With(t.Context(), a), h.reading, h.question(hourZero, hourZero+7000)))
	}
	h.untilWaiting(h.reading, len(answers))
	release()
	if a := <-running; a.err != nil {
		t.Fatal(a.err)
	}
	for i, out := range answers {
		a := <-out
		if a.err != nil {
			t.Fatal(a.err)
		}
		points := 0
		for _, r := range a.results {
			points += r.Points.Len()
		}
		if least := int64(points) * merge.PointBytes; points == 0 || accounts[i].Held() < least {
			t.Errorf("%d bytes are held of an answer of %d points, want at least %d", accounts[i].Held(), points, least)
		}
	}
	if n := h.reading.SharedAnswers(); n != int64(len(answers)-1) {
		t.Errorf("%d answers by another's execution, want %d", n, len(answers)-1)
	}
}

// If the query that executes for others ends, another one executes; if it fails, each of the
// others executes for itself. Either way they get their answers.
func TestShared_leaderEnds(t *testing.T) {
	refusal := &operator.LimitError{What: operator.Points, Limit: 1}
	for name, fails := range map[string]bool{"its client leaves": false, "it is refused": true} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			e := h.reading
			first := h.question(hourZero, hourZero+7000)
			read, hasRead := released()
			open, release := released()
			leading := make(chan *query.Query, 1) // the first of the others that executes
			var led sync.Once
			var leader atomic.Pointer[query.Query]
			end := make(chan struct{})
			h.spending = func(ctx context.Context, q *query.Query) (err error) {
				if q == first {
					hasRead()
					<-open
					return nil
				}
				led.Do(func() { leader.Store(q); leading <- q })
				if leader.Load() != q {
					return nil
				}
				select {
				case <-end:
					return refusal
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			running := start(t.Context(), e, first)
			<-read
			type viewer struct {
				q      *query.Query
				leave  func()
				answer <-chan answered
			}
			var viewers []viewer
			for range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				q := h.question(hourZero, hourZero+7100)
				viewers = append(viewers, viewer{q, cancel, start(ctx, e, q)})
			}
			h.untilWaiting(e, len(viewers))
			release()
			<-running

			gone := <-leading
			i := slices.IndexFunc(viewers, func(v viewer) bool { return v.q == gone })
			if fails {
				close(end)
			} else {
				viewers[i].leave()
			}
			a := <-viewers[i].answer
			var limit *operator.LimitError
			if fails != errors.As(a.err, &limit) || !fails && !errors.Is(a.err, context.Canceled) {
				t.Errorf("the one that executed: error %v", a.err)
			}
			for k, v := range viewers {
				if k != i {
					h.right(v.q, <-v.answer)
				}
			}
			want := int64(2)
			if fails {
				want = 0
			}
			if n := e.SharedAnswers(); n != want {
				t.Errorf("%d answers by another's execution, want %d", n, want)
			}
			if n := executing(e); n != 0 {
				t.Errorf("%d plans are still held", n)
			}
		})
	}
}

// A query that waits leaves when its client does.
func TestShared_leaves(t *testing.T) {
	h := newHeld(t)
	e := h.reading
	running, release := h.running(e)

	ctx, leave := context.WithCancel(t.Context())
	left := start(ctx, e, h.question(hourZero, hourZero+7000))
	h.untilWaiting(e, 1)
	leave()
	if a := <-left; !errors.Is(a.err, context.Canceled) {
		t.Errorf("a client that left: error %v", a.err)
	}
	release()
	h.ended(e, running)
}

// A query that has waited for long is executed next to the one that it waited for.
func TestShared_patience(t *testing.T) {
	h := newHeld(t)
	e := h.reading
	e.waitsFor(time.Nanosecond)
	running, release := h.running(e)

	q := h.question(hourZero, hourZero+7000)
	h.right(q, <-start(t.Context(), e, q))
	release()
	h.ended(e, running)
}

// running starts a query that reads rows, and ends after release.
func (h *held) running(e *Engine) (running <-chan answered, release func()) {
	first := h.question(hourZero, hourZero+7000)
	read, hasRead := released()
	open, release := released()
	h.spending = func(_ context.Context, q *query.Query) error {
		if q == first {
			hasRead()
			<-open
		}
		return nil
	}
	running = start(h.Context(), e, first)
	<-read
	return running, release
}

// ended checks that a query has succeeded and that nothing is held for others.
func (h *held) ended(e *Engine, running <-chan answered) {
	h.Helper()
	if a := <-running; a.err != nil {
		h.Error(a.err)
	}
	if n := executing(e); n != 0 {
		h.Errorf("%d plans are still held", n)
	}
}

// What is deleted, may be incomplete, or belongs to a query with other sub-queries waits for no
// other query, and nobody waits for it.
func TestShared_not(t *testing.T) {
	h := newHeld(t)
	e := h.reading
	first := h.question(hourZero, hourZero+7000)
	read, hasRead := released()
	open, release := released()
	h.spending = func(_ context.Context, q *query.Query) error {
		if q == first {
			hasRead()
			<-open
		}
		return nil
	}
	running := start(t.Context(), e, first)
	<-read
	for name, change := range map[string]func(*query.Query){
		"delete":        func(q *query.Query) { q.Delete = true },
		"allow partial": func(q *query.Query) { q.AllowPartial = true },
		"two sub-queries": func(
			q *query.Query) {
			second := q.Queries[0]
			second.Index = 1
			q.Queries = append(q.Queries, second)
		},
		"other hours":  func(q *query.Query) { q.End += 3_600_000 },
		"another mode": func(q *query.Query) { q.Mode = "partial" },
	} {
		q := h.question(hourZero, hourZero+7000)
		change(q)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would wait for ever
		if a := <-start(ctx, e, q); a.err != nil {
			t.Errorf("%s: %v", name, a.err)
		}
		cancel()
	}
	release()
	<-running
	if n := e.SharedAnswers(); n != 0 {
		t.Errorf("%d answers by another's execution, want none", n)
	}
}

// Many viewers ask a store that is written to at the same time: what was acknowledged before an
// ask is in its answer.
func TestLaw_sharedOnStore(t *testing.T) {
	for _, kind := range opentest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			seed := seedtest.Of(t)
			b := newBoard(t, rand.New(rand.NewPCG(seed, 0)), kind.Open(t, boardTables...))
			var acknowledged atomic.Int64
			b.overwrite(1)
			acknowledged.Store(1)
			done := make(chan struct{})
			var viewers sync.WaitGroup
			for v := range 8 {
				e := []*Engine{b.caching, b.reading}[v%2]
				viewers.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-done:
							return
						default:
						}
						body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"max",`+
							`"downsample":"5m-max"}]}`,
							hourZero+50*(i%5), hourZero+7000)
						q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
						if err != nil {
							t.Error(err)
							return
						}
						want := acknowledged.Load()
						results, _, err := e.Run(t.Context(), q, Options{})
						if err != nil {
							t.Error(err)
							return
						}
						newest := int64(0)
						for k := range results[0].Points.Len() {
							if at, v := results[0].Points.At(k); at == (hourZero+600)*1000 {
								newest = int64(numberOf(v)) >> 32
							}
						}
						if newest < want {
							t.Errorf("an answer has write %d, want %d, which was acknowledged before it was asked for",
								newest, want)
						}
					}
				})
			}
			for v := int64(2); v <= 100; v++ {
				b.overwrite(v)
				acknowledged.Store(v)
				runtime.Gosched()
			}
			close(done)
			viewers.Wait()
			t.Log(strings.Join([]string{"shared:", fmt.Sprint(b.caching.SharedAnswers()),
				fmt.Sprint(b.reading.SharedAnswers())}, " "))
		})
	}
}
