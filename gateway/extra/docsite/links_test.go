package docsite

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"downpour"
	"downpour/gateway/web"
)

var (
	linkOfPage = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	idOfPage   = regexp.MustCompile(`\sid="([^"]+)"`)
	inline     = regexp.MustCompile(`(?i)<script(?:>| [^>]*[^>]*>[^<])|<style|\son[a-z]+=|\sstyle=`)
)

// served are the documentation and the pages to which it leads, one for all tests: the site is made once.
var served = sync.OnceValue(func() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	documentation := Handler()
	for _, below := range []string{"/docs", "/docs/", "/DOCS/"} {
		mux.Handle(below, documentation)
	}
	return mux
})

func get(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	served().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// There are pages and nothing else, and they are read alone.
func TestDocs_requests(t *testing.T) {
	f := func(method, path string, code int) {
		t.Helper()
		if w := get(t, method, path); w.Code != code {
			t.Errorf("%s %s: %d, want %d", method, path, w.Code, code)
		}
	}
	f("GET", "/docs", 200)
	f("GET", "/docs/", 200)
	f("GET", "/DOCS/Settings", 200)
	f("HEAD", "/docs/settings", 200)
	f("POST", "/docs", 405)
	f("GET", "/docs/nope", 404)
	f("GET", "/docs/settings.html", 404)
	f("GET", "/docs/settings/x", 404)
}

// Every link of the documentation leads somewhere: to a page, and to a place in it that is there. Pages
// load nothing from elsewhere and have no script or style inside.
func TestDocs_links(t *testing.T) {
	pages := map[string]string{} // by address
	todo := []string{"/docs/"}
	type led struct{ from, to, id string }
	var all []led
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if _, seen := pages[at]; seen {
			continue
		}
		w := get(t, "GET", at)
		pages[at] = w.Body.String()
		if w.Code != 200 {
			t.Errorf("%s: %d", at, w.Code)
			continue
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || !strings.HasPrefix(at, "/docs/") {
			continue // of other pages only that they are there
		}
		if found := inline.FindString(withoutCode(pages[at])); found != "" {
			t.Errorf("%s has inline script or style: %q", at, found)
		}
		for _, m := range linkOfPage.FindAllStringSubmatch(withoutCode(pages[at]), -1) {
			u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
			switch {
			case err != nil || m[1] == "":
				t.Errorf("%s has the link %q", at, m[1])
			case u.IsAbs() && strings.Contains(m[0], "src="):
				t.Errorf("%s loads %s", at, m[1])
			case u.IsAbs():
			default:
				to := at
				if u.Path != "" {
					to = u.Path
				}
				all = append(all, led{at, to, u.Fragment})
				todo = append(todo, to)
			}
		}
	}
	for _, l := range all {
		if l.id == "" || !strings.HasPrefix(l.to, "/docs/") {
			continue
		}
		if !hasID(pages[l.to], l.id) {
			t.Errorf("%s: the link %s#%s leads to no place", l.from, l.to, l.id)
		}
	}
	if len(pages) < 50 || len(all) < 1000 {
		t.Errorf("only %d pages and %d links were found from /docs/", len(pages), len(all))
	}
}

func hasID(page, id string) bool {
	for _, m := range idOfPage.FindAllStringSubmatch(page, -1) {
		if m[1] == id {
			return true
		}
	}
	return false
}

var code = regexp.MustCompile(`(?s)<pre.*?</pre>|<code>.*?</code>`)

// withoutCode removes examples, in which there may be anything.
func withoutCode(page string) string { return code.ReplaceAllString(page, "") }

// Every file of the site can be reached from its first page, or is what the search reads.
func TestDocs_files(t *testing.T) {
	index := get(t, "GET", "/docs/").Body.String()
	files, err := Build(downpour.Pages)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		page, html := strings.CutSuffix(name, ".html")
		if html && page != "index" && !strings.Contains(index, `href="/docs/`+page+`"`) {
			t.Errorf("%s is not on the first page", name)
		}
	}
	for at, kind := range map[string]string{
		"/docs/search.json":  "application/json",
		"/docs/openapi.json": "application/json",
		"/docs/page.png":     "image/png",
	} {
		w := get(t, "GET", at)
		if w.Code != 200 || w.Header().Get("Content-Type") != kind || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", at, w.Code, w.Header())
		}
	}
}

// CheckSources returns an error for each file of the source that pages name and that is not there.
func CheckSources(pages, source fs.FS) error { return checkSources(pages, source, Topics()) }

func checkSources(from, source fs.FS, topics []Topic) error {
	b := &builder{tree: from, topics: topics, pages: pages(topics)}
	done, err := b.renderAll()
	errs := []error{err}
	for _, p := range b.inOrder() {
		if done[p.Slug] == nil {
			continue // an error of its own
		}
		for _, place := range done[p.Slug].sources {
			if _, err := fs.Stat(source, place); err != nil {
				errs = append(errs, fmt.Errorf("%s: a link leads to %s, which is not there", p.Path, place))
			}
		}
	}
	return errors.Join(errs...)
}
