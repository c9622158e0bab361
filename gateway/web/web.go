// Package web serves the page at / and what it loads, all of it compiled into
// the binary: no request leaves the host and nothing has to be built. What a
// test may rely on in the page is listed in README.md next to this file.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed static
var embedded embed.FS

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
}

// Files are files in the binary, by the addresses at which they are served.
type Files map[string]file

// Add adds a file; the end of its name says what it is.
func (f Files) Add(at, name string, content []byte) { f[at] = newFile(name, content) }

// Handler serves "/", "/d/", "/d/NAME", "/ops" and "/ui/…"; every other path is 404. It is open to everybody: the pages
// hold no data.
func Handler() http.Handler {
	files := sync.OnceValue(static) // to link takes some 20 ms, which no start has to wait for
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		files().Serve(w, r, fileOf(r.URL.Path))
	})
}

// static returns the files of the pages. What a page asks for, main.js, holds all modules that it needs.
func static() Files {
	files := Files{}
	files.AddTree(embedded, address)
	linked := maps.Clone(files)
	for at := range files {
		if path.Base(at) != "main.js" {
			continue
		}
		content, err := link(files, at)
		if err != nil {
			panic("web: " + err.Error()) // cannot happen: a test links the same
		}
		linked.Add(at, at, content)
	}
	return linked
}

// AddTree adds all files of a tree.
func (f Files) AddTree(tree fs.FS, address func(name string) string) {
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		f.Add(address(name), name, content)
		return err
	})
	if err != nil {
		panic("web: embedded files: " + err.Error()) // cannot happen: they are in the binary
	}
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

// Serve sends a file, with headers that keep a page from loading anything from elsewhere.
func (f Files) Serve(w http.ResponseWriter, r *http.Request, at string) {
	file, ok := f[at]
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
	h.Set("Content-Type", file.contentType)
	h.Set("ETag", file.etag)
	// The browser asks each time: a new version's modules belong together.
	h.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content)) // no time: the ETag distinguishes versions
}
