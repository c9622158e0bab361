package tools_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"downpour/gateway/extra/tools"
	"downpour/pushdown/store"
)

// uidCell writes a cell of the UID table, or deletes it if value is nil.
func uidCell(t *testing.T, st tools.Store, row, family, qualifier string, value []byte) {
	t.Helper()
	m := store.Mutation{Row: []byte(row), Family: family, Qualifier: []byte(qualifier), Value: value}
	if value == nil {
		m.Kind = store.DeleteCell
	}
	if err := st.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
		t.Fatal(err)
	}
}

// uid fsck, metasync and metapurge do the same work on the embedded store, on HBase, and through
// the gateway that has the embedded store open.
func TestUIDWork(t *testing.T) {
	const one = "\x00\x00\x01"
	work := func(p *place, st func(func(tools.Store)), url string) {
		p.Helper()
		do := func(want string, args ...string) {
			p.Helper()
			err := p.tool(url, nil, "uid", args...)
			got := p.out.String()
			if err != nil {
				got += "error: " + err.Error() + "\n"
			}
			if got != want {
				p.Errorf("uid %q at %q:\ngot  %s\nwant %s\n%s", args, url, got, want, &p.errs)
			}
		}
		tsdHint := ""
		if !p.cfg.Embedded() {
			tsdHint = "running TSDs may remember what was: let each drop its caches (/api/dropcaches)\n"
		}
		do("1 metrics, 1 tagk, 2 tagv: 0 errors, 0 warnings, 0 repaired\n", "fsck")
		st(func(st tools.Store) {
			uidCell(p.T, st, one, "name", "metrics", nil)
			uidCell(p.T, st, "\x00\x00\x07", "name", "tagv", []byte("web0"))
			uidCell(p.T, st, "odd", "id", "odd", []byte("odd"))
		})
		found := `error: metrics: "sys.cpu" has UID 000001, which leads back to no name`
		odd := `warning: row 6f6464: unknown column id:"odd" of 3 bytes`
		stray := `warning: tagv: UID 000007 leads to "web0", which has UID 000001`
		counter := `error: tagv: the counter is 2, but UIDs up to 7 are in use: new names would get them first`
		do(odd+"\n"+found+`; fix: 000001 leads back to "sys.cpu"`+"\n"+stray+
			"; fix: UID 000007 leads to nothing\n"+counter+"; fix: the counter is 7\n"+
			"1 metrics, 1 tagk, 2 tagv: 2 errors, 2 warnings, 0 repaired\nerror: 2 errors are left\n", "fsck")
		do(odd+"; repaired: the column is deleted\n"+found+`; repaired: 000001 leads back to "sys.cpu"`+"\n"+
			stray+"; repaired: UID 000007 leads to nothing\n"+counter+"; repaired: the counter is 7\n"+
			"1 metrics, 1 tagk, 2 tagv: 2 errors, 2 warnings, 4 repaired\n"+tsdHint, "fsck", "fix", "delete_unknown")
		do("1 metrics, 1 tagk, 2 tagv: 0 errors, 0 warnings, 0 repaired\n", "fsck", "fix")

		st(func(st tools.Store) { uidCell(p.T, st, "sys.mem", "id", "metrics", []byte(one)) })
		collision := `error: metrics: COLLISION: "sys.cpu", "sys.mem" have the same UID 000001, ` +
			`which leads back to "sys.cpu"; points of all are stored as one name's`
		if err := p.tool(url, nil, "uid", "fsck", "fix"); err == nil ||
			!strings.HasPrefix(p.out.String(), collision+"\n") ||
			!strings.Contains(p.out.String(), "-collisions owner") {
			p.Errorf("%v: %s", err, &p.out)
		}
		do(collision+`; repaired: 000001 is the UID of "sys.cpu" alone`+
			"\n2 metrics, 1 tagk, 2 tagv: 1 errors, 0 warnings, 1 repaired\n"+tsdHint,
			"fsck", "fix", "-collisions", "owner")

		// The import has recorded meta data on the embedded store only: begin without any.
		if err := p.tool(url, nil, "uid", "metapurge"); err != nil {
			p.Error(err)
		}
		made := "made: 2 TSMeta, 2 counters, 4 UIDMeta; "
		do(dryLine+"2 series in 2 rows\n"+made+"set to the first row's hour: 0 TSMeta, 0 UIDMeta\n"+
			"left out: 0 series with one of 0 UIDs without a name, 0 objects and keys that cannot be read\n",
			"metasync", "-dry-run")
		do("2 series in 2 rows\n"+made+"set to the first row's hour: 0 TSMeta, 0 UIDMeta\n"+
			"left out: 0 series with one of 0 UIDs without a name, 0 objects and keys that cannot be read\n",
			"metasync")
		do(dryLine+"deleted: 4 UIDMeta, 2 TSMeta and 2 counters; in 0 of the objects somebody has written\n",
			"metapurge", "-dry-run")
		do("deleted: 4 UIDMeta, 2 TSMeta and 2 counters; in 0 of the objects somebody has written\n", "metapurge")
		refuseUIDWork(p, url)
	}

	for _, p := range []*place{embedded(t), onHBase(t)} {
		p.mustTool("import", write(t, lines(0, 3)))
		work(p, p.use, "http://127.0.0.1:1")
	}
	p := embedded(t)
	p.mustTool("import", write(t, lines(0, 3)))
	p.serve(func(url string, st tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		work(p, func(f func(tools.Store)) { f(st) }, url)
	})
}

// refuseUIDWork wants that arguments which cannot be meant are refused.
func refuseUIDWork(p *place, url string) {
	p.Helper()
	for want, args := range map[string][]string{
		"got \"all\"":         {"fsck", "all"},
		"need fix":            {"fsck", "delete_unknown"},
		"for fsck":            {"metasync", "fix"},
		"want owner or merge": {"fsck", "fix", "-collisions", "other"},
	} {
		if err := p.tool(url, nil, "uid", args...); err == nil || !strings.Contains(err.Error(), want) {
			p.Errorf("uid %q: %v, want %q", args, err, want)
		}
	}
}

// A purge through a gateway covers the meta data of its puts that was not written yet.
func TestUIDWork_pending(t *testing.T) {
	p := embedded(t)
	p.serve(func(url string, _ tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		status, body := post(t, url+"/api/put",
			[]byte(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"}}`))
		if status != http.StatusNoContent {
			t.Fatalf("put: got %d %s, want 204", status, body)
		}
		err := p.tool(url, nil, "uid", "metapurge", "-dry-run")
		if err != nil || !strings.HasPrefix(p.out.String(), dryLine+"deleted: 0 UIDMeta, 1 TSMeta and 1 counters") {
			t.Errorf("got %v and %s, want 1 TSMeta and 1 counter", err, &p.out)
		}
	})
}

// An answer of a gateway without its end is an error, and so is one that ends in #error.
func TestUIDWork_cutOff(t *testing.T) {
	for body, want := range map[string]string{
		"error: a\n":                    "the answer was cut off",
		"error: a\n#error \"broken\"\n": "broken",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/config" {
				_, _ = w.Write([]byte("{}"))
				return
			}
			_, _ = w.Write([]byte(body))
		}))
		p := embedded(t)
		err := p.tool("", nil, "uid", "fsck", "-gateway", server.URL)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) || p.out.String() != "error: a\n" {
			t.Errorf("%q: %v, %q", body, err, &p.out)
		}
	}
}
