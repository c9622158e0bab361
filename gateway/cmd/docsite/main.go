// Command docsite makes the documentation's site anew, see package docsite, and the part of the page
// of settings that comes from the code. It is run by make docs, at the top of the source tree.
//
//	docsite        writes gateway/web/site
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"downpour/gateway/docsite"
)

// site is where the gateway's pages have the files.
const site = "gateway/web/site"

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

// run makes the site of the source tree at root.
func run(root string) error {
	if err := settings(filepath.Join(root, docsite.SettingsPath)); err != nil {
		return err
	}
	files, err := docsite.Build(os.DirFS(root))
	if err != nil {
		return err
	}

	dir := filepath.Join(root, site)
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range old {
		if files[f.Name()] == nil {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range files.Names() {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files in %s\n", len(files), site)
	return nil
}

// settings makes the table of all variables anew.
func settings(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	made, err := docsite.WithSettings(page)
	if err != nil || bytes.Equal(made, page) {
		return err
	}
	return os.WriteFile(path, made, 0o644)
}
