package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// handler is one for all tests: the documentation is read once.
var handler = sync.OnceValue(Handler)

func get(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r)
	return w
}

func TestPageIsServed(t *testing.T) {
	w := get(t, "GET", "/")
	h := w.Header()
	if w.Code != 200 || h.Get("Content-Type") != "text/html; charset=utf-8" ||
		h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("status %d, header %v", w.Code, h)
	}
	csp := h.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q, want default-src 'self' and nothing unsafe", csp)
	}
	again := get(t, "GET", "/", "If-None-Match", h.Get("ETag"))
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("asked with its ETag: %d with %d bytes, want 304 without", again.Code, again.Body.Len())
	}
}

func TestOtherRequests(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		code         int
	}{
		{"HEAD", "/", 200}, {"POST", "/", 405}, {"GET", "/ui/", 404}, {"GET", "/ui/js", 404},
		{"GET", "/ui/../web.go", 404},
		{"GET", "/index.html", 404}, {"GET", "/nothing", 404}, {"GET", "/ui/vendor/uplot/LICENSE", 200},
		{"GET", "/d/", 200}, {"GET", "/d", 200}, {"GET", "/D/Web", 200}, {"HEAD", "/d/web", 200},
		{"PUT", "/d/web", 405}, {"GET", "/d/web/x", 404}, {"GET", "/dx", 404},
		{"GET", "/ops", 200}, {"GET", "/OPS/", 200}, {"GET", "/ops/x", 404}, {"DELETE", "/ops", 405},
	} {
		if w := get(t, tc.method, tc.path); w.Code != tc.code {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, w.Code, tc.code)
		}
	}
}

var (
	reference = regexp.MustCompile(`(?:src|href)="([^"]+)"|(?:from |import\()'([^']+)'`)
	inline    = regexp.MustCompile(`(?i)<script(?:>| [^>]*[^>]*>[^<])|<style|\son[a-z]+=|\sstyle=`)
	vendored  = regexp.MustCompile(`(?s)\n// /ui/vendor/.*?\n\}\)\);\n`) // a module of others in what is linked
	foreign   = regexp.MustCompile(`https?://[^\s'"` + "`" + `]+`)
)

// The gateway serves every file to which the page, or the module for other pages, leads, and none
// of them names another host.
func TestEverythingComesFromHere(t *testing.T) {
	todo, seen := []string{"/", "/d/", "/ops", "/ui/embed.js"}, map[string]bool{}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		w := get(t, "GET", path)
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
			continue
		}
		if strings.Contains(path, "/vendor/") {
			continue
		}
		body := vendored.ReplaceAllString(w.Body.String(), "\n")
		for _, u := range foreign.FindAllString(body, -1) {
			if u != "http://www.w3.org/2000/svg" { // the name of a format, which is never fetched
				t.Errorf("%s names %s, want no other host", path, u)
			}
		}
		for _, m := range reference.FindAllStringSubmatch(body, -1) {
			file, _, _ := strings.Cut(m[1]+m[2], "#")
			if !strings.HasPrefix(file, "/docs/") { // whose links have a test of their own
				todo = append(todo, resolve(path, file))
			}
		}
	}
	for _, path := range []string{"/", "/d/", "/ops"} {
		if page := get(t, "GET", path).Body.String(); inline.MatchString(page) {
			t.Errorf("%s has inline script or style: %q", path, inline.FindString(page))
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d files reached from the page: %v", len(seen), seen)
	}
}

// Both pages have the same rows for queries and formulas.
func TestTemplates(t *testing.T) {
	templates := regexp.MustCompile(`(?s)<template.*</template>`)
	page, board := get(t, "GET", "/").Body.String(), get(t, "GET", "/d/").Body.String()
	if a, b := templates.FindString(page), templates.FindString(board); a != b || a == "" {
		t.Errorf("the templates of index.html and dashboard.html differ:\n%s\n%s", a, b)
	}
}

// Whatever comes from a server, a document or a link is text: nothing of it becomes markup or script.
func TestNothingBecomesMarkup(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTML|parseFromString|` +
		`createContextualFragment|srcdoc|\beval\(|new Function`)
	err := fs.WalkDir(embedded, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".js" || strings.Contains(name, "/vendor/") {
			return err
		}
		content, err := embedded.ReadFile(name)
		if found := markup.Find(content); found != nil {
			t.Errorf("%s has %s", name, found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func resolve(from, to string) string {
	if strings.HasPrefix(to, "/") {
		return to
	}
	r := httptest.NewRequest("GET", from, nil)
	u, err := r.URL.Parse(to)
	if err != nil {
		return to
	}
	return u.Path
}

func TestScriptsHaveTheTypeOfModules(t *testing.T) {
	for _, path := range []string{"/ui/embed.js", "/ui/js/main.js", "/ui/vendor/uplot/uPlot.esm.js"} {
		if got := get(t, "GET", path).Header().Get("Content-Type"); got != "text/javascript; charset=utf-8" {
			t.Errorf("%s is %s", path, got)
		}
	}
}

// The files of uPlot are those of version 1.6.32 on npm, unchanged.
func TestVendoredFiles(t *testing.T) {
	for name, want := range map[string]string{
		"uPlot.esm.js":  "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
		"uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"LICENSE":       "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	} {
		sum := sha256.Sum256(get(t, "GET", "/ui/vendor/uplot/"+name).Body.Bytes())
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s has SHA-256 %s, want %s", name, got, want)
		}
	}
}
