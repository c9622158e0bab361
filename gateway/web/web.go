// Package web serves the page at / and what it loads, all of it compiled into
// the binary: no request leaves the host and nothing has to be built. What a
// test may rely on in the page is listed in README.md beside this file.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"downpour"
	"downpour/gateway/api/openapi"
	"downpour/gateway/docsite"
)

//go:embed static
var static embed.FS

// policy lets the page load from, and connect to, its own host only, and run no
// script or style written into it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'self'"

// contentTypes are set here because the table of the machine may lack or change
// them, and a browser runs no module of another type.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".json": "application/json",
}

type file struct {
	content     []byte
	contentType string
	etag        string
	modules     string // of a page: the header Link, by which the browser asks for all at once
}

// Handler serves "/", "/d/", "/d/NAME", "/ops", "/docs", "/docs/NAME" and "/ui/…"; every other path is
// 404. It is open to everybody: the pages hold no data.
func Handler() http.Handler {
	files := map[string]file{}
	readAll(static, files, address)
	addPreloads(files, files)

	// The documentation is larger than all else, and few ask for it.
	docs := sync.OnceValue(func() map[string]file { return documentation(files) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := fileOf(r.URL.Path)
		if strings.HasPrefix(at, "/docs/") {
			serve(w, r, at, docs())
			return
		}
		serve(w, r, at, files)
	})
}

// documentation returns the files of the site, by their addresses. Its pages load modules of ui.
func documentation(ui map[string]file) map[string]file {
	site, err := docsite.Build(downpour.Pages)
	if err != nil {
		panic("web: " + err.Error()) // cannot happen: a test builds the same
	}
	all := map[string]file{"/docs/openapi.json": newFile("openapi.json", openapi.JSON)}
	for name, content := range site {
		all["/docs/"+strings.TrimSuffix(strings.TrimSuffix(name, ".html"), "index")] = newFile(name, content)
	}
	pictures, err := fs.Sub(downpour.Pages, "gateway/web/docs")
	if err != nil {
		panic("web: " + err.Error()) // cannot happen: it is a path
	}
	readAll(pictures, all, func(name string) string { return "/docs/" + name })
	addPreloads(all, ui)
	return all
}

// readAll adds all files of a tree in the binary, by their addresses.
func readAll(tree fs.FS, into map[string]file, address func(name string) string) {
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		into[address(name)] = newFile(name, content)
		return err
	})
	if err != nil {
		panic("web: embedded files: " + err.Error()) // cannot happen: they are in the binary
	}
}

// addPreloads gives each page the header that names its modules, which are among all files of /ui.
func addPreloads(pages, ui map[string]file) {
	for address, f := range pages {
		if strings.HasPrefix(f.contentType, "text/html") {
			f.modules = preloads(f.content, ui)
			pages[address] = f
		}
	}
}

var (
	named = regexp.MustCompile(`<script type="module" src="([^"]+)"`) // the modules that a page names
	from  = regexp.MustCompile(`from '([^']+)'`)                      // the module of an import or export statement
)

// imports returns the modules that a module imports by statements at the start of a line; what is imported later is not among
// them. It matches statements, not the module: that took 35 ms of each start.
func imports(module []byte) (names []string) {
	for rest := module; len(rest) > 0; _, rest, _ = bytes.Cut(rest, []byte("\n")) {
		if bytes.HasPrefix(rest, []byte("import ")) || bytes.HasPrefix(rest, []byte("export ")) {
			statement, _, _ := bytes.Cut(rest, []byte(";"))
			if m := from.FindSubmatch(statement); m != nil {
				names = append(names, string(m[1]))
			}
		}
	}
	return names
}

// preloads returns a header that names all modules of a page. Without it the browser finds one
// level of imports after the other.
func preloads(page []byte, files map[string]file) string {
	var todo, links []string
	for _, m := range named.FindAllSubmatch(page, -1) {
		todo = append(todo, string(m[1]))
	}
	for seen := map[string]bool{}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		links = append(links, "<"+at+">; rel=modulepreload")
		for _, name := range imports(files[at].content) {
			todo = append(todo, path.Join(path.Dir(at), name))
		}
	}
	return strings.Join(links, ", ")
}

// address is where a file of the page is served.
func address(name string) string {
	if name == "static/index.html" {
		return "/"
	}
	return "/ui/" + strings.TrimPrefix(name, "static/")
}

// board is the one page of all dashboards; it takes a dashboard's name from its address.
const board = "/ui/dashboard.html"

// operations is the operator's page.
const operations = "/ui/ops.html"

// fileOf returns the address of the file that a path stands for. Paths of dashboards are in
// lower case or not, as all paths of the gateway are.
func fileOf(urlPath string) string {
	first, name, _ := strings.Cut(strings.Trim(urlPath, "/"), "/")
	if strings.EqualFold(first, "d") && !strings.Contains(name, "/") {
		return board
	}
	if strings.EqualFold(first, "ops") && name == "" {
		return operations
	}
	if strings.EqualFold(first, "docs") {
		return "/docs/" + strings.ToLower(name)
	}
	return urlPath
}

// newFile returns a file as it is served; its etag is a hash of the content. A file without a
// known ending is text, as a licence is.
func newFile(name string, content []byte) file {
	kind := contentTypes[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(".txt")
	}
	sum := sha256.Sum256(content)
	return file{content: content, contentType: kind, etag: `"` + hex.EncodeToString(sum[:12]) + `"`}
}

// serve sends one of the page's files, with headers that keep it from loading anything
// from elsewhere.
func serve(w http.ResponseWriter, r *http.Request, at string, files map[string]file) {
	f, ok := files[at]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed: want GET", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Type", f.contentType)
	h.Set("ETag", f.etag)
	if f.modules != "" {
		h.Set("Link", f.modules)
	}
	h.Set("Cache-Control", "no-cache")                                   // ask each time: a new version's modules belong together
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content)) // no time: the ETag tells versions apart
}
