package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// wall draws a query over all hours of the board that ends in the last of them.
func (b *board) wall() *query.Query {
	b.Helper()
	one := func(texts ...string) string { return texts[b.rng.IntN(len(texts))] }
	body := fmt.Sprintf(
		`{"start":%d,"end":%d,"msResolution":true,"showTSUIDs":true,"mode":%q,`+
			`"queries":[{"metric":"m","aggregator":%q,%s"rate":%v,"tags":%s}]}`,
		hourZero, hourZero+boardHours*3600-1-b.rng.IntN(3000), one("", "", "strict", "partial"),
		one("sum", "avg", "max", "none", "count", "p90"),
		one(``, `"downsample":"5m-avg",`, `"downsample":"1h-sum",`, `"downsample":"10m-sum-zero",`,
			`"downsample":"5m-avg-nan",`),
		b.rng.IntN(3) == 0, one(`{}`, `{"host":"*"}`, `{"dc":"a|b"}`))
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
	if err != nil {
		b.Fatalf("%s: %v", body, err)
	}
	return q
}

// putAt puts a point of a random series at a random time of an hour of the board.
func (b *board) putAt(hour int) {
	b.Helper()
	b.apply(b.pointAt(hour))
}

// pointAt draws what putAt puts.
func (b *board) pointAt(hour int) store.Mutation {
	one := func(n int) encoding.UID { return encoding.UID{0, 0, byte(1 + b.rng.IntN(n))} }
	tags := b.schema.AppendTags(nil,
		[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: one(3)}, {K: encoding.UID{0, 0, 2}, V: one(2)}})
	base := uint32(hourZero + 3600*hour)
	q, value := operatortest.Encode((int64(base)+int64(10*b.rng.IntN(360)))*1000,
		encoding.IntValue(int64(b.rng.IntN(100))-50))
	return store.Mutation{
		Row:       b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, base, tags),
		Family:    encoding.FamilyData,
		Qualifier: encoding.AppendQualifier(nil, q),
		Value:     value,
	}
}

// traced asks and returns the trace as text.
func (b *board) traced(q *query.Query) (Stats, string) {
	b.Helper()
	asked := *q
	asked.Trace = true
	stats := b.ask(&asked)
	text, err := json.Marshal(stats.Trace)
	if err != nil {
		b.Fatal(err)
	}
	return stats, string(text)
}

// continued asks and reports whether older hours came from memory and were continued.
func (b *board) continued(q *query.Query) (Stats, bool) {
	b.Helper()
	stats, text := b.traced(q)
	return stats, strings.Contains(text, "older hours from memory") && !strings.Contains(text, "again as a whole")
}

// While points are written to the last hour before every query, and now and then to an older one, the
// older hours come from memory, and the answer is the one that reading everything gives.
func TestStretch_living(t *testing.T) {
	total := 0
	for i := range 4 {
		seed := seedtest.Of(t) + 100*uint64(i)
		for rand.New(rand.NewPCG(seed,
			0)).IntN(3) == 0 { // newBoard would salt the rows; the store counts changes by hour only of others
			seed++
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			b := newBoard(t, rand.New(rand.NewPCG(seed, 0)), embedded(t))
			if i%2 == 1 {
				b.readSideBySide()
			}
			for hour := range boardHours { // every series goes on until the seam, mostly
				for range 60 {
					b.putAt(hour)
				}
			}
			walls := []*query.Query{b.wall(), b.wall(), b.wall(), b.wall()}
			continued := 0
			for range 60 {
				b.putAt(boardHours - 1)
				switch b.rng.IntN(20) {
				case 0:
					b.change()
				case 1:
					walls[b.rng.IntN(len(walls))] = b.wall()
				}
				if _, ok := b.continued(walls[b.rng.IntN(len(walls))]); ok {
					continued++
				}
			}
			t.Logf("%d of 60 answers had their older hours from memory", continued)
			total += continued
		})
	}
	if total < 10 {
		t.Errorf("%d answers had their older hours from memory, want at least 10, or the cases test too little", total)
	}
}

// While points are written to older hours before every query, no stretch is made: it would be
// useless.
func TestStretch_notInVain(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(6, 6)), embedded(t))
	for range 200 {
		b.putAt(boardHours - 2) // every series goes on until the seam
	}
	q := b.question(hourZero, hourZero+boardHours*3600-1)
	made := false
	for i := range 12 {
		if i < 6 {
			b.putAt(0)
		} else {
			b.putAt(boardHours - 1)
		}
		// The board asks twice without a write in between. The first ask is traced.
		_, text := b.traced(q)
		made = strings.Contains(text, "merge older hours") || strings.Contains(text, "older hours from memory")
		if i < 6 && made {
			t.Errorf("ask %d: %s, want no stretch of hours that change all the time", i, text)
		}
	}
	if !made {
		t.Error("no stretch once the older hours rest: this tests nothing")
	}
}

// A stretch is kept also where the answers of the parts that it was made of are too large.
func TestStretch_ofLargeParts(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t)) // without salt
	q := b.question(hourZero, hourZero+boardHours*3600-1)
	for range 200 {
		b.putAt(boardHours - 2) // every series goes on until the seam
	}
	// The points of the older hours take more than an answer may, and the groups' do not.
	cache := resultcache.New(8*3<<10, nil)
	cfg := b.caching.cfg
	cfg.Exec = dispatch.New(dispatch.Config{Store: b.store, ResultCache: cache})
	b.caching = New(cfg)

	found := 0
	for range 6 {
		b.putAt(boardHours - 1)
		if _, ok := b.continued(q); ok {
			found++
		}
	}
	if c := cache.Counts(); found == 0 || c.Kept != 1 {
		t.Errorf(
			"the older hours came from memory %d times, and %d answers are kept; want some, and the stretch alone",
			found, c.Kept)
	}
}

// A stretch that the result cache cannot hold is not made again and again.
func TestStretch_tooLarge(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t))
	for range 200 {
		b.putAt(boardHours - 2) // every series goes on until the seam
	}
	cfg := b.caching.cfg
	cfg.Exec = dispatch.New(dispatch.Config{
		Store:       b.store,
		ResultCache: resultcache.New(8<<10, nil),
	}) // one answer may take 1 KiB
	b.caching = New(cfg)

	q := b.question(hourZero, hourZero+boardHours*3600-1)
	var made []int
	for i := range 12 {
		b.putAt(boardHours - 1)
		if _, text := b.traced(q); strings.Contains(text, "merge older hours") {
			made = append(made, i)
		}
	}
	if len(made) == 0 || len(made) > 3 {
		t.Errorf("made at the asks %v, want at some, and at most %d", made, 3)
	}
}

// Of a great many series no stretch is made where their hours are read side by side: it would take
// more memory than the query.
func TestStretch_manySeries(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t)) // without salt
	for range 200 {
		b.putAt(boardHours - 2) // every series goes on until the seam
	}
	for _, c := range []struct {
		most int64
		want bool
	}{{3, false}, {6, true}} { // there are 6 series
		b.readSideBySide()
		b.caching.stages = stage.New(stage.Config{
			Exec:           b.caching.cfg.Exec,
			Log:            b.caching.cfg.Log,
			MaxOlderSeries: c.most,
		})
		q := b.question(hourZero, hourZero+boardHours*3600-1)
		made := false
		for range 6 {
			b.putAt(boardHours - 1)
			_, text := b.traced(q)
			made = made || strings.Contains(text, "merge older hours") ||
				strings.Contains(text, "older hours from memory")
		}
		if made != c.want {
			t.Errorf("stretches of up to %d series: made is %t, want %t", c.most, made, c.want)
		}
	}
}

// A query over its limit of points is refused also if its older hours come from memory: both sides
// of the seam count together.
func TestStretch_budget(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(5, 5)), embedded(t))
	for range 200 {
		b.putAt(boardHours - 2) // every series goes on until the seam
	}
	q := b.question(hourZero, hourZero+boardHours*3600-1)
	points, ok := int64(0), false
	again := b.pointAt(boardHours - 1)
	for range 8 {
		b.apply(again)
		var stats Stats
		stats, ok = b.continued(q)
		points = stats.Points
	}
	if !ok || points == 0 {
		t.Fatalf("%d points: the older hours do not come from memory", points)
	}

	for _, most := range []int64{points, points - 1} {
		b.budget = func(context.Context, *query.Query, *query.SubQuery) operator.Budget {
			return operator.NewBudget(most, 0)
		}
		b.apply(again) // or the whole answer would come from memory
		var limit *operator.LimitError
		if _, _, err := b.caching.Run(t.Context(), q, Options{}); errors.As(err, &limit) != (most < points) {
			t.Errorf("%d points, at most %d: error %v, want a refusal if they are too many", points, most, err)
		}
	}
}

// unproven is a store that proves nothing.
type unproven struct{ store.Store }

func (u unproven) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(u.Version)}
}

func (unproven) Version(context.Context, string, string, store.KeyRange) (string, error) {
	return "", errors.New("clocks are wrong")
}

// The trace says why the store could prove nothing.
func TestStretch_unproven(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(1, 0)), unproven{embedded(t)})
	for hour := range boardHours {
		b.putAt(hour)
	}
	q, err := query.Parser{Now: time.Now()}.JSON(fmt.Appendf(nil,
		`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"sum"}]}`, hourZero, hourZero+boardHours*3600-1))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, text := b.traced(q); strings.Contains(text, "answered from memory") ||
			strings.Contains(text, "from memory, merged") {
			t.Errorf("trace %s: want nothing from memory", text)
		}
	}
	if _, text := b.traced(q); !strings.Contains(text, "read: clocks are wrong") {
		t.Errorf("trace %s: want the reason why nothing is proven", text)
	}
}
