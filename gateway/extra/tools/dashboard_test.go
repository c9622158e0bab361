package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"downpour/gateway/extra/tools"
)

// The commands list, print and save dashboards, on a store and through a gateway that has it open:
// a document is printed as it was saved, and one made from another version changes nothing.
func TestDashboard(t *testing.T) {
	const first, second = "{\"form\": 1,\n \"panels\": []}\n", "{\"form\": 1, \"title\": \"two\", \"panels\": []}"
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, "web.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	check := func(p *place, url string) {
		t.Helper()
		f := func(fault, out string, args ...string) {
			t.Helper()
			err := p.tool(url, strings.NewReader(first), "dashboard", args...)
			if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
				t.Errorf("%s, %q: error %v, want %q", url, args, err, fault)
			}
			if p.out.String() != out {
				t.Errorf("%s, %q: %q, want %q", url, args, &p.out, out)
			}
		}
		f("", "", "list")
		f("no such dashboard", "", "get", "web")
		f("", "web: version 1\n", "put", "web", "-")
		f("version 1 was saved at", "", "put", "web", file(second))
		f("version 1 was saved at", "", "put", "-replace", "7", "web", file(second))
		f("", "web: version 2\n", "put", "-replace", "1", "web", file(second))
		f("", second, "get", "web")
		if !strings.Contains(p.errs.String(), "version 2") {
			t.Errorf("%s: standard error has %q, want the version", url, &p.errs)
		}
		f("", first, "get", "-version", "1", "web")
		f("", "web: version 3\n", "put", "-replace", "any", "web", "-")
		f("", "db: version 1\n", "put", "-replace", "any", "db", "-")
		f("", "db\nweb\n", "list")
		f("form: got 2, want 1", "", "put", "web", file(`{"form":2,"panels":[]}`))
		f("name: got", "", "put", "W E B", file(second))
		f("no such file", "", "put", "web", filepath.Join(dir, "none.json"))
		f("-replace: got", "", "put", "-replace", "x", "web", "-")
		f("want list, get NAME", "", "put", "web")
	}
	check(embedded(t), "http://127.0.0.1:1")
	check(onHBase(t), "http://127.0.0.1:1")
	p := embedded(t)
	p.serve(func(url string, _ tools.Store) { check(p, url) })
}
