package main

import (
	"fmt"
	"slices"
	"strings"
)

// target is a part of soak: real servers, browsers, packages and long runs, with fresh seeds.
type target struct {
	name  string
	paths []string // a change below one of them calls for the target; see changed
	setup []string // steps of integration/setup/setup.sh
	short []string // a command of some ten minutes; nil where there is only the long one
	long  []string // a command of at most 90 minutes
}

// forms of a target.
const (
	short = "short"
	long  = "long"
)

// command returns the command of a form, which must be one that the target has: see nearest.
func (t target) command(form string) []string {
	if form == long {
		return t.long
	}
	return t.short
}

// servers is a target of tests of ./integration on real servers; its long form has -soak.
func servers(name, run string, setup []string, paths ...string) target {
	return target{
		name: name, paths: paths, setup: setup,
		short: onServers(run, "./integration"),
		long:  onServers(run, "./integration", "-args", "-soak"),
	}
}

// onServers is the command that runs tests with servers of their own.
func onServers(run string, rest ...string) []string {
	return append(
		[]string{
			"go", "test", "-tags", "integration", "-count=1", "-vet=off", "-parallel=4", "-timeout=85m", "-v",
			"-run", run,
		},
		rest...,
	)
}

// inProcess is a target of tests that start no servers, with one form.
func inProcess(name string, rest []string, paths ...string) target {
	return target{
		name:  name,
		paths: paths,
		long:  append([]string{"go", "test", "-count=1", "-vet=off", "-timeout=85m"}, rest...),
	}
}

// Steps of setup that several targets share.
var (
	java    = []string{"java_programs"}
	secured = []string{"java_programs", "kerberos_kdc"}
	browser = []string{"java_programs", "browser_driver", "browser_program"}
	python  = []string{"java_programs", "python_venv", "python_oldest", "python_newest", "arrow_js"}
)

// named returns the targets of these names.
func named(names []string) (found []target, err error) {
	for _, name := range names {
		i := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("got target %q, want one of %s", name, strings.Join(targetNames(), ", "))
		}
		found = append(found, targets[i])
	}
	return found, nil
}

func targetNames() (names []string) {
	for _, t := range targets {
		names = append(names, t.name)
	}
	return names
}

// calledFor returns the targets that a change of these files calls for. A file calls for the target of
// the longest path that it lies below; several targets with an equally long path are all called for.
func calledFor(files []string) (found []target) {
	for _, t := range targets {
		if slices.ContainsFunc(files, func(file string) bool {
			return longest(t.paths, file) > 0 && longest(t.paths, file) == longestOfAll(file)
		}) {
			found = append(found, t)
		}
	}
	return found
}

func longestOfAll(file string) (n int) {
	for _, t := range targets {
		n = max(n, longest(t.paths, file))
	}
	return n
}

// longest returns the length of the longest of the paths that a file lies below, or 0.
func longest(paths []string, file string) (n int) {
	for _, path := range paths {
		if strings.HasPrefix(file, path) {
			n = max(n, len(path))
		}
	}
	return n
}

// forms are those that the target has.
func (t target) forms() []string {
	if t.short == nil {
		return []string{long}
	}
	return []string{short, long}
}

// nearest is the requested form, or the only one.
func (t target) nearest(form string) string {
	if t.short == nil {
		return long
	}
	return form
}
