package telnet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/write"
)

// unprepared are names that have no UID until they are prepared or assigned. It records in which
// steps they get one.
type unprepared struct {
	names
	mu       sync.Mutex
	known    map[string]bool
	prepared []string
}

func (n *unprepared) Cached(kind encoding.UIDKind, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[kind.String()+" "+name]
}

func (n *unprepared) Prepare(_ context.Context, kind encoding.UIDKind, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.prepared = append(n.prepared, kind.String()+": "+strings.Join(names, " "))
	for _, name := range names {
		n.known[kind.String()+" "+name] = true
	}
}

func (n *unprepared) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	u, err := n.Resolve(ctx, kind, name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && !n.known[kind.String()+" "+name] {
		n.prepared = append(n.prepared, kind.String()+": "+name)
		n.known[kind.String()+" "+name] = true
	}
	return u, err
}

// The new names of lines that have arrived are prepared together, once, but not those of lines
// that will be refused, nor those behind another command.
func TestPrepareNames(t *testing.T) {
	prepared := func(auto write.Auto, text string) []string {
		t.Helper()
		n := &unprepared{
			names: names{ids: map[string]uint64{}},
			known: map[string]bool{"metrics old": true, "tagk a": true},
		}
		m := &table{rows: map[string][]byte{}}
		schema := encoding.DefaultSchema()
		series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: n, Auto: auto})
		w := write.New(write.Config{Schema: schema, Table: "tsdb", Form: write.Appended, Shards: 2}, m, series)
		b := &bench{T: t, store: m, writer: w}
		b.serve(NewServer(Config{Writer: w, Commands: commands, CountPuts: b.count}))

		b.say(text)
		b.counts.Lock()
		defer b.counts.Unlock()
		if got, want := len(b.store.points(t)), b.counts.ok; got != want || want == 0 {
			t.Errorf("%.100q: %d points stored, want the %d counted", text, got, want)
		}
		return n.prepared
	}
	f := func(auto write.Auto, text string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, prepared(auto, text)); diff != "" {
			t.Errorf("%.100q: %s", text, diff)
		}
	}
	all := write.Auto{Metrics: true, TagKs: true, TagVs: true}
	put := func(metric string, tags ...string) string {
		return "put " + metric + " 1356998400 1 " + strings.Join(tags, " ") + "\n"
	}

	f(all, put("old", "a=1"), "tagv: 1")
	f(all, put("m", "a=1")+put("m", "a=2")+put("m", "b=2", "a=1"), "metrics: m m m", "tagv: 1 2 2 1",
		"tagk: b") // b is alone: Assign takes it
	f(all, put(
		"old", "a=1")+"put old x 1 a=2\nput old 1356998400 x a=3\nput old 1356998400 1 a=4 a=5\nput old 1356998400 "+
		"1 a=\xff!\nput old 1356998400\n"+put("old", "a=6"),
		"tagv: 1 6")
	f(all, put("old", "a=1")+put("old", "a=2")+"version\n"+put("old", "a=3")+put("old", "a=4"), "tagv: 1 2",
		"tagv: 3 4")
	f(all, put("old", "a=1")+put("old", "a=2")+"put old 1356998400 1 a=3", "tagv: 1 2") // the last line has no end
	f(all, put("old", "a=1")+put("old", "a=2")+put("old", "a=x!")+put("old", "a=3"), "tagv: 1 2 3")

	// A name that gets no UID on put must be known.
	f(write.Auto{
		TagVs: true,
	}, put("old", "a=1")+put("unknown.metric", "a=2")+put("old", "unknown=3")+put("old", "a=4"), "tagv: 1 4")

	// Of many lines each is looked at once, so many at a time.
	var lines strings.Builder
	var want, got []string
	const most = 1 + 512 // the line at hand, and those that write.PrepareNames looks at
	for i := range 5 * most {
		lines.WriteString(put("old", fmt.Sprint("a=", i)))
		want = append(want, strconv.Itoa(i))
	}
	for _, step := range prepared(all, lines.String()) {
		words := strings.Fields(strings.TrimPrefix(step, "tagv: "))
		if len(words) > most {
			t.Errorf("%d names prepared at once, want at most %d", len(words), most)
		}
		got = append(got, words...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
