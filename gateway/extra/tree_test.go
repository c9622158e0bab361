package extra_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/trees"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

func withTrees(cfg *gateway.Config) {
	gateway.SettingsOf[trees.Settings](cfg).TreeProcessing = true
}

// plant makes tree 1, whose rules take the tag host and then the metric.
func plant(b *bench) {
	b.Helper()
	for _, call := range [][2]string{
		{"api/tree", `{"name":"t","enabled":true,"storeFailures":true}`},
		{"api/tree/rules", `[{"treeId":1,"type":"TAGK","field":"host"},{"treeId":1,"level":1,"type":"METRIC"}]`},
	} {
		if a := b.Post(call[0], call[1]); a.Status/100 != 2 {
			b.Fatalf("%s: %d %s", call[0], a.Status, a.Body)
		}
	}
}

// Invalid requests to the routes of trees get an error below 500 that says what is wrong.
func TestTree_hostile(t *testing.T) {
	b := open(t, withTrees)
	plant(b)
	b.Put("m 1356998400 1 host=h")
	f := func(status int, message, method, path, body string) {
		t.Helper()
		a := b.Do(method, path, strings.NewReader(body))
		if status < 400 && (a.Status != status || !strings.Contains(a.Body, message)) {
			t.Errorf("%s %s %.200s: %d %.300s, want %d with %s", method, path, body, a.Status, a.Body, status, message)
		} else if status >= 400 {
			b.Refused(a, status, message)
		}
	}
	long := strings.Repeat("x", 2000)

	// Trees.
	for _, body := range []string{
		`[]`, `[1]`, `"x"`, `{"name":{"a":1}}`, `{"rules":{"0":{}},"name":"n"}`, `{"name":`,
		strings.Repeat("[", 100_000), "\x00",
	} {
		f(400, "Unable to parse the given JSON", "POST", "api/tree", body)
	}
	f(400, "Tree was missing the name", "POST", "api/tree", `null`)
	f(400, "Unable to parse 'tree' value", "POST", "api/tree", `{"treeId":"x"}`)
	f(400, "Unable to parse 'tree' value", "POST", "api/tree", `{"treeId":99999999999}`)
	f(400, "Tree was missing the name", "POST", "api/tree", `{"treeId":null,"name":null}`)
	f(400, "Tree was missing the name", "POST", "api/tree", `{"treeId":-5}`)
	f(400, "Invalid Tree ID", "POST", "api/tree", `{"treeId":65536,"name":"n"}`)
	f(400, "The name has 2000 bytes, want at most 1024", "POST", "api/tree", `{"name":"`+long+`"}`)
	f(400, "The notes has 20000 bytes", "PUT", "api/tree", `{"treeId":1,"notes":"`+strings.Repeat("n", 20000)+`"}`)
	f(413, "Request body of more than", "POST", "api/tree", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`)
	f(200, `"name":"t"`, "GET", "api/tree", `{"treeId":"1"}`)
	f(405, "Unknown or unsupported method override value", "GET", "api/tree?method_override=patch", "")
	f(400, "Unsupported HTTP request method", "PATCH", "api/tree", "")
	f(304, "", "PUT", "api/tree?treeid=1", "")

	// Rules.
	f(400, "Unable to parse the given JSON", "POST", "api/tree/rule", `{"treeId":1,"level":1e99}`)
	f(400, "Unable to parse the given JSON", "POST", "api/tree/rules", `{"treeId":1}`)
	f(400, "Missing tree rules", "PUT", "api/tree/rules", `null`)
	f(400, "Unrecognized rule type", "POST", "api/tree/rules", `[{"treeId":1,"type":"x"}]`)
	f(400, "300 rules, want at most 256", "PUT", "api/tree/rules",
		`[`+strings.Repeat(`{"treeId":1,"type":"METRIC"},`, 299)+`{"treeId":1}]`)
	f(400, "it uses look-ahead", "POST", "api/tree/rule", `{"treeId":1,"level":2,"type":"METRIC","regex":"(?=a)"}`)
	f(400, "instructions, more than 5000", "POST", "api/tree/rule",
		`{"treeId":1,"level":2,"type":"METRIC","regex":"`+strings.Repeat("[a-z]{1000}", 6)+`"}`)
	f(400, "it matches an empty text", "POST", "api/tree/rule",
		`{"treeId":1,"level":2,"type":"METRIC","separator":"|"}`)
	f(400, "Unable to parse the 'level' parameter", "GET", "api/tree/rule?treeid=1&level=x&order=0", "")
	f(400, "Unable to parse the 'type' parameter", "GET",
		"api/tree/rule?treeid=1&level=0&order=0&type=x&method_override=post", "")
	f(400, "Negative levels are not allowed", "GET",
		"api/tree/rule?treeid=1&level=-1&order=0&type=metric&method_override=post", "")
	f(400, "Unable to parse the given JSON", "POST", "api/tree/rule", `{"treeId":1,"level":99999999999}`)
	f(200, `"field":"5","regex":""`, "POST", "api/tree/rule",
		`{"treeId":"1","level":"7","type":"TAGK","field":5,"regex":null}`)
	f(204, "", "DELETE", "api/tree/rule", `{"treeId":1,"level":7}`)
	f(304, "", "POST", "api/tree/rule", `{"treeId":1,"level":0,"order":0}`)
	f(204, "", "POST", "api/tree/rules",
		`[{"treeId":1,"type":"TAGK","field":"host"},{"treeId":1,"level":1,"type":"METRIC"}]`)

	// Branches and series.
	f(400, "contains illegal character for hexBinary", "GET", "api/tree/branch?branch=zzzz", "")
	f(404, "Unable to locate branch '000101' for tree '1'", "GET", "api/tree/branch?branch=000101", "")
	f(404, "Unable to locate branch", "GET", "api/tree/branch?branch="+strings.Repeat("00", 8000), "")
	f(400, "Missing or invalid tree ID", "GET", "api/tree/branch?treeid=70000", "")
	f(404, "This endpoint is not supported", "POST", "api/tree/x/y", "{}")
	f(400, "Unsupported HTTP request method", "DELETE", "api/tree/notmatched?treeid=1", "")
	f(400, "UID was empty", "GET", "api/tree/test?treeid=1&tsuids=,000001", "")
	f(400, "Missing or invalid Tree ID", "POST", "api/tree/test", `{"treeId":"1","tsuids":["00"]}`)
	f(400, "Unable to convert the given data to a list", "POST", "api/tree/test", `{"treeId":1,"tsuids":[1]}`)
	f(413, "More than 1000 TSUIDs", "POST", "api/tree/test",
		`{"treeId":1,"tsuids":[`+strings.Repeat(`"00",`, 1500)+`"00"]}`)
	f(200, `"Unable to locate TSUID meta data"`, "POST", "api/tree/test",
		`{"treeId":1,"tsuids":["`+strings.Repeat("00", 5000)+`"]}`)
	f(200, `"displayName":"m"`, "GET", "api/tree/test?treeid=1&tsuids=000001000001000001,", "")

	f(200, `"displayName":"h"`, "GET", "api/tree/branch?treeid=1", "")
}

// A trial of rules reserves the memory that its series may need; one of too many series is refused.
func TestTree_testMemory(t *testing.T) {
	b := open(t, withTrees)
	plant(b)
	rules := make([]string, 16) // long names: a branch has the names of all levels above it
	for i := range rules {
		rules[i] = fmt.Sprintf(`{"treeId":1,"level":%d,"type":"METRIC","displayFormat":"%d%s"}`,
			i, i, strings.Repeat("{tsuid}", 27))
	}
	if a := b.Post("api/tree/rules", "["+strings.Join(rules, ",")+"]"); a.Status/100 != 2 {
		t.Fatalf("rules: got %d %s, want success", a.Status, a.Body)
	}
	var lines, tsuids []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("m 1356998400 1 host=h%d", i))
		tsuids = append(tsuids, fmt.Sprintf("000001000001%06X", i+1))
	}
	b.Put(lines...)
	test := func(tsuids []string) answer {
		return b.Post("api/tree/test", `{"treeId":1,"tsuids":["`+strings.Join(tsuids, `","`)+`"]}`)
	}
	if a := test(tsuids[:1]); a.Status != http.StatusOK || !strings.Contains(a.Body, `"messages"`) {
		t.Errorf("one series: got %d %.300s, want the messages of a trial", a.Status, a.Body)
	}
	b.Refused(test(tsuids), http.StatusRequestEntityTooLarge, "ask for fewer TSUIDs")
	b.Settled()
}

// With trees switched on, series that are put by telnet or HTTP are in the trees when a client
// requests the trees from the same gateway. While the store fails, the series wait, and the trees are not shown.
func TestTree_puts(t *testing.T) {
	for _, on := range []bool{true, false} {
		b := open(t, func(cfg *gateway.Config) { gateway.SettingsOf[trees.Settings](cfg).TreeProcessing = on })
		plant(b)
		b.Put("m.a 1356998400 1 host=h")
		if a := b.Post("api/put",
			`{"metric":"m.b","timestamp":1356998400,"value":1,"tags":{"host":"h"}}`); a.Status != http.StatusNoContent {
			t.Fatalf("put: got %d %s, want 204", a.Status, a.Body)
		}
		a := b.Get("api/tree/branch?branch=000100000068")
		if on && (a.Status != 200 || !strings.Contains(a.Body, `"m.a"`) || !strings.Contains(a.Body, `"m.b"`)) ||
			!on && a.Status != 404 {
			t.Errorf("switched on %t: %d %s", on, a.Status, a.Body)
		}
	}

	b := open(t, withTrees)
	plant(b)
	b.Get("api/uid/assign?metric=made&tagk=host&tagv=h")
	if a := b.Post("api/uid/tsmeta?m=made{host=h}&create=true", `{"notes":"n"}`); a.Status != http.StatusOK {
		t.Fatalf("TSMeta: got %d %s, want 200", a.Status, a.Body)
	}
	if a := b.Get("api/tree/branch?branch=000100000068"); a.Status != 200 || !strings.Contains(a.Body, `"made"`) {
		t.Errorf("got %d %s, want the series that has a TSMeta only", a.Status, a.Body)
	}

	b = open(t, withTrees)
	plant(b)
	b.Store.Set(faultstore.Rule{
		Op:    faultstore.Scan,
		Table: "tsdb-tree",
		Err:   fmt.Errorf("no luck: %w", store.ErrUnavailable),
	})
	b.Put("m.a 1356998400 1 host=h")
	b.Refused(b.Get("api/tree/branch?branch=000100000068"), http.StatusFailedDependency, "no luck")
	b.Store.Set()
	if a := b.Get("api/tree/branch?branch=000100000068"); a.Status != 200 || !strings.Contains(a.Body, `"m.a"`) {
		t.Errorf("store in order again: got %d %s, want m.a", a.Status, a.Body)
	}

	// Only the first scan of the tree table fails: branches and lists could be read, but are not
	// shown, because a series that was put before is not in its tree.
	for i, path := range []string{
		"api/tree/branch?branch=000100000068", "api/tree/notmatched?treeid=1", "api/tree/collisions?treeid=1",
	} {
		b.Store.Set(faultstore.Rule{
			Op:    faultstore.Scan,
			Table: "tsdb-tree",
			Nth:   1,
			Err:   fmt.Errorf("no luck: %w", store.ErrUnavailable),
		})
		b.Put(fmt.Sprintf("m.c%d 1356998400 1 host=h", i))
		b.Refused(b.Get(path), http.StatusFailedDependency, "no luck")
	}
	b.Store.Set()
	if a := b.Get("api/tree/branch?branch=000100000068"); a.Status != 200 || !strings.Contains(a.Body, `"m.c2"`) {
		t.Errorf("store in order again: got %d %s, want m.c2", a.Status, a.Body)
	}
}

// The commands for trees work on the store without a gateway, and print what they did.
func TestTree_tools(t *testing.T) {
	cfg := config(0)
	withTrees(cfg)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	points := filepath.Join(t.TempDir(), "points")
	if err := os.WriteFile(points, []byte("m.a 1356998400 1 host=h\nm.b 1356998400 1 host=h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(change func(*tools.Settings), args ...string) string {
		t.Helper()
		settings, err := tools.ForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(&settings)
		}
		var out strings.Builder
		env := &tools.Env{
			Settings: settings,
			Out:      &out,
			Err:      &out,
			Open:     func(bool) (tools.Store, error) { return unclosed{st}, nil },
		}
		i := slices.IndexFunc(tools.Commands(), func(c tools.Command) bool { return c.Name == args[0] })
		if err := tools.Commands()[i].Run(t.Context(), env, args[1:]); err != nil {
			out.WriteString("error: " + strings.Split(err.Error(), "\n")[0])
		}
		return out.String()
	}
	check := func(want string, change func(*tools.Settings), args ...string) {
		t.Helper()
		if got := run(change, args...); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}

	check("0 series, 0 enabled trees", nil, "uid", "treesync")
	check("", nil, "import", "-no-state", points) // before there is a tree
	b := serve(t, cfg, st)
	plant(b)
	check("2 series, 1 enabled trees: 2 leaves are new, 0 were there, 0 collided, 0 were not matched",
		nil, "uid", "treesync")
	check("2 series, 1 enabled trees: 0 leaves are new, 2 were there", nil, "uid", "treesync")
	if err := os.WriteFile(points, []byte("m.c 1356998400 1 host=h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("", nil, "import", "-no-state", points) // whose series are now put into the tree
	check("3 series, 1 enabled trees: 0 leaves are new, 3 were there", nil, "uid", "treesync")
	check("Tree processing is disabled", func(s *tools.Settings) { s.Trees = false }, "uid", "treesync")
	check("error: uid treesync takes no arguments", nil, "uid", "treesync", "1")
	check("error: uid treepurge: got 0 arguments", nil, "uid", "treepurge")
	check(`error: uid treepurge: got the tree "70000", want 1 to 65535`, nil, "uid", "treepurge", "70000")
	check("tree 1: its branches are deleted", nil, "uid", "treepurge", "1")
	if a := b.Get("api/tree/branch?treeid=1"); a.Status != http.StatusNotFound {
		t.Errorf("purged tree: got %d %s, want 404", a.Status, a.Body)
	}
	check("tree 1: deleted, with its branches and rules", nil, "uid", "treepurge", "1", "TRUE")
	if a := b.Get("api/tree"); a.Body != "[]" {
		t.Errorf("deleted tree: got %d %s, want no trees", a.Status, a.Body)
	}
	st.Set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb-tree", Err: errors.New("torn")})
	check("error: reading the ids of trees: scan of table", nil, "uid", "treesync")
}

// unclosed is a store that its user cannot close.
type unclosed struct{ tools.Store }

func (unclosed) Features() store.Features { return store.Features{} }

func (unclosed) Close() error { return nil }
