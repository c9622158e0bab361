package tools_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/store"
)

// lines returns import lines of two series in turn, a point a second.
func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "sys.cpu %d %d host=web%d\n", 1356998400+i, i, i%2)
	}
	return b.String()
}

// write writes a text to a new file and returns the file's name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.txt")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// failTool runs a command without a gateway and wants an error that contains a text.
func (p *place) failTool(want, name string, args ...string) {
	p.Helper()
	if err := p.tool("http://127.0.0.1:1", nil, name, args...); err == nil || !strings.Contains(err.Error(), want) {
		p.Errorf("%s %q: got %v, want %q", name, args, err, want)
	}
}

// said wants a text in what the last tool wrote to either output.
func (p *place) said(text string) {
	p.Helper()
	if all := p.out.String() + p.errs.String(); !strings.Contains(all, text) {
		p.Errorf("got %q, want %q", all, text)
	}
}

// A refused line ends the import before it, and the next run goes on with that line, whether it
// was corrected or not.
func TestImport_stopsAtRefusedLine(t *testing.T) {
	for name, bad := range map[string]string{
		"form": "sys.cpu 1356998500 x host=a",
		"name": "sys.cpu! 1356998500 1 host=a",
	} {
		t.Run(name, func(t *testing.T) {
			p := embedded(t)
			head := "# points\n\n" + lines(0, 50)
			file := write(t, head+bad+"\n"+lines(50, 60))
			p.failTool(":53: ", "import", file)
			p.said("52 lines: 50 points imported, 0 refused, 2 blank")
			p.failTool(":53: ", "import", file)
			p.said("going on behind line 52")
			mended := head + "sys.cpu 1356998500 1 host=a\n" + lines(50, 60)
			if err := os.WriteFile(file, []byte(mended), 0o644); err != nil {
				t.Fatal(err)
			}
			p.mustTool("import", file)
			p.said("63 lines: 61 points imported, 0 refused, 2 blank")
			if n := len(p.cells()); n != 61 {
				t.Errorf("%d points are stored, want 61", n)
			}
			if _, err := os.Stat(file + ".import"); !os.IsNotExist(err) {
				t.Errorf("the state file is still there, or cannot be looked for: %v", err)
			}
		})
	}
}

// With -skip-errors each line counts as imported, refused or blank, and each refusal is reported
// with its line number.
func TestImport_skipErrors(t *testing.T) {
	p := embedded(t)
	long := "sys.cpu 1356998400 1 host=" + strings.Repeat("a", 1<<20)
	file := write(t, lines(0, 3)+"x\n"+lines(3, 5)+"sys.cpu 1356998400 1 host=a!\n"+long+"\n#\n"+
		strings.TrimSuffix(lines(5, 6), "\n"))
	p.mustTool("import", "-skip-errors", file)
	p.said("10 lines: 6 points imported, 3 refused, 1 blank")
	for _, line := range []string{":4: has 1 words", ":7: Invalid tag value", ":8: is longer than"} {
		p.said(file + line)
	}
}

// A byte order mark is refused by file and line, even with -skip-errors, instead of becoming a part
// of the first name. Nothing is imported.
//
//fault:import-takes-mark f.checkMark() => error(nil)
func TestImport_byteOrderMark(t *testing.T) {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		for _, text := range []string{lines(0, 3), "# points\n" + lines(0, 3), ""} {
			p := embedded(t)
			file := write(t, mark+text)
			p.failTool(fmt.Sprintf("%s:1: begins with a byte order mark, %x", file, mark), "import",
				"-skip-errors", file)
			if n := len(p.cells()); n != 0 {
				t.Errorf("%x: %d points are stored, want none", mark, n)
			}
		}
	}
}

// Of a compressed file that was cut anywhere, the whole lines that can be read are imported, and the
// error names the line behind them. The whole file then goes on there.
func TestImport_cutGzip(t *testing.T) {
	r := seedtest.Rand(t)
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	for i := 0; i < 60; i += 20 { // several blocks, so that some lines can be read of a cut one
		_, _ = io.WriteString(z, lines(i, i+20))
		_ = z.Flush()
	}
	_ = z.Close()
	size := whole.Len()
	for _, n := range []int{
		0, 1, 9, 10, 11, r.IntN(size), r.IntN(size), size / 2, size - 9, size - 8, size - 4, size - 1,
	} {
		p := embedded(t)
		file := filepath.Join(t.TempDir(), "in.gz")
		put := func(n int) {
			if err := os.WriteFile(file, whole.Bytes()[:n], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		put(n)
		err := p.tool("http://127.0.0.1:1", nil, "import", "-skip-errors", file)
		stored := len(p.cells())
		want := fmt.Sprintf("%s:%d: the compressed file ends too early", file, stored+1)
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%d of %d bytes: got %v, want %q", n, size, err, want)
		}
		if n >= size-8 && stored != 60 {
			t.Errorf("%d of %d bytes: %d points are stored, want 60", n, size, stored)
		}
		put(size)
		p.mustTool("import", file)
		if got := len(p.cells()); got != 60 {
			t.Errorf("%d of %d bytes, then all: %d points are stored, want 60", n, size, got)
		}
	}
}

// The new names of a file get UIDs in its order, whether they come with points or in a list of
// names, and those of refused lines get none.
func TestImport_newNames(t *testing.T) {
	const many = 1200
	var points, list strings.Builder
	for i := range many {
		fmt.Fprintf(&list, "#uid tagv p%d\n", i)
		if i%7 == 6 {
			fmt.Fprintf(&points, "m 1356998400 1 pod=refused%d refused=a!\n", i)
			continue
		}
		fmt.Fprintf(&points, "m 1356998400 1 pod=p%d\n", i)
	}

	f := func(text, want string) {
		t.Helper()
		p := embedded(t)
		p.mustTool("import", "-skip-errors", write(t, text))
		if got := p.mustTool("uid", "grep", "tagv", "^(p0|p1199|refused.*)$"); got != want {
			t.Errorf("UIDs are %q, want %q", got, want)
		}
	}
	f(points.String(), "tagv p0: [0, 0, 1]\ntagv p1199: [0, 4, 5]\n")                                      // 1029
	f(list.String()+"#uid tagv p3\n#uid tagv refused!\n", "tagv p0: [0, 0, 1]\ntagv p1199: [0, 4, -80]\n") // 1200
}

// On HBase the times of a series must ascend, because two values of one time would make queries
// fail. The embedded store keeps the later value, and so takes any order.
func TestImport_order(t *testing.T) {
	text := "m 1356998401 1 a=b\nm 1356998400 1 a=c\nm 1356998401000 2 a=b\n"
	p := onHBase(t)
	p.failTool(":3: its time, 1356998401000 ms, does not come after", "import", "-no-state", write(t, text))
	p.mustTool("import", "--skip-errors", write(t, text))
	p.said("3 lines: 2 points imported, 1 refused")
	p.mustTool("import", write(t, text), "-allow-out-of-order")
	embedded(t).mustTool("import", write(t, text))
}

// A state file belongs to one store and to the part of the file that was imported: it is refused
// for another store, or if that part has changed.
func TestImport_state(t *testing.T) {
	p := embedded(t)
	file := write(t, lines(0, 5)+"bad\n")
	p.failTool("no such file", "import", file+".missing")
	p.failTool(":6: ", "import", file)
	onHBase(t).failTool("is of an import into pebble:test tsdb", "import", file)
	if err := os.WriteFile(file, []byte(lines(1, 6)), 0o644); err != nil {
		t.Fatal(err)
	}
	p.failTool("has changed in its first", "import", file)
	if err := os.Remove(file + ".import"); err != nil {
		t.Fatal(err)
	}
	p.mustTool("import", file)
	// If a command with several files fails, the files before the error are not imported again.
	bad := write(t, "bad\n")
	p.failTool(":1: ", "import", file, bad)
	p.failTool(":1: ", "import", file, bad)
	p.said("going on behind line 5")
}

// failing is a store that fails writes to rows whose base time is from or later.
type failing struct {
	tools.Store
	from uint32
}

func (*failing) Features() store.Features { return store.Features{} }

func (f *failing) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	for _, m := range mutations {
		if table == "tsdb" && binary.BigEndian.Uint32(m.Row[3:]) >= f.from {
			return fmt.Errorf("%w: broken by the test", store.ErrUnavailable)
		}
	}
	return f.Store.Apply(ctx, table, mutations)
}

// A store that fails ends the import. All points that the state calls durable are stored, and
// another run imports the rest.
func TestImport_storeFails(t *testing.T) {
	const points = 300_000 // more than one window holds, so that some are durable
	p := embedded(t)
	file := write(t, lines(0, points))
	open := p.open
	p.open = func() (tools.Store, error) {
		st, err := open()
		if err != nil {
			return nil, err
		}
		return &failing{st, 1356998400 + 216_000}, nil // after 60 hours of 83
	}
	p.failTool("broken by the test", "import", file)
	p.open = open
	state, err := os.ReadFile(file + ".import")
	if err != nil {
		t.Fatal(err)
	}
	var lines, durable int
	for _, n := range []struct {
		key string
		to  *int
	}{{`"lines":`, &lines}, {`"points":`, &durable}} {
		_, rest, _ := strings.Cut(string(state), n.key)
		fmt.Sscan(strings.SplitN(rest, ",", 2)[0], n.to)
	}
	if stored := len(p.cells()); durable == 0 || durable != lines || durable > stored || stored == points {
		t.Errorf("the state has %d points of %d lines, want as many and some; the store %d of %d, "+
			"want more and not all", durable, lines, stored, points)
	}
	p.mustTool("import", file)
	p.said(fmt.Sprintf("%d lines: %d points imported", points, points))
	if stored := len(p.cells()); stored != points {
		t.Errorf("%d points are stored, want %d", stored, points)
	}
}

// While a gateway has the embedded store open, tools ask the gateway, or fail with an error of one
// line. The answers are those of the store itself.
func TestTools_storeInUse(t *testing.T) {
	p := embedded(t)
	file := write(t, lines(0, 6000)+"sys.cpu 1356998400 1 host=a!\n"+"m 1356998400 0.5 a=b\nm 1356998401 1.0 a=b\n")
	p.serve(func(url string, _ tools.Store) {
		defer http.DefaultClient.CloseIdleConnections()
		if err := p.tool(url, nil, "import", "-skip-errors", file); err != nil {
			t.Fatal(err)
		}
		p.said("6003 lines: 6002 points imported, 1 refused")
		p.said(":6001: ")
		if err := p.tool(url, nil, "query", "1356998400", "1356998402", "sum", "m"); err != nil {
			t.Fatal(err)
		}
		p.said("m 1356998400000 0.500000 {a=b}\nm 1356998401000 1.000000 {a=b}\n")
		for _, c := range []struct{ args, want string }{
			{"export 1 m", "m 1356998400 0.5 a=b\nm 1356998401 1.0 a=b\n"},
			{"uid grep -i ^HOST", "tagk host: [0, 0, 1]\n"},
			{"uid grep tagv ^b$", "tagv b: [0, 0, 3]\n"},
			{"mkmetric sys.cpu sys.new", "metrics sys.cpu: [0, 0, 1]\nmetrics sys.new: [0, 0, 3]\n"},
			{"uid rename metrics sys.new sys.newer", "metrics sys.new -> sys.newer\n"},
		} {
			w := strings.Fields(c.args)
			if err := p.tool(url, nil, w[0], w[1:]...); err != nil || p.out.String() != c.want {
				t.Errorf("%s: %q, %v, want %q", c.args, &p.out, err, c.want)
			}
		}
		if err := p.tool(url, nil, "uid", "rename", "metrics", "sys.newer", "sys.cpu"); err == nil ||
			!strings.Contains(err.Error(), "already assigned") {
			t.Errorf("rename to a name in use: got %v, want that it is already assigned", err)
		}
		p.failTool("its gateway cannot be asked", "uid", "grep", "a")
		p.refusedAt(url, "row 00000250e22700000002000003 of table tsdb holds its UID", "uid", "delete", "tagk", "a")
		p.refusedAt(url, "No such name for 'metrics'", "export", "1", "nope")
		p.refusedAt(url, "no name matches", "uid", "grep", "nobody")
		if err := p.tool(url, nil, "uid", "delete", "metrics", "sys.newer"); err != nil ||
			!strings.Contains(p.out.String(), "deleted, it was 000003") {
			t.Errorf("uid delete: %q, %v", &p.out, err)
		}
		p.refusedAt(url, "no name matches", "uid", "grep", "newer")
	})
	// The store itself gives the same answers.
	p.mustTool("query", "1356998400", "1356998402", "sum", "m")
	p.said("m 1356998400000 0.500000 {a=b}\nm 1356998401000 1.000000 {a=b}\n")
	if n := len(p.cells()); n != 6002 {
		t.Errorf("%d points are stored, want 6002", n)
	}
}

// refusedAt runs a command through a gateway and wants an error of one line that contains a text.
func (p *place) refusedAt(url, want, name string, args ...string) {
	p.Helper()
	err := p.tool(url, nil, name, args...)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		p.Errorf("%s %q: %v, want one line with %q", name, args, err, want)
	}
}

// An export keeps the types of values and the unit of times, and exports the series that the
// filters admit. Points and names that no import line can hold are counted.
func TestExport(t *testing.T) {
	p := embedded(t)
	text := "m 1356998400 1 a=b c=d\nm 1356998401 1.0 a=b c=d\nm 1356998402000 -0.0 a=b c=d\n" +
		"m 1356998402250 0.1 a=b c=d\n" +
		"m 1357002000 9223372036854775807 a=b c=d\nm 1357002001 1e+300 a=b c=d\n"
	other := "m 1356998400 7 a=x c=d\n"
	if err := p.tool("", bytes.NewReader([]byte(text+other+"n 1356998400 5 a=b\n")), "import", "-"); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, p.mustTool("export", args...)); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
	f(text, "1356998400", "m{a=b}")
	f(text, "1356998400", "2013/01/02", "sum", "m", "a=literal_or(b)")
	f(other, "1356998400", "1356998400500", "m{a=regexp(^x)}")
	f("m 1356998400 1 a=b c=d\nm 1356998401 1.0 a=b c=d\n", "1356998400", "1356998401", "m{a=wildcard(b*)}")
	f("n 1356998400 5 a=b\n"+other, "1356998400", "n", "m{a=x}")
	p.said("2 points of 2 metrics exported")
	p.failTool("No such name for 'metrics'", "export", "1", "nope")
	p.failTool("usage:", "export", "1")
	p.failTool("usage:", "export", "1", "-all", "m")
	list := p.mustTool("export", "-all", "1")
	if !strings.HasPrefix(list, "#uid metrics m\n#uid metrics n\n#uid tagk a\n#uid tagk c\n#uid tagv b\n"+
		"#uid tagv d\n#uid tagv x\nm 1356998400 1 ") {
		t.Errorf("all: %.300s", list)
	}
	if list := p.mustTool("export", "-all", "-plain", "1"); strings.Contains(list, "#") {
		t.Errorf("without names: %.300s", list)
	}

	// A name with a blank, which only another program can have assigned, does not stop the export.
	p.use(func(st tools.Store) {
		for _, m := range []store.Mutation{
			{Row: []byte{0, 0, 1}, Family: "name", Qualifier: []byte("tagk"), Value: []byte("a b")},
			{Row: []byte("a b"), Family: "id", Qualifier: []byte("tagk"), Value: []byte{0, 0, 1}},
		} {
			if err := st.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := p.mustTool("export", "1", "m"); got != "" {
		t.Errorf("got %s, want no line", got)
	}
	p.said("left out: 7 points that no import takes")
	p.mustTool("export", "-all", "1")
	p.said("left out: 8 points that no import takes")
	p.said("left out: 4 names, annotations") // one name, and three TSMeta
}

// Names are exported and requested literally, even if a part of them has a meaning in a query.
func TestExport_names(t *testing.T) {
	p := embedded(t)
	p.cfg.AllowSpecialChars = ":{"
	text := "cpu 1356998400 1 a=b\nprod:cpu 1356998400 99 a=b\nrate:x 1356998400 2 a=b\no{h 1356998400 3 a=b\n"
	if err := p.tool("", strings.NewReader(text), "import", "-"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, p.mustTool("export", "-all", "-plain", "1")); d != "" {
		t.Error(d)
	}
	if got := p.mustTool("export", "1", "prod:cpu{a=b}"); got != "prod:cpu 1356998400 99 a=b\n" {
		t.Errorf("got %s, want the line of prod:cpu", got)
	}
}

func TestUID(t *testing.T) {
	p := embedded(t)
	f := func(want string, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, p.mustTool(args[0], args[1:]...)); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
	f("metrics sys.b: [0, 0, 1]\nmetrics sys.a: [0, 0, 2]\n", "mkmetric", "sys.b", "sys.a")
	f("metrics sys.b: [0, 0, 1]\n", "mkmetric", "sys.b")
	f("tagv web-1: [0, 0, 1]\n", "uid", "assign", "tagv", "web-1")
	f("metrics sys.b: [0, 0, 1]\nmetrics sys.a: [0, 0, 2]\n", "uid", "grep", "metric", "^sys")
	f("tagv web-1: [0, 0, 1]\n", "uid", "grep", "-i", "WEB")
	f("metrics sys.a -> sys.c\n", "uid", "rename", "metrics", "sys.a", "sys.c")
	f("metrics sys.c: [0, 0, 2]\n", "uid", "grep", "c$")
	p.failTool("new name already assigned", "uid", "rename", "metrics", "sys.b", "sys.c")
	f("metrics sys.c: deleted, it was 000002\nits meta data: deleted\n", "uid", "delete", "metrics", "sys.c")
	p.failTool("no name matches", "uid", "grep", "sys.c")
	p.failTool("No such name", "uid", "delete", "metrics", "sys.c")
	p.failTool("No such name", "uid", "rename", "tagk", "web-1", "web-2")
	p.failTool("illegal character", "mkmetric", "a b")
	f("metrics sys.d: [0, 0, 3]\n", "mkmetric", "sys.d")
	p.failTool("want metrics, tagk or tagv", "uid", "assign", "tag", "x")
	p.failTool("usage:", "uid", "grep")
}

// Lookups find the series that an import has written to the embedded store, as they find those of
// puts.
func TestImport_metadata(t *testing.T) {
	p := embedded(t)
	p.mustTool("import", write(t, lines(0, 10)))
	p.serve(func(url string, _ tools.Store) {
		status, body := post(t, url+"/api/search/lookup",
			[]byte(`{"metric":"sys.cpu","tags":[{"key":"host","value":"web1"}]}`))
		if status != http.StatusOK || !strings.Contains(string(body), `"totalResults":1`) {
			t.Errorf("got %d %s, want 200 and one result", status, body)
		}
	})
}

// A route of lines answers what became of them: without skip up to the first that is refused, which it names, and else
// of all. A body that is too long is refused.
func TestImportLines(t *testing.T) {
	p := embedded(t)
	p.serve(func(url string, _ tools.Store) {
		for name, c := range map[string]struct {
			body   string
			status int
			text   string
		}{
			"": {
				"#uid tagk host\n\n#\nm 1 1 a=b\n#note {}\n", http.StatusOK,
				`#end {"points":1,"remarks":0,"blank":3,"refused":[{"line":5,`,
			},
			"malformed": {
				"#uid tagk host\nm 1 1 a=b\n#note {\nm 1 1 a=b\n", http.StatusOK,
				`#end {"points":1,"remarks":0,"blank":1,"refused":[{"line":3,`,
			},
			"?skip=true": {
				"m\nm 1 1 a=b\n#note {\n\nm 1 1 a=b!\n#note {\"value\":{\"startTime\":1}}\nm 2 1 a=b",
				http.StatusOK, `#end {"points":2,"remarks":1,"blank":1,"refused":[{"line":1,`,
			},
			"name": {
				"m 1 1 a=b\n\nm 1 1 a=b!\nm 2 1 a=b\n", http.StatusOK,
				`#end {"points":1,"remarks":0,"blank":1,"refused":[{"line":3,`,
			},
			"long line": {
				"#uid tagk host\n#note " + strings.Repeat("x", 2<<20) + "\n", http.StatusOK,
				`"blank":1,"refused":[{"line":2,"error":"is longer than`,
			},
			"long body": {
				strings.Repeat("#uid tagk "+strings.Repeat("h", 1000)+"\n", 40<<10),
				http.StatusRequestEntityTooLarge, "too large",
			},
		} {
			if !strings.HasPrefix(name, "?") {
				name = ""
			}
			status, body := post(t, url+"/api/tools/import"+name, []byte(c.body))
			if status != c.status || !strings.Contains(string(body), c.text) {
				t.Errorf("%.60q: %d %.300s, want %d with %q", c.body, status, body, c.status, c.text)
			}
		}
	})
}
