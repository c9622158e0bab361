package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// document is one of n panels of text.
func document(title string, n int) []byte {
	var panels []string
	for i := range n {
		panels = append(panels,
			fmt.Sprintf(`{"id":"p%d","type":"text","text":"hello","place":{"x":0,"y":%d,"w":6,"h":1}}`, i, i))
	}
	return fmt.Appendf(nil, `{"form":1,"title":%q,"panels":[%s]}`, title, strings.Join(panels, ","))
}

func TestCheck(t *testing.T) {
	panel := func(rest string) string {
		return `{"form":1,"panels":[{"id":"a","place":{"x":0,"y":0,"w":6,"h":4},` + rest + `}]}`
	}
	f := func(document, fault string) {
		t.Helper()
		_, err := Check([]byte(document))
		switch {
		case fault == "" && err != nil:
			t.Errorf("%.200s: %v", document, err)
		case fault != "" && (err == nil || !strings.Contains(err.Error(), fault)):
			t.Errorf("%.200s: error %v, want %q", document, err, fault)
		}
	}
	f(`{"form":1,"panels":[]}`, "")
	f(panel(`"type":"lines","queries":["avg:m",{"m":"sum:m{host=*}","right":true},`+
		`{"aggregator":"sum","metric":"m"}],"formulas":[{"expr":"a / b"}]`), "")
	f(panel(`"type":"heat map of a later release","what":[1,2,{"queries":0}]`), "")
	f(`{"form":1,"panels":[],"links":[{"name":"host"}],"range":{"from":"1h-ago","to":""}}`, "")
	f(panel(`"type":"text","text":"<script>alert(1)</script>"`), "") // the page shows it as text
	f(string(document("all", MaxPanels)), "")

	f(`{"form":2,"panels":[]}`, "form: got 2, want 1: a later release made this document")
	f(`{"form":0,"panels":[]}`, "form: got 0, want 1")
	f(`{"Form":1,"panels":[]}`, "form: it is missing")
	f(`{"form":1}`, "panels: it is missing")
	f(`{"form":1,"panels":null}`, "panels: it is missing")
	f(`{"form":1,"panels":[null]}`, "panels[0].id: it is missing")
	f(`[]`, "want a JSON object")
	f(`null`, "want a JSON object")
	f(`{"form":1,"panels":[]} {}`, "want a JSON object")
	f("{\"form\":1,\"title\":\"\xff\",\"panels\":[]}", "want UTF-8")
	f(`{"form":1,"panels":[],"title":"`+strings.Repeat("ü", 201)+`"}`, "title: got 201 characters")
	f(`{"form":1,"panels":[],"range":{"from":7}}`, "range.from")
	f(`{"form":1,"panels":[],"tags":"prod"}`, "tags: json")
	f(`{"form":1,"panels":[],"tags":["`+strings.Repeat("ü", 41)+`"]}`, "tags[0]: got 41 characters, want 1 to 40")
	f(`{"form":1,"panels":[],"tags":["prod",""]}`, "tags[1]: got 0 characters")
	f(`{"form":1,"panels":[],"tags":["a"`+strings.Repeat(`,"a"`, 10)+`]}`, "tags: got 11, want at most 10")
	f(string(document("all", MaxPanels+1)), "panels: got 501, want at most 500")
	f(`{"form":1,"title":"`+strings.Repeat("x", MaxBytes)+`","panels":[]}`, "want at most 1048576")
	f(strings.Repeat("[", 500_000), "want a JSON object")
	f(`{"form":1,"panels":[{"id":"a","type":"text","place":{"x":7,"y":0,"w":6,"h":1}}]}`, "panels[0].place: got x 7")
	f(`{"form":1,"panels":[{"id":"a","type":"text","place":{"x":9223372036854775807,"y":0,"w":6,"h":1}}]}`,
		"place: got x")
	f(`{"form":1,"panels":[{"id":"a","type":"text","place":{"x":0,"y":0,"w":6}}]}`, "place.h: it is missing")
	f(`{"form":1,"panels":[{"id":"a","type":"text","place":{"x":0.5,"y":0,"w":6,"h":1}}]}`, "place.x")
	f(`{"form":1,"panels":[{"id":"a\" onclick=x","type":"text","place":{"x":0,"y":0,"w":6,"h":1}}]}`, "id: got")
	f(`{"form":1,"panels":[{"id":"a","type":"","place":{"x":0,"y":0,"w":6,"h":1}}]}`, "type: got 0 bytes")
	f(strings.Replace(string(document("twice", 2)), "p1", "p0", 1), "panels[1].id: p0 is the id of another panel")
	f(panel(`"type":"lines","queries":[7]`), "queries[0]: want a text or an object")
	f(panel(`"type":"lines","queries":[null]`), "queries[0]: want a text or an object")
	f(panel(`"type":"lines","queries":["`+strings.Repeat("m", 4097)+`"]`), "queries[0]: got 4097 bytes")
	f(panel(`"type":"number","queries":[`+strings.Repeat(`"m",`, 26)+`"m"]`), "queries: got 27")
	f(panel(`"type":"table","formulas":[{"expr":1}]`), "formulas[0].expr")
}

// TestCheck_variables: the page (variables.js) says the same of the same documents; its test has
// the same list.
func TestCheck_variables(t *testing.T) {
	data, err := os.ReadFile("testdata/variables.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Document json.RawMessage
		Fault    string // what the gateway says, "" for nothing
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 30 {
		t.Errorf("%d documents, want those of the list", len(cases))
	}
	for _, c := range cases {
		_, err := Check(c.Document)
		if c.Fault == "" && err != nil || c.Fault != "" && (err == nil || !strings.Contains(err.Error(), c.Fault)) {
			t.Errorf("%s: error %v, want %q", c.Document, err, c.Fault)
		}
	}

	many := func(n int) string {
		var variables []string
		for i := range n {
			variables = append(variables, fmt.Sprintf(`{"name":"v%d","metric":"m","tagk":"k"}`, i))
		}
		return `{"form":1,"panels":[],"variables":[` + strings.Join(variables, ",") + `]}`
	}
	if _, err := Check([]byte(many(maxVariables))); err != nil {
		t.Error(err)
	}
	if _, err := Check([]byte(many(maxVariables + 1))); err == nil ||
		!strings.Contains(err.Error(), "variables: got 21, want at most 20") {
		t.Errorf("error %v, want one of 21 variables", err)
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"web", "a", "0", "web-servers_2.eu", strings.Repeat("n", 64)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", "Web", ".x", "-x", "a/b", "a b", "..", "ä", "a\x00", strings.Repeat("n", 65), "<b>",
	} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken, want an error", name)
		}
	}
}

// open returns a store of dashboards whose clock moves by a second with each look.
func open(t *testing.T) (*Store, store.Cells) {
	t.Helper()
	db := opentest.Embedded(t, opentest.Table("state", Family))
	var mu sync.Mutex
	now := time.Unix(1356998400, 0)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
	return &Store{Cells: db, Table: "state", Now: clock}, db
}

// put saves and returns the version.
func put(t *testing.T, s *Store, name string, from int64, document []byte) int64 {
	t.Helper()
	v, err := s.Put(t.Context(), name, from, document, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	return v.Version
}

// conflict checks that a change is refused because of another version, and that nothing changed.
func conflict(t *testing.T, err error, now int64) {
	t.Helper()
	var c *ConflictError
	if !errors.As(err, &c) || c.Now.Version != now {
		t.Errorf("got %v, want a conflict with version %d", err, now)
	}
}

// Each save is a version. One made from a version other than the one in force gets a ConflictError and changes nothing.
func TestStore_versions(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	if _, _, err := s.Get(ctx, "web", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing saved: %v, want ErrNotFound", err)
	}
	_, err := s.Put(ctx, "web", 3, document("new", 1), "")
	conflict(t, err, 0)

	put(t, s, "web", 0, document("one", 1))
	put(t, s, "web", 1, document("two", 2))
	for _, from := range []int64{0, 1, 3} {
		_, err := s.Put(ctx, "web", from, document("other", 1), "")
		conflict(t, err, 2)
		conflict(t, s.Delete(ctx, "web", from, ""), 2)
	}
	for number, title := range map[int64]string{0: "two", 1: "one", 2: "two"} {
		got, v, err := s.Get(ctx, "web", number)
		if err != nil || !strings.Contains(string(got), title) || v.Title != title || v.By != "somebody" {
			t.Errorf("version %d: %s, %+v, %v, want %s", number, got, v, err, title)
		}
	}

	put(t, s, "db", 0, document("db", 1))
	all, err := s.List(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "db" || all[1].Title != "two" || all[1].Panels != 2 ||
		all[1].Row != "" {
		t.Errorf("list %+v, %v", all, err)
	}
}

// What is deleted is in no list, and its number is given to nothing else.
func TestStore_delete(t *testing.T) {
	s, _ := open(t)
	ctx := t.Context()
	put(t, s, "web", 0, document("one", 1))
	if err := s.Delete(ctx, "web", 1, "somebody"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(ctx, "web", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted: %v, want ErrNotFound", err)
	}
	if all, err := s.List(ctx); len(all) != 0 || err != nil {
		t.Errorf("list %v, %v, want none", all, err)
	}
	for _, from := range []int64{1, 2} { // the second is the deletion
		_, err := s.Put(ctx, "web", from, document("stale", 1), "")
		conflict(t, err, 2)
		conflict(t, s.Delete(ctx, "web", from, ""), 2)
	}
	if got := put(t, s, "web", 0, document("again", 1)); got != 3 {
		t.Errorf("version %d, want 3", got)
	}
	if got, _, err := s.Get(ctx, "web", 1); err != nil || !strings.Contains(string(got), "one") {
		t.Errorf("version 1: %s, %v, want it kept", got, err)
	}
}

// rows returns the number of documents in the table.
func rows(t *testing.T, cells store.Cells) (n int) {
	t.Helper()
	scan := store.Scan{Table: "state", Start: []byte(documentPrefix), Stop: after(documentPrefix)}
	for _, err := range store.Rows(t.Context(), cells, scan) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// The last 20 versions are kept, and the documents of others are removed, except for those of saves
// under way.
func TestStore_keeps(t *testing.T) {
	s, cells := open(t)
	for i := range int64(25) {
		put(t, s, "web", i, document(fmt.Sprint(i), 1))
	}
	put(t, s, "web2", 0, document("a name that begins with the other", 1))
	// Somebody else is about to save version 27.
	underWay := store.Mutation{
		Kind:      store.Put,
		Row:       []byte(documentKey("web", 27)),
		Family:    Family,
		Qualifier: []byte(documentColumn),
		Value:     document("27", 1),
	}
	if err := cells.Apply(t.Context(), "state", []store.Mutation{underWay}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "web", 25, document("last", 1))
	if got := rows(t, cells); got != Kept+2 {
		t.Errorf("%d documents, want those that are kept, one of web2, and the one under way: %d", got, Kept+2)
	}
	versions, err := s.Versions(t.Context(), "web")
	if err != nil || len(versions) != Kept || versions[0].Version != 26 || versions[19].Version != 7 {
		t.Errorf("versions %v, %v", versions, err)
	}
	if _, _, err := s.Get(t.Context(), "web", 6); !errors.Is(err, ErrNotFound) {
		t.Errorf("version 6: %v, want ErrNotFound", err)
	}
}

// When many writers save at once, each version belongs to one of them, and all others get a ConflictError. Everything
// that was acknowledged is in the history.
func TestStore_concurrent(t *testing.T) {
	s, cells := open(t)
	var mu sync.Mutex
	byVersion := map[int64]string{}
	var work sync.WaitGroup
	for writer := range 8 {
		work.Go(func() {
			for i := range 2 {
				from := int64(0)
				if _, v, err := s.Get(t.Context(), "web", 0); err == nil {
					from = v.Version
				}
				title := fmt.Sprintf("%d-%d", writer, i)
				v, err := s.Put(t.Context(), "web", from, document(title, 1), "")
				var told *ConflictError
				if err != nil && !errors.As(err, &told) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					if other, twice := byVersion[v.Version]; twice {
						t.Errorf("version %d is %s and %s", v.Version, other, title)
					}
					byVersion[v.Version] = title
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	for version, title := range byVersion {
		if _, v, err := s.Get(t.Context(), "web", version); err != nil || v.Title != title {
			t.Errorf("version %d: %+v, %v, want %s", version, v, err, title)
		}
	}
	if got := rows(t, cells); got != len(byVersion) {
		t.Errorf("%d documents of %d versions", got, len(byVersion))
	}
}

// lossy answers a compare-and-put with an error, after it was executed or instead.
type lossy struct {
	store.Cells
	executes bool
}

func (*lossy) Features() store.Features { return store.Features{} }

var errLost = errors.New("the reply is lost")

func (l *lossy) CompareAndPut(
	ctx context.Context, table string, cell store.CellKey, expected, value []byte,
) (bool, error) {
	if l.executes {
		if _, err := l.Cells.CompareAndPut(ctx, table, cell, expected, value); err != nil {
			return false, err
		}
	}
	return false, errLost
}

// A save whose reply is lost is a success if it was one, and else an error; in neither case is its
// document removed, which the store may come to need.
func TestStore_lostReply(t *testing.T) {
	for _, executes := range []bool{true, false} {
		s, cells := open(t)
		s.Cells = &lossy{cells, executes}
		_, err := s.Put(t.Context(), "web", 0, document("one", 1), "")
		if executes && err != nil || !executes && !errors.Is(err, errLost) {
			t.Errorf("executed %t: %v", executes, err)
		}
		if got := rows(t, cells); got != 1 {
			t.Errorf("executed %t: %d documents, want 1", executes, got)
		}
	}
}

// Without the table every call reports what is missing.
func TestStore_noTable(t *testing.T) {
	s, _ := open(t)
	s.Table = "other"
	_, list := s.List(t.Context())
	_, _, get := s.Get(t.Context(), "web", 0)
	_, put := s.Put(t.Context(), "web", 0, document("one", 1), "")
	for _, err := range []error{list, get, put} {
		if !errors.Is(err, store.ErrNoTable) ||
			!strings.Contains(err.Error(), "table other (DOWNPOUR_TABLE_STATE), which -create-tables makes") {
			t.Errorf("got %v", err)
		}
	}
}
