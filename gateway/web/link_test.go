package web

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func modules(texts map[string]string) Files {
	files := Files{}
	for at, text := range texts {
		files.Add(at, at, []byte(text))
	}
	return files
}

func TestLink(t *testing.T) {
	got, err := link(modules(map[string]string{
		"/js/main.js": `// Main.
import Plot from '../plot.js';
import * as api from './api.js';

const f = async () => (await import('./later.js')).g(api, Plot);
f();
`,
		"/js/api.js": `import {
  a as b, c,
} from './part/names.js';
export const { get, put } = b(c);
export async function ask() {}
`,
		"/js/later.js":      "import { c } from './part/names.js';\nexport function g() { return c; }\n",
		"/js/part/names.js": "export const a = 1;\nexport class c {}\n",
		"/js/other.js":      "export const other = 1;\n",
		"/plot.js":          "/*\nexport const none = 0;\n*/\nfunction plot() {}\n\nexport { plot as default };",
	}), "/js/main.js")
	want := `const once = (make) => { let made; return () => (made ??= make()); };
// /plot.js
const module1 = once((() => {
/*
export const none = 0;
*/
function plot() {}

return { default: plot };
}));
// /js/part/names.js
const module2 = once((() => {
const a = 1;
class c {}
return { a, c };
}));
// /js/api.js
const module3 = once((() => {
const {
  a: b, c,
} = module2();
const { get, put } = b(c);
async function ask() {}
return { get, put, ask };
}));
// /js/main.js
const module5 = once((() => {
// Main.
const Plot = module1().default;
const api = module3();

const f = async () => (await Promise.resolve().then(module4)).g(api, Plot);
f();
return {  };
}));
// /js/later.js
const module4 = once((() => {
const { c } = module2();
function g() { return c; }
return { g };
}));
module5();
`
	if err != nil || string(got) != want {
		t.Errorf("got %s\n%v\nwant %s", got, err, want)
	}
}

func TestLink_refuses(t *testing.T) {
	unknown := func(line string) string {
		return fmt.Sprintf("link /a.js: /a.js: %q is no statement that can be linked", line)
	}
	for text, want := range map[string]string{
		"import './b.js';\n":               unknown("import './b.js';"),
		"export let x = 1;\n":              unknown("export let x = 1;"),
		"export * from './b.js';\n":        unknown("export * from './b.js';"),
		"import { c } from './c.js';\n":    "link /a.js: /a.js: there is no /c.js",
		"import { b } from './b.js';\n":    "link /a.js: /a.js: /b.js: /a.js imports itself, by others",
		"const f = () => import('./c.js')": "link /a.js: there is no /c.js",
	} {
		files := modules(map[string]string{"/a.js": text, "/b.js": "import { a } from './a.js';\n"})
		_, err := link(files, "/a.js")
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

var (
	imports = regexp.MustCompile(`(?m)(?:^import [^;]*? from |\bimport\()'([^']+)'`)
	headed  = regexp.MustCompile(`(?m)^// (/ui/\S+\.js)$`)
)

// The script of each page holds all modules that it needs, once, and asks for no other.
func TestLinkedPages(t *testing.T) {
	raw := Files{}
	raw.AddTree(embedded, address)
	for page, some := range map[string][]string{
		"/":      {"/ui/js/main.js", "/ui/js/zone.js", "/ui/js/start.js", "/ui/vendor/uplot/uPlot.esm.js"},
		"/d/web": {"/ui/js/board/main.js", "/ui/js/board/types/number.js"},
		"/ops":   {"/ui/js/ops/main.js", "/ui/js/live.js"},
	} {
		needed := map[string]bool{}
		for todo := some[:1]; len(todo) > 0; todo = todo[1:] {
			at := todo[0]
			if needed[at] {
				continue
			}
			needed[at] = true
			for _, m := range imports.FindAllSubmatch(raw[at].content, -1) {
				todo = append(todo, path.Join(path.Dir(at), string(m[1])))
			}
		}
		script := get(t, "GET", some[0]).Body.String()
		var held []string
		for _, m := range headed.FindAllStringSubmatch(script, -1) {
			held = append(held, m[1])
		}
		slices.Sort(held)
		if want := slices.Sorted(maps.Keys(needed)); !slices.Equal(held, want) {
			t.Errorf("%s: its script holds %v, want %v", page, held, want)
		}
		for _, at := range some {
			if !needed[at] {
				t.Errorf("%s: %s is missing", page, at)
			}
		}
		if asked := imports.FindString(script); asked != "" {
			t.Errorf("%s: its script asks for more: %s", page, asked)
		}
		named := `<script type="module" src="` + some[0] + `">`
		if !strings.Contains(get(t, "GET", page).Body.String(), named) {
			t.Errorf("%s: %s is missing", page, named)
		}
	}
}
