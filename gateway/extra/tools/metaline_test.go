package tools_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/extra/tools"
	"downpour/pushdown/store"
)

// described returns a store with points, annotations, a UIDMeta and a TSMeta.
func described(t *testing.T) *place {
	p := embedded(t)
	p.mustTool("import", write(t, lines(0, 10)+"other 1356998400 1 host=web1 dc=lga\n"))
	p.serve(func(url string, _ tools.Store) {
		for path, body := range map[string]string{
			"/api/annotation": `{"startTime":1356998401,"endTime":1356998402,"description":"deploy é",` +
				`"notes":"of \"x\"\nand y","custom":{"who":"ops"}}`,
			"/api/annotation?": `{"startTime":1356998403250,"tsuid":"000001000001000001","description":"on a series"}`,
			"/api/uid/uidmeta": `{"uid":"000001","type":"metric","displayName":"CPU","notes":"all of it",` +
				`"custom":{"owner":"ops"}}`,
			"/api/uid/tsmeta": `{"tsuid":"000001000001000002","displayName":"CPU of web1","units":"%",` +
				`"max":100.5,"retention":30}`,
		} {
			if status, answer := post(t, url+path, []byte(body)); status != http.StatusOK {
				t.Fatalf("%s: %d %s", path, status, answer)
			}
		}
	})
	return p
}

// told returns the answers of a gateway about annotations, meta data and series, without the time
// at which points were last received, which differs between stores.
func (p *place) told() (all []string) {
	p.Helper()
	p.serve(func(url string, _ tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		for _, path := range []string{
			"/api/query?start=1356998400&end=1356998500&ms=true&global_annotations=true&m=sum:sys.cpu{host=web0}",
			"/api/annotation?start_time=1356998401", "/api/uid/uidmeta?uid=000001&type=metric",
			"/api/uid/tsmeta?tsuid=000001000001000002", "/api/search/lookup?m=sys.cpu",
			"/api/search/lookup?m={host=web1}",
		} {
			resp, err := http.Get(url + path)
			if err != nil {
				p.Fatal(err)
			}
			var b bytes.Buffer
			_, err = b.ReadFrom(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				p.Errorf("%s: %d %s %v", path, resp.StatusCode, &b, err)
			}
			text := b.String()
			for _, key := range []string{`"lastReceived":`, `"time":`} {
				if before, rest, ok := strings.Cut(text, key); ok {
					text = before + rest[strings.IndexAny(rest, ",}"):]
				}
			}
			all = append(all, path+" "+text)
		}
	})
	return all
}

// Annotations and meta data are exported and imported with the points, from and to files and
// through a running gateway, and every answer about them stays the same.
func TestRemarks_move(t *testing.T) {
	from := described(t)
	want := from.told()
	file := filepath.Join(t.TempDir(), "all")
	from.mustTool("export", "-all", "-o", file, "1970/03/01")
	from.said("11 points of 2 metrics exported, 12 annotations and meta data")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	cluster := onHBase(t)
	cluster.mustTool("import", file)
	cluster.said("11 points imported, 0 refused, 7 blank, 12 annotations and meta data")
	second := embedded(t)
	second.mustTool("import", file)
	third := embedded(t)
	third.serve(func(url string, _ tools.Store) {
		if err := third.tool(url, nil, "import", file); err != nil {
			t.Fatal(err)
		}
		third.said("11 points imported, 0 refused, 7 blank, 12 annotations and meta data")
		if err := third.tool(url, nil, "export", "-all", "1970/03/01"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), third.out.String()); diff != "" {
			t.Errorf("exported through a gateway: %s", diff)
		}
	})
	for name, p := range map[string]*place{"HBase": cluster, "embedded": second, "by way of a gateway": third} {
		if diff := cmp.Diff(want, p.told()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(string(text), p.mustTool("export", "-all", "1970/03/01")); diff != "" {
			t.Errorf("%s, exported again: %s", name, diff)
		}
	}

	if plain := from.mustTool("export", "-all", "-plain", "1970/03/01"); strings.Contains(plain, "#") {
		t.Errorf("plain: %s", plain)
	}
	from.said("left out: 1 annotations (-all takes them)")
}

// A meta line that is refused ends the import before it, and the points before it are imported.
func TestRemarks_refused(t *testing.T) {
	file := write(t, lines(0, 3)+`#note {"value":{"startTime":1356998401,"description":"a"}}`+"\n"+
		`#uidmeta {"kind":"metrics","name":"nobody","value":{"type":"METRIC"}}`+"\n"+lines(3, 5)+
		"#note of somebody\n#note {\n")
	p := embedded(t)
	for range 2 {
		p.failTool(":5: #uidmeta: No such name", "import", file)
		p.said("4 lines: 3 points imported, 0 refused, 0 blank, 1 annotations and meta data")
	}
	p.mustTool("import", "-skip-errors", file)
	p.said("9 lines: 5 points imported, 2 refused, 1 blank, 1 annotations and meta data")
	p.said(":9: #note: unexpected end of JSON input")
	q := embedded(t)
	q.serve(func(url string, _ tools.Store) {
		q.refusedAt(url, ":5: #uidmeta: No such name", "import", write(t, string(mustRead(t, file))))
	})
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A name whose UID has data is not deleted without -force. With it the name is deleted with its
// meta data, and its points stay but cannot be read.
func TestUID_delete(t *testing.T) {
	for name, make := range map[string]func() *place{
		"embedded": func() *place { return described(t) },
		"salted HBase": func() *place {
			from := described(t)
			p := onHBase(t)
			p.cfg.SaltWidth, p.cfg.TagVWidth = 1, 4
			file := filepath.Join(t.TempDir(), "all")
			from.mustTool("export", "-all", "-o", file, "1970/03/01")
			p.mustTool("import", file)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := make()
			for _, args := range [][]string{{"metrics", "sys.cpu"}, {"tagk", "dc"}, {"tagv", "lga"}, {"tagv", "web1"}} {
				p.failTool("has data: row", "uid", append([]string{"delete"}, args...)...)
				p.mustTool("uid", "grep", args[0], "^"+args[1]+"$")
			}
			p.mustTool("uid", "assign", "tagv", "unused")
			p.mustTool("uid", "delete", "tagv", "unused")
			p.mustTool("uid", "delete", "-force", "metrics", "other")
			p.said("metrics other: deleted, it was 000002\n")
			p.said("meta data of 1 series with it: deleted\n")
			p.said("its points stay and cannot be read: row ")
			p.failTool("No such name", "export", "1", "other")
			p.failTool("No such name", "uid", "delete", "metrics", "other")
			p.mustTool("export", "-all", "1970/03/01")
			if p.said("10 points of 1 metrics exported"); strings.Contains(p.errs.String(), "left out") {
				t.Errorf("got %s, want that nothing is left out", &p.errs)
			}
		})
	}
}

// late is a store in which another process writes a row with a UID just after the UID's name was
// deleted.
type late struct {
	tools.Store
	row []byte
}

func (*late) Features() store.Features { return store.Features{} }

// Apply applies mutations and, after the first deletion of a name, puts the row.
func (l *late) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	err := l.Store.Apply(ctx, table, mutations)
	if table == "tsdb-uid" && mutations[0].Kind == store.DeleteCell && l.row != nil {
		put := store.Mutation{Row: l.row, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}}
		l.row = nil
		return errors.Join(err, l.Store.Apply(ctx, "tsdb", []store.Mutation{put}))
	}
	return err
}

// If a point is put while its metric is being deleted, the deletion fails and the metric keeps its
// name.
//
//fault:uid-deleted-without-a-last-look d.look(ctx) => error(nil)
func TestUID_deleteMeetsPut(t *testing.T) {
	p := embedded(t)
	p.mustTool("mkmetric", "m")
	p.mustTool("uid", "assign", "tagk", "a")
	p.mustTool("uid", "assign", "tagv", "b")
	open := p.open
	p.open = func() (tools.Store, error) {
		st, err := open()
		return &late{st, []byte("\x00\x00\x01\x50\xe2\x27\x00\x00\x00\x01\x00\x00\x01")}, err
	}
	p.failTool("has data: row 00000150e22700000001000001", "uid", "delete", "metrics", "m")
	p.open = open
	if got := p.mustTool("export", "1", "m"); got != "m 1356998400 1 a=b\n" {
		t.Errorf("exported %q", got)
	}
}

// A name whose UID has the time of its mapping and no UIDMeta is exported with a UIDMeta of that time.
func TestExport_mappingTimes(t *testing.T) {
	p := embedded(t)
	p.mustTool("import", write(t, lines(0, 1)))
	p.serve(func(_ string, st tools.Store) {
		mapping := store.Mutation{Row: []byte{0, 0, 1}, Family: "name", Qualifier: []byte("tagk"),
			Value: []byte("host"), Timestamp: 1356998400_999}
		if err := st.Apply(t.Context(), "tsdb-uid", []store.Mutation{mapping}); err != nil {
			t.Fatal(err)
		}
	})
	p.mustTool("export", "-all", "1")
	want := `#uidmeta {"kind":"tagk","name":"host","value":{"type":"TAGK","displayName":"","description":"",` +
		`"notes":"","created":1356998400,"custom":null}}`
	if !strings.Contains(p.out.String(), want) {
		t.Errorf("got %s\nwant %s", &p.out, want)
	}
}
