package integration

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pagesOfPlaces are the pages at the top that say where things are.
var pagesOfPlaces = []string{"ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md", "README.md", "STABILITY.md"}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// pathLike is what can be a path: words with slashes, and stars for parts of
	// names. A route begins with a slash, so it is none.
	pathLike = regexp.MustCompile(`^[\w*][\w.*-]*(/[\w.*-]+)*/?$`)
	// symbolOf is a Go name behind a package's path: gateway/query/engine.Engine.
	symbolOf = regexp.MustCompile(`^(.*[a-z0-9])\.[A-Z]\w*(\.\w+)*$`)
)

// places reports folders and files that a page at the top names and that are not there.
func places(h *house) (found []string) {
	for _, page := range pagesOfPlaces {
		for i, l := range bytes.Split(h.texts[page], []byte("\n")) {
			for _, named := range placesIn(h, string(l)) {
				if !h.has(named) {
					found = append(found, fmt.Sprintf("%s:%d: names %s, which is not there", page, i+1, named))
				}
			}
		}
	}
	return found
}

// placesIn returns the paths that a line of a page names: the targets of links,
// and code that begins with one of the folders at the top or is a file of a kind
// that the repository has. A Go file without a folder is in that of the one before it.
func placesIn(h *house, l string) (named []string) {
	for _, m := range link.FindAllStringSubmatch(l, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") {
			named = append(named, target)
		}
	}

	folder := ""
	for _, m := range codeSpan.FindAllStringSubmatch(l, -1) {
		text := strings.TrimPrefix(m[1], "./")
		if symbol := symbolOf.FindStringSubmatch(text); symbol != nil && !slices.Contains(h.names, text) {
			text = symbol[1]
		}
		if !pathLike.MatchString(text) {
			continue
		}

		first, _, inFolder := strings.Cut(text, "/")
		switch {
		case slices.Contains(skippedTop, first):
			// What builds and tests make is not part of the tree.
		case inFolder && slices.Contains(line, first):
			named = append(named, text)
			if path.Ext(text) == ".go" {
				folder = path.Dir(text)
			}
		case !inFolder && path.Ext(text) == ".go":
			named = append(named, path.Join(folder, text))
		case !inFolder && slices.Contains([]string{".md", ".sh", ".mjs"}, path.Ext(text)):
			named = append(named, text)
		}
	}
	return named
}

// has says that a path is in the tree. A name without a folder may be that of any
// file; a star stands for any part of a name.
func (h *house) has(named string) bool {
	named = strings.TrimSuffix(named, "/")
	inFolder := strings.Contains(named, "/")
	return slices.ContainsFunc(h.names, func(name string) bool {
		if !inFolder {
			name = path.Base(name)
		}
		ok, err := path.Match(named, name)
		return ok && err == nil
	})
}
