package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// fault is one planted fault.
type fault struct {
	name      string
	file      string // path in the module
	dir, test string // the folder and name of the test that must fail
	testFile  string // in that folder, where the fault is declared
	changed   string // text of the file with the fault in it
}

// overlay writes the changed file into dir and returns the path of a file for the go command's -overlay.
func (f fault) overlay(root, dir string) (string, error) {
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(f.changed), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, filepath.FromSlash(f.file)): changed},
	})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// moduleRoot goes up from the working directory to go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}
