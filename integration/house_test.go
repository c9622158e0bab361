package integration

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// This repository keeps its own rules, which CONTRIBUTING.md explains.
func TestHouse(t *testing.T) {
	for _, v := range inspect(t, os.DirFS("..")) {
		t.Error(v)
	}
}

// inspect reads a tree and returns every breach of a rule, sorted.
func inspect(t *testing.T, tree fs.FS) []string {
	t.Helper()
	h, err := readHouse(tree)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, rule := range []func(*house) []string{
		direction, harnesses, standardOnly, purity, storeChoice, owners, extras, // house_imports_test.go
		packageNames, packageComments, exportedComments, sizes, tooWide, calls, formatted, words, // house_files_test.go
		forgoneNames,          // house_names_test.go
		draws, elapsed, stale, // house_seeds_test.go
		places,     // house_pages_test.go
		sideBySide, // house_parallel_test.go
		features,   // house_stores_test.go
	} {
		found = append(found, rule(h)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// sound is a small tree that keeps every rule; planted trees change one file.
func sound() fstest.MapFS {
	return planted(map[string]string{
		"go.mod": "module downpour\n",
		"encoding/e.go": "// Package encoding is there.\npackage encoding\n\nimport \"fmt\"\n\n" +
			"// E prints.\nfunc E() { fmt.Println() }\n",
		"encoding/batch/b.go": "// Package batch is there.\npackage batch\n\n" +
			"import _ \"github.com/apache/arrow/go/v15/arrow\"\n",
		"pushdown/store/s.go": "// Package store is there.\npackage store\n",
		"gateway/write/p.go": "// Package write is there.\npackage write\n\nimport (\n" +
			"\t_ \"downpour/encoding/batch\"\n\t_ \"downpour/pushdown/store\"\n)\n",
		"gateway/cmd/g/m.go": "// Command g is there.\npackage main\n\nimport (\n\t\"os\"\n\n" +
			"\t_ \"downpour/gateway/write\"\n\t_ \"downpour/pushdown/store/pebble\"\n)\n\n" +
			"func main() { os.Getenv(\"X\") }\n",
		"gateway/write/p_test.go": "package write\n\nimport _ \"downpour/integration/e2e\"\n",
		"node_modules/x/x.go":     "not Go",
		".git":                    "gitdir: /" + "home/x/.git\n",
		"build/x.go":              "not Go",
		"a/testdata/x.go":         "not Go",
	})
}

func planted(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestHouse_soundTree(t *testing.T) {
	if found := inspect(t, sound()); len(found) > 0 {
		t.Errorf("a tree that keeps every rule has the breaches %q, want none", found)
	}
}

// planter returns a function that puts one breach into a sound tree and wants exactly the lines
// want to be reported. So every rule is seen to fail.
func planter(t *testing.T) func(want string, files map[string]string) {
	return func(want string, files map[string]string) {
		t.Helper()
		tree := sound()
		maps.Copy(tree, planted(files))

		var wanted []string
		if want != "" {
			wanted = strings.Split(want, "\n")
		}
		if d := cmp.Diff(wanted, inspect(t, tree)); d != "" {
			t.Errorf("planted %q: -want +got\n%s", slices.Sorted(maps.Keys(files)), d)
		}
	}
}

// oneFile is a tree of one file.
func oneFile(name, text string) map[string]string { return map[string]string{name: text} }

// importing is the text of a package that imports another.
func importing(pkg, imported string) string {
	return "// Package " + pkg + " is there.\npackage " + pkg + "\n\nimport _ \"" + imported + "\"\n"
}

func TestHouse_imports(t *testing.T) {
	plant := planter(t)

	// Import direction.
	plant("pushdown/x: imports downpour/gateway/write, to the right of its own folder",
		oneFile("pushdown/x/x.go", importing("x", "downpour/gateway/write")))
	plant("encoding/x: imports downpour/pushdown/store, to the right of its own folder",
		oneFile("encoding/x/x_test.go", "package x\n\nimport _ \"downpour/pushdown/store\"\n"))
	plant("integration/e2e: imports downpour/gateway/write, may import only encoding",
		oneFile("integration/e2e/x.go", importing("e2e", "downpour/gateway/write")))
	plant("gateway/x: imports downpour/integration/e2e, which is for tests and bench",
		oneFile("gateway/x/x.go", importing("x", "downpour/integration/e2e")))
	plant("integration/x: imports downpour/bench, to the right of its own folder",
		map[string]string{
			"integration/x/x.go": importing("x", "downpour/bench"),
			"bench/b.go":         "// Package bench is there.\npackage bench\n",
		})
	plant("integration: imports downpour/bench, to the right of its own folder",
		map[string]string{
			"integration/x_test.go": "package integration\n\nimport _ \"downpour/bench\"\n",
			"bench/b.go":            "// Package bench is there.\npackage bench\n",
		})
	plant("gateway/x: imports downpour/integration/mutants, to the right of its own folder",
		oneFile("gateway/x/x_test.go", "package x\n\nimport _ \"downpour/integration/mutants\"\n"))

	// Packages for tests may use what tests may, and the product uses none of them.
	plant("", oneFile("gateway/xtest/x.go", importing("xtest", "downpour/pushdown/store/pebble")))
	plant("gateway/x: imports downpour/gateway/xtest, which is for tests",
		map[string]string{
			"gateway/x/x.go":     importing("x", "downpour/gateway/xtest"),
			"gateway/xtest/x.go": "// Package xtest is there.\npackage xtest\n",
		})

	// The core knows no extra, and extras know those of a list.
	extra := func(dir, imported string) map[string]string {
		return map[string]string{
			"gateway/extra/a/a.go": "// Package a is there.\npackage a\n",
			dir + "/x.go":          importing("x", imported),
		}
	}
	plant("gateway/x: imports downpour/gateway/extra/a, but the core knows no extra",
		extra("gateway/x", "downpour/gateway/extra/a"))
	plant("gateway/x: imports downpour/gateway/extra/a, but the core knows no extra", map[string]string{
		"gateway/extra/a/a.go": "// Package a is there.\npackage a\n",
		"gateway/x/x_test.go":  "package x\n\nimport _ \"downpour/gateway/extra/a\"\n",
	})
	plant("", map[string]string{
		"gateway/extra/a/a.go":      "// Package a is there.\npackage a\n",
		"gateway/extra/b/b_test.go": "package b\n\nimport _ \"downpour/gateway/extra/a\"\n",
	})
	plant("gateway/extra/x: imports downpour/gateway/extra/a, which extraImports does not list",
		extra("gateway/extra/x", "downpour/gateway/extra/a"))

	// Purity.
	plant("encoding: imports github.com/x/y, may import only the standard library",
		oneFile("encoding/x.go", "package encoding\n\nimport _ \"github.com/x/y\"\n"))
	plant("encoding/scanplan: imports net/http, must know no clock, network or system",
		oneFile("encoding/scanplan/x.go", importing("scanplan", "net/http")))
	plant("encoding/x.go:5: calls time.Now, must know no clock, network or system",
		oneFile("encoding/x.go", "package encoding\n\nimport \"time\"\n\nvar _ = time.Now()\n"))
	plant("pushdown/operator/aggregate: imports os, must know no clock, network or system",
		oneFile("pushdown/operator/aggregate/x.go", importing("aggregate", "os")))
	plant("gateway/query/merge: reaches downpour/pushdown/store by way of downpour/gateway/write, must know no store",
		oneFile("gateway/query/merge/x.go", importing("merge", "downpour/gateway/write")))

	// Stores and owners.
	plant("gateway/write: imports downpour/pushdown/store/hbase, only mains and tests choose a store",
		oneFile("gateway/write/x.go", "package write\n\nimport _ \"downpour/pushdown/store/hbase\"\n"))
	plant("gateway/write: imports downpour/pushdown/store/open, only mains and tests choose a store",
		oneFile("gateway/write/x.go", "package write\n\nimport _ \"downpour/pushdown/store/open\"\n"))
	plant("pushdown/store: imports downpour/encoding, must import nothing of ours",
		oneFile("pushdown/store/x.go", "package store\n\nimport _ \"downpour/encoding\"\n"))
	plant("gateway/write: imports github.com/tsuna/gohbase/hrpc, which only pushdown/store/hbase may",
		oneFile("gateway/write/x.go", "package write\n\nimport _ \"github.com/tsuna/gohbase/hrpc\"\n"))
	plant("gateway/write: imports github.com/caarlos0/env/v9, which only mains may",
		oneFile("gateway/write/x.go", "package write\n\nimport _ \"github.com/caarlos0/env/v9\"\n"))
	plant("encoding/x: imports github.com/apache/arrow/go/v15/arrow, which in encoding only encoding/batch may",
		oneFile("encoding/x/x.go", importing("x", "github.com/apache/arrow/go/v15/arrow")))
}

func TestHouse_files(t *testing.T) {
	plant := planter(t)
	long := strings.Repeat("\t_ = 0\n", 80)

	// Names, comments, sizes.
	plant("gateway/util: a package named util says nothing",
		oneFile("gateway/util/x.go", "// Package util is there.\npackage util\n"))
	plant("gateway/x: no package comment", oneFile("gateway/x/x.go", "package x\n"))
	plant("gateway/write/x.go:3: exported X has no comment\ngateway/write/x.go:5: exported Y has no comment\n"+
		"gateway/write/x.go:7: exported X.Z has no comment",
		oneFile("gateway/write/x.go", "package write\n\ntype X struct{}\n\nvar Y int\n\nfunc (*X) Z() {}\n"))
	plant("gateway/write/x.go:4: comment of exported X says only \"X is TODO\"",
		oneFile("gateway/write/x.go", "package write\n\n// X is TODO\nfunc X() {}\n"))
	plant("gateway/write/x.go: 501 lines, at most 500",
		oneFile("gateway/write/x.go", "package write\n"+strings.Repeat("\n// x\n", 250)))
	plant("gateway/write/x_test.go: 701 lines, at most 700",
		oneFile("gateway/write/x_test.go", "package write\n"+strings.Repeat("\n// x\n", 350)))
	plant("gateway/write/x.go:3: f has 82 lines, at most 80",
		oneFile("gateway/write/x.go", "package write\n\nfunc f() {\n"+long+"}\n"))
	plant("gateway/write/x.go:3: f has 8 parameters, at most 7",
		oneFile("gateway/write/x.go", "package write\n\nfunc f(a, b, c int, d, e, f, g, h string) {}\n"))
	plant("gateway/write/x.go:3: interface x has 9 methods, at most 8",
		oneFile("gateway/write/x.go",
			"package write\n\ntype x interface {\n\tA()\n\tB()\n\tC()\n\tD()\n\tE()\n\tF()\n\tG()\n\tH()\n\tI()\n}\n"))

	// Columns: a tab takes four, a letter of two bytes one.
	wide := "\t// " + strings.Repeat("é", 113)
	function := func(line string) string { return "func f() {\n" + line + "\n}\n" }
	plant("gateway/write/x.go:4: 121 columns, at most 120",
		oneFile("gateway/write/x.go", "package write\n\n"+function(wide+"é")))
	plant("", oneFile("gateway/write/x.go", "package write\n\n"+function(wide)))
	plant("gateway/write/x_test.go:4: 121 columns, at most 120",
		oneFile("gateway/write/x_test.go", "package write\n\n"+function(wide+"é")))
	plant("gateway/xtest/x.go:5: 121 columns, at most 120",
		oneFile("gateway/xtest/x.go", "// Package xtest is there.\npackage xtest\n\n"+function(wide+"é")))
	plant("bench/x.go:5: 121 columns, at most 120",
		oneFile("bench/x.go", "// Package bench is there.\npackage bench\n\n"+function(wide+"é")))
	plant("gateway/write/x.go:4: 121 columns, at most 120",
		oneFile("gateway/write/x.go", "package write\n\n"+function("\t_ = 0 //"+"fault:x "+strings.Repeat("T", 101))))
	plant("", oneFile("gateway/write/x.go",
		"// Code generated by x. DO NOT EDIT.\n\npackage write\n\n"+function(wide+"é")))

	// What is compared whole.
	declaration := "//" + "fault:x " + strings.Repeat("T", 111)
	plant("", oneFile("gateway/write/x_test.go", "package write\n\n"+declaration+"\n"+function("")))
	plant("gateway/write/x.go:3: 121 columns, at most 120",
		oneFile("gateway/write/x.go", "package write\n\n"+declaration+"\n"+function("")))
	output := strings.ReplaceAll(function("\t// Output:\n"+wide+"é"), "func f", "func Example")
	plant("", oneFile("gateway/write/x_test.go", "package write\n\n"+output))

	// Calls.
	plant("gateway/write/x_test.go:5: calls time.Sleep in a test; poll, or use testing/synctest",
		oneFile("gateway/write/x_test.go", "package write\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"))
	plant("", oneFile("gateway/write/x_test.go",
		"package write\n\nimport (\n\t_ \"testing/synctest\"\n\t\"time\"\n)\n\nfunc f() { time.Sleep(1) }\n"))
	plant("gateway/write/x_test.go:5: skips a test; what is missing must fail",
		oneFile("gateway/write/x_test.go",
			"package write\n\nimport \"testing\"\n\nfunc f(t *testing.T) { t.Skip() }\n"))
	plant("gateway/write/x.go:8: errors.Is(…, io.EOF); compare with ==, because the error of a connection that "+
		"was closed wraps io.EOF, too, and is no end",
		oneFile("gateway/write/x.go",
			"package write\n\nimport (\n\t\"errors\"\n\t\"io\"\n)\n\nvar _ = errors.Is(nil, io.EOF)\n"))
	plant("gateway/write/x.go:5: calls os.Getenv; only mains read the environment",
		oneFile("gateway/write/x.go", "package write\n\nimport \"os\"\n\nvar _ = os.Getenv(\"X\")\n"))
	plant("gateway/write/x.go: gofmt would change it", oneFile("gateway/write/x.go", "package write\nvar  x int\n"))
}

func TestHouse_seeds(t *testing.T) {
	plant := planter(t)
	test := func(imported, body string) map[string]string {
		return oneFile("gateway/write/x_test.go",
			"package write\n\nimport (\n\t\""+imported+"\"\n\t\"time\"\n)\n\nfunc f() {\n\t"+body+"\n}\n")
	}

	// Draws that no seed repeats.
	plant("gateway/write/x_test.go:9: rand.Uint64 draws from the global generator; take it from encoding/seedtest",
		test("math/rand/v2", "seed := rand.Uint64()"))
	plant("gateway/write/x_test.go:9: rand.Shuffle draws from the global generator; take it from encoding/seedtest",
		test("math/rand", "rand.Shuffle(1, nil)"))
	plant("gateway/write/x_test.go:9: rand.Read draws what no seed repeats; take it from encoding/seedtest",
		test("crypto/rand", "rand.Read(nil)"))
	plant("gateway/write/x_test.go:9: a seed of the clock; take it from encoding/seedtest",
		test("math/rand/v2", "r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))"))
	plant("gateway/write/x_test.go:9: a seed of the clock; take it from encoding/seedtest",
		test("fmt", "seed := uint64(time.Now().Unix())"))
	plant("", test("math/rand/v2", "r := rand.New(rand.NewPCG(1, 1))\n\tname := time.Now().UnixNano()"))
	plant("gateway/write: uses rapid without encoding/seedtest, which gives it the seed",
		oneFile("gateway/write/x_test.go", "package write\n\nimport _ \"pgregory.net/rapid\"\n"))
	plant("", oneFile("gateway/write/x_test.go",
		"package write\n\nimport (\n\t_ \"downpour/encoding/seedtest\"\n\t_ \"pgregory.net/rapid\"\n)\n"))
	plant("integration/compaction_test.go: is an exception that draws from the global generator, "+
		"but nothing there does; take it off the list",
		oneFile("integration/compaction_test.go", "package integration\n"))

	// Bounds by the clock.
	plant("gateway/write/x_test.go:9: compares how long something took; count, or use testing/synctest",
		test("fmt", "_ = time.Since(began) > time.Second"))
	plant("gateway/write/x_test.go:10: compares how long something took; count, or use testing/synctest",
		test("fmt", "took := time.Since(began)\n\t_ = took < 1"))
	plant("", test("testing/synctest", "_ = time.Since(began) > time.Second"))
	plant("", test("fmt", "fmt.Println(time.Since(began))"))
}

func TestHouse_parallel(t *testing.T) {
	plant := planter(t)
	const tagged = "//go:build integration\n\npackage integration\n\nimport \"testing\"\n\n"

	plant("integration/x_test.go:7: TestX does not begin with t.Parallel(), "+
		"and the table of exclusive tests gives no reason",
		oneFile("integration/x_test.go", tagged+"func TestX(t *testing.T) {\n\tt.Log()\n\tt.Parallel()\n}\n"))
	plant("", oneFile("integration/x_test.go",
		tagged+"func TestX(t *testing.T) {\n\tt.Parallel()\n}\n\nfunc TestChaos(t *testing.T) {}\n"))
	plant("",
		oneFile("integration/x_test.go", "package integration\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n"))
	plant("integration/house_parallel_test.go: TestChaos is no exclusive test",
		oneFile("integration/x_test.go", tagged+"func TestChaos(t *testing.T) {\n\tt.Parallel()\n}\n"))
}

// featuresOfStores is a package of stores with two features.
const featuresOfStores = `// Package store is there.
package store

// Features are there.
type Features struct {
	Marker Marker
	Watch  func()
}

// Marker is there.
type Marker interface{ Mark() }

// Reader is there.
type Reader interface {
	Scan()
	Features() Features
}

// Store is there.
type Store interface {
	Reader
	Close()
}
`

func TestHouse_features(t *testing.T) {
	plant := planter(t)
	with := func(path, text string) map[string]string {
		return map[string]string{
			"pushdown/store/s.go": featuresOfStores,
			path:                  strings.ReplaceAll(text, "import store\n", "import \"downpour/pushdown/store\"\n"),
		}
	}
	const head = "package write\n\nimport store\n\n"

	// A wrapper that would hand out the inner store's features.
	plant("gateway/write/x_test.go:5: wrapper embeds a store, has Scan of its own, and no Features",
		with("gateway/write/x_test.go",
			head+"type wrapper struct {\n\tn int\n\tstore.Store\n}\n\nfunc (wrapper) Scan() {}\n"))
	plant("gateway/write/x_test.go:5: hiding embeds a store and nothing else, and has no Features",
		with("gateway/write/x_test.go", head+"type hiding struct{ store.Reader }\n"))
	plant("gateway/write/x.go:5: wrapper embeds a store, has Mark of its own, and no Features",
		with("gateway/write/x.go",
			head+"type wrapper struct {\n\tstore.Reader\n\tn int\n}\n\nfunc (*wrapper) Mark() {}\n"))
	plant("gateway/write/x_test.go:7: wrapper embeds a store, has Watch of its own, and no Features",
		with("gateway/write/x_test.go", head+"type other = store.Store\n\ntype wrapper struct {\n\t*inner\n"+
			"\tn int\n}\n\ntype inner struct {\n\tother\n\tn int\n}\n\nfunc (w *wrapper) Watch() {}\n"))
	plant("", with("gateway/write/x_test.go", head+`type wrapper struct{ store.Store }

func (wrapper) Scan() {}

func (wrapper) Features() store.Features { return store.Features{Watch: nil} }

type world struct {
	store.Store
	n int
}

type named struct{ inner store.Store }

func (named) Scan() {}
`))

	// One that says nothing of a feature.
	plant("gateway/write/x.go:7: Features says nothing of Watch",
		with("gateway/write/x.go", head+"type wrapper struct{ store.Store }\n\n"+
			"func (wrapper) Features() store.Features { return store.Features{Marker: nil} }\n"))
	plant("gateway/write/x.go:7: Features returns no literal, so it says nothing of each field",
		with("gateway/write/x.go", head+"type wrapper struct{ store.Store }\n\n"+
			"func (w wrapper) Features() store.Features { return w.Store.Features() }\n"))
	plant("", with("gateway/write/x.go", head+`type none struct{ store.Store }

func (none) Features() store.Features { return store.Features{} }

type all struct{ store.Store }

func (a all) Features() store.Features {
	return store.Features{Marker: a.Store.Features().Marker, Watch: nil}
}
`))

	// Abilities that are found by assertions.
	plant("gateway/write/x.go:6: asserts an interface of pushdown/store; ask Features",
		with("gateway/write/x.go",
			head+"func f(st store.Store) {\n\t_, _ = st.(store.Marker)\n\t_, _ = st.(error)\n}\n"))
	plant("gateway/write/x.go:9: asserts an interface of pushdown/store; ask Features",
		with("gateway/write/x.go", head+"type marked interface{ store.Marker }\n\nfunc f(st store.Store) {\n"+
			"\tswitch st.(type) {\n\tcase marked:\n\t}\n}\n"))
}

func TestHouse_names(t *testing.T) {
	plant := planter(t)

	// Forgone words.
	plant("gateway/write/x.go:3: coverLedger has the word ledger; say coverage",
		oneFile("gateway/write/x.go", "package write\n\nfunc f(coverLedger int) {}\n"))
	plant("gateway/write/x.go:3: standings has the word standing; say incremental\n"+
		"gateway/write/x.go:4: UIDWitness has the word witness; say presence marker",
		oneFile("gateway/write/x.go",
			"package write\n\nfunc f(standings int) {}\nfunc (x *t) g()       { type UIDWitness int }\n"))
	plant("gateway/write/x.go:3: PartInfo has the word PartInfo; say Part",
		oneFile("gateway/write/x.go", "package write\n\ntype t struct{ PartInfo, partInfoOf int }\n"))
	plant("gateway/write/new_ledger.go: new_ledger has the word ledger; say coverage",
		oneFile("gateway/write/new_ledger.go", "package write\n"))
	plant("pushdown/keeper: keeper has the word keeper; say locator",
		oneFile("pushdown/keeper/x.go", "// Package keeper is there.\npackage keeper\n"))
	plant("", oneFile("gateway/write/x.go",
		"package write\n\nimport \"x/ledger\"\n\nvar bundled, knowledge = ledger.Ledger, 1 // ledger\n"))
	plant("", oneFile("integration/x/x.go", "// Package x is there.\npackage x\n\nvar era, startZooKeeper = 1, 2\n"))
	plant("pushdown/x/x.go:4: era has the word era; say epoch",
		oneFile("pushdown/x/x.go", "// Package x is there.\npackage x\n\nvar era, startZooKeeper = 1, 2\n"))
	plant("", oneFile("gateway/write/x_test.go", "package write\n\nvar ledger = 1\n"))
}

func TestHouse_pages(t *testing.T) {
	plant := planter(t)

	// Places.
	plant("ARCHITECTURE.md:1: names gateway/gone, which is not there",
		oneFile("ARCHITECTURE.md", "`gateway/gone` and `gateway/write`\n"))
	plant("ARCHITECTURE.md:2: names gateway/write/gone.go, which is not there",
		oneFile("ARCHITECTURE.md", "\n`gateway/write/gone.go`, `gateway/write/p.go`\n"))
	plant("ARCHITECTURE.md:1: names q.go, which is not there",
		oneFile("ARCHITECTURE.md", "`q.go`, `p.go`, `./gateway/write/`\n"))
	plant("ARCHITECTURE.md:1: names gateway/write/q.go, which is not there",
		oneFile("ARCHITECTURE.md", "`gateway/write/p.go`, `p.go`, `q.go`\n"))
	plant("ARCHITECTURE.md:1: names gateway/gone, which is not there",
		oneFile("ARCHITECTURE.md", "`gateway/gone.Open`, `gateway/write.Open`\n"))
	plant("GLOSSARY.md:1: names encoding/docs/x.md, which is not there",
		oneFile("GLOSSARY.md", "[x](encoding/docs/x.md#top)\n"))
	plant("GLOSSARY.md:1: names gateway/write/q*.go, which is not there",
		oneFile("GLOSSARY.md", "`gateway/write/q*.go`, `gateway/write/p*.go`\n"))
	plant("", oneFile("GLOSSARY.md",
		"`/api/query`, `build/run/x`, `mode=strict`, `go run ./gone/x`, [x](https://host/x.md), `opentsdb.conf`\n"))

	// Words.
	plant("docs/testdata/x.go:1: names the machine path /wo"+"rk/", oneFile("docs/testdata/x.go", "(/wo"+"rk/x)\n"))
	plant("docs/x.md:2: names the machine path /ro"+"ot/", oneFile("docs/x.md", "fine\nsee `/ro"+"ot/x`\n"))
	plant("docs/x.md:1: names the registry host pyp"+"i.org", oneFile("docs/x.md", "from pyp"+"i.org\n"))
	plant("x.env:1: holds what looks like a secret", oneFile("x.env", "KEY=sk"+"-abcdefghijklmnopqrstuvwx\n"))
	plant("", oneFile("docs/x.bin", "\x00 /ro"+"ot/x\n"))
}
