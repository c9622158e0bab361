package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
)

// pkg is a package as go list -json describes it.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

const module = "downpour"

// packages lists the packages of the module.
func (r *runner) packages(ctx context.Context) (all []pkg, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = r.root
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// affected returns the packages whose tests a change of these files can break: those that the files belong
// to, and those that import them, by however many steps. A change of go.mod is one of every package.
func affected(all []pkg, files []string) (found []string) {
	changed := map[string]bool{}
	for _, file := range files {
		if file == "go.mod" || file == "go.sum" {
			return []string{"./..."}
		}
		changed[owner(all, file)] = true
	}
	// Only what a package itself imports hands a change on; what its tests import does not.
	for again := true; again; {
		again = false
		for _, p := range all {
			if !changed[p.ImportPath] && anyOf(p.Imports, changed) {
				changed[p.ImportPath], again = true, true
			}
		}
	}
	for _, p := range all {
		if changed[p.ImportPath] || anyOf(p.TestImports, changed) || anyOf(p.XTestImports, changed) {
			found = append(found, p.ImportPath)
		}
	}
	return found
}

// edited returns the packages whose sources are among these files.
func edited(all []pkg, files []string) (found []string) {
	for _, p := range all {
		if slices.ContainsFunc(files, func(file string) bool {
			return path.Ext(file) == ".go" && path.Join(module, path.Dir(file)) == p.ImportPath
		}) {
			found = append(found, p.ImportPath)
		}
	}
	return found
}

// owner is the package in whose folder a file is, or the nearest one above: it embeds the file, or its tests
// read it. Empty means none, as for pages at the top, which the documentation's own tests read.
func owner(all []pkg, file string) string {
	if path.Ext(file) == ".go" && path.Dir(file) == "." {
		return module
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if name := module + "/" + dir; slices.ContainsFunc(all, func(p pkg) bool { return p.ImportPath == name }) {
			return name
		}
	}
	return ""
}

func anyOf(names []string, in map[string]bool) bool {
	return slices.ContainsFunc(names, func(name string) bool { return in[name] })
}
