// Package settingspage keeps the table of all variables on the page of settings, which is made from
// the code of both programs. It is no part of a program: its test compares the table, and writes it
// with -update.
package settingspage

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"downpour/gateway"
	"downpour/gateway/admin/opentsdbconf"
	"downpour/gateway/extra"
	"downpour/pushdown/process/settings"
)

// Path is that of the page.
const Path = "gateway/docs/settings.md"

// The part stands between these lines.
const (
	begin = "<!-- made from the code by make docs -->\n"
	end   = "<!-- end of what is made -->\n"
)

// Made returns the page with the table of all variables as the code has them.
func Made(page []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, fmt.Errorf("%s: want the lines %q and %q, between which the table of all variables is put", Path,
			strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return slices.Concat(before, []byte(begin+table()+end), after), nil
}

// Setting is a variable as the code has it.
type Setting struct {
	Name     string
	Default  string // as the struct tag has it, "" for none
	Kind     string // of its value
	Programs string
	Key      string // of an opentsdb.conf, "" for none
}

// Settings lists all variables of both programs, by name.
func Settings() []Setting {
	byName := map[string]Setting{}
	keys := opentsdbconf.Keys()
	for _, p := range []struct {
		name   string
		config any
	}{{"gateway", &gateway.Config{Extras: extra.All()}}, {"pushdown", new(settings.Pushdown)}} {
		for _, part := range settings.Structs(p.config) {
			for _, f := range taggedFields(reflect.TypeOf(part).Elem()) {
				name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
				s, known := byName[name]
				s = Setting{
					Name:     name,
					Default:  f.Tag.Get("envDefault"),
					Kind:     kindName(f.Type),
					Programs: p.name,
					Key:      keys[name],
				}
				if known {
					s.Programs = "both"
				}
				byName[name] = s
			}
		}
	}
	var all []Setting
	for _, s := range byName {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// taggedFields returns the fields that have a variable, also those of structs inside.
func taggedFields(t reflect.Type) (out []reflect.StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Tag.Get("env") != "":
			out = append(out, f)
		case f.Type.Kind() == reflect.Struct && f.IsExported() && f.Anonymous:
			out = append(out, taggedFields(f.Type)...)
		}
	}
	return out
}

// kindName returns what a variable's value is.
func kindName(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "time"
	case t.Kind() == reflect.Bool:
		return "`true` or `false`"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "number"
}

// table returns the table in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| variable | default | value | read by | `opentsdb.conf` |\n|---|---|---|---|---|\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, s := range Settings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, code(s.Default), s.Kind, s.Programs, code(s.Key))
	}
	return b.String()
}
