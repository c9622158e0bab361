package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mutant is one planted fault.
type mutant struct {
	name     string
	file     string // path in the module
	old, new string // old occurs in the file exactly once
	// test is the test that must fail, "TestName" of the file's own package or
	// "folder/package TestName".
	test string
}

// pkg is the folder of the test.
func (m mutant) pkg() string {
	if dir, _, ok := strings.Cut(m.test, " "); ok {
		return dir
	}
	return path.Dir(m.file)
}

// testName is the test without its folder.
func (m mutant) testName() string {
	if _, name, ok := strings.Cut(m.test, " "); ok {
		return name
	}
	return m.test
}

// mutate returns the text of the file with the fault in it.
func (m mutant) mutate(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%s: the text to change occurs %d times in %s, want once:\n%s", m.name, n, m.file, m.old)
	}
	if m.old == m.new {
		return "", fmt.Errorf("%s: the change changes nothing", m.name)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// overlay writes changed copies of the mutants' files into dir and returns the
// path of a file for the go command's -overlay. No two mutants may be of one
// file.
func overlay(root, dir string, mutants ...mutant) (string, error) {
	replace := map[string]string{}
	for i, m := range mutants {
		source := filepath.Join(root, filepath.FromSlash(m.file))
		if _, ok := replace[source]; ok {
			return "", fmt.Errorf("%s: a second change of %s", m.name, m.file)
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
		changed, err := m.mutate(string(text))
		if err != nil {
			return "", err
		}
		replace[source] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[source], []byte(changed), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
