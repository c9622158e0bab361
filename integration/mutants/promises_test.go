package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Every promise fault has its marker, its declaration and the code that it changes. All that have not are named.
func TestPromises(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readPromises(os.DirFS(root)); err != nil {
		t.Error(err)
	}
}

// A story declares faults in its comments; its test is a part of TestStories, in the package of stories.
func TestReadPromises_stories(t *testing.T) {
	texts := map[string]string{
		"x.go":                 "package x\n\nvar n = 1 " + directive + "told TestStories/live\n",
		stories + "/live.txt":  "# A story.\n#\n# " + directive + "told 1 => 2\n\nput\n",
		"y/testdata/other.txt": "# " + directive + "unread 1 => 2\n",
	}
	found, err := readPromises(treeOf(texts))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %d faults, %v, want one", len(found), err)
	}
	f := found[0]
	if f.dir != "integration/story" || f.test != "TestStories/live" || f.testFile != stories+"/live.txt" {
		t.Errorf("got %s of %s, declared in %s, want TestStories/live of integration/story", f.test, f.dir, f.testFile)
	}
	texts[stories+"/live.txt"] = "# " + directive + "told 1\n"
	if _, err := readPromises(treeOf(texts)); err == nil || !strings.Contains(err.Error(), stories+"/live.txt: got ") {
		t.Errorf("a declaration without an arrow: got %v, want an error that names the story", err)
	}
}

// What is lost is an error that says what and where.
func TestReadPromises(t *testing.T) {
	const (
		source = "package x\n\nfunc f(n int) int {\n\tif n > 1 { FAULT:sound TestX\n\t\treturn 1\n\t}\n" +
			"\treturn 2 FAULT:whole TestX\n}\n"
		test = "package x\n\n// TestX is there.\n//\nFAULT:sound > => >=\nFAULT:whole => return 3\n" +
			"func TestX() {}\n\nfunc TestY() {}\n"
	)
	for _, c := range []struct{ file, old, new, want string }{
		{"x.go", "", "", ""},
		{"x.go", " FAULT:sound TestX", "", "sound: TestX of y/x_test.go declares it, and no line is marked"},
		{"y/x_test.go", "FAULT:sound > => >=\n", "", "sound: x.go:4 is marked, and no test declares it"},
		{"x.go", "return 1", "return 1 FAULT:sound TestX", "sound: got 2 markers and 1 declarations, want one of each"},
		{
			"y/x_test.go", "func TestY", "FAULT:sound > => <\nfunc TestY",
			"sound: got 1 markers and 2 declarations, want one of each",
		},
		{"x.go", "sound TestX", "sound TestY", "sound: the marker at x.go:4 names TestY, want TestX of y/x_test.go"},
		{"x.go", "n > 1", "n < 1", `sound: x.go:4: ">" occurs 0 times in the line "if n < 1 {", want once`},
		{
			"x.go", "n > 1", "n > 1 && n > 2",
			`sound: x.go:4: ">" occurs 2 times in the line "if n > 1 && n > 2 {", want once`,
		},
		{"y/x_test.go", "> => >=", "> => >", `sound: x.go:4: ">" is changed to itself`},
		{"y/x_test.go", "> => >=", "> =>", `sound: is no Go any more: x.go:4:8: expected ';', found 1`},
		{"x.go", "FAULT:sound TestX", "FAULT:sound",
			`x.go:4: got "if n > 1 { FAULT:sound", want code and FAULT:NAME TestX` + "\n" +
				"sound: TestX of y/x_test.go declares it, and no line is marked"},
		{
			"x.go", "\treturn 1", "\tFAULT:alone TestX\n\t\treturn 1",
			`x.go:5: got "FAULT:alone TestX", want code and FAULT:NAME TestX`,
		},
		{"y/x_test.go", "> => >=", "> >=",
			`y/x_test.go:5:1: got "FAULT:sound > >=", want FAULT:NAME OLD => NEW in the comment of a test` + "\n" +
				"sound: x.go:4 is marked, and no test declares it"},
		{"y/x_test.go", "func TestX()", "func helper()",
			`y/x_test.go:5:1: got "FAULT:sound > => >=", want FAULT:NAME OLD => NEW in the comment of a test` +
				"\n" +
				`y/x_test.go:6:1: got "FAULT:whole => return 3", want FAULT:NAME OLD => NEW in the comment of a test` +
				"\n" +
				"sound: x.go:4 is marked, and no test declares it\nwhole: x.go:7 is marked, and no test declares it"},
	} {
		texts := map[string]string{"x.go": source, "y/x_test.go": test}
		if strings.Count(texts[c.file], c.old) != 1 && c.old != "" {
			t.Fatalf("%q is not once in %s", c.old, c.file)
		}
		texts[c.file] = strings.Replace(texts[c.file], c.old, c.new, 1)
		_, err := readPromises(treeOf(texts))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(strings.ReplaceAll(c.want, "FAULT:", directive), got); d != "" {
			t.Errorf("%s: %q to %q: -want +got\n%s", c.file, c.old, c.new, d)
		}
	}
}

// treeOf returns a tree of files, in whose texts FAULT: stands for the directive.
func treeOf(texts map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range texts {
		tree[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "FAULT:", directive))}
	}
	return tree
}

// A change takes the marker away, keeps the line's place, and deletes, replaces or adds.
func TestReadPromises_changes(t *testing.T) {
	for change, want := range map[string]string{
		"n+1 => n":               "\treturn n",
		"+1 =>":                  "\treturn n",
		"=>":                     "\t",
		"=> n++; return n":       "\tn++; return n",
		"return => return 0*n +": "\treturn 0*n + n+1",
	} {
		faults, err := readPromises(treeOf(map[string]string{
			"x.go":      "package x\n\nfunc f(n int) (m int) {\n\treturn n+1 FAULT:a-b TestX\n}\n",
			"x_test.go": "package x\n\nFAULT:a-b " + change + "\nfunc TestX() {}\n",
		}))
		if err != nil || len(faults) != 1 {
			t.Errorf("%q: got %d faults, %v, want one", change, len(faults), err)
			continue
		}
		f := faults[0]
		if d := cmp.Diff("package x\n\nfunc f(n int) (m int) {\n"+want+"\n}\n", f.changed); d != "" {
			t.Errorf("%q: -want +got\n%s", change, d)
		}
		if f.file != "x.go" || f.dir != "." || f.test != "TestX" {
			t.Errorf("%q: got %s, %s %s, want x.go, . TestX", change, f.file, f.dir, f.test)
		}
	}
}
