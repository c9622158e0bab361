// Package jaas reads a JAAS login configuration, the file with OpenTSDB's keytab and principal,
// which its Java gets by -Djava.security.auth.login.config:
//
//	Client {
//	  com.sun.security.auth.module.Krb5LoginModule required
//	  useKeyTab=true
//	  keyTab="/etc/opentsdb/opentsdb.keytab"
//	  principal="opentsdb/host@REALM";
//	};
//
// A section has login modules, each with a flag and options. The syntax is Java's: comments
// are // and /* */, and what is not letters, digits, dots, dashes, $, _ and * stands in
// quotes. Files that Java refuses are refused, and so are those that it would misread: a /
// without quotes, which begins a comment there, and a string that does not end in its line.
// Source: sun.security.provider.ConfigFile, java.io.StreamTokenizer,
// com.sun.security.auth.module.Krb5LoginModule.
package jaas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"downpour/pushdown/process/login"
)

// Module is a login module of a section.
type Module struct {
	Class   string
	Flag    string // REQUIRED, REQUISITE, SUFFICIENT or OPTIONAL
	Options map[string]string
}

// flags are those that a module may have.
var flags = []string{"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"}

// ErrSyntax is returned for what is no login configuration.
var ErrSyntax = errors.New("cannot be parsed")

// Parse returns the modules of all sections.
func Parse(text []byte) (map[string][]Module, error) {
	p := &parser{text: string(text), line: 1}
	sections := map[string][]Module{}
	p.next()
	for p.err == nil && p.kind != end {
		name := p.value("the name of a section")
		p.want("{")
		var modules []Module
		for p.err == nil && !p.is("}") {
			modules = append(modules, p.module())
		}
		p.want("}")
		p.want(";")
		if _, twice := sections[name]; twice {
			p.fail("section %q: it is there twice", name)
		}
		sections[name] = modules
	}
	if p.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, p.err)
	}
	return sections, nil
}

// module parses a login module up to its semicolon. The last of equal options counts.
func (p *parser) module() Module {
	m := Module{Class: p.value("the class of a login module"), Options: map[string]string{}}
	m.Flag = strings.ToUpper(p.value("a flag"))
	if !slices.Contains(flags, m.Flag) {
		p.fail("flag of %s: got %q, want one of %v", m.Class, m.Flag, flags)
	}
	for p.err == nil && !p.is(";") {
		key := p.value("an option or ;")
		p.want("=")
		m.Options[key] = p.value("the value of " + key)
	}
	p.want(";")
	return m
}

const krb5Module = "com.sun.security.auth.module.Krb5LoginModule"

// LoginOf returns how the one module of a section logs in. Options that say how Java is to do
// it are ignored. With both a keytab and a ticket cache the keytab is used, for Java needs it
// once the ticket cache has ended.
func LoginOf(sections map[string][]Module, section string) (login.Login, error) {
	modules, found := sections[section]
	if !found {
		return login.Login{}, fmt.Errorf("section %q: it is not there, got %q", section,
			slices.Sorted(maps.Keys(sections)))
	}
	if len(modules) != 1 || modules[0].Class != krb5Module {
		var classes []string
		for _, m := range modules {
			classes = append(classes, m.Class)
		}
		return login.Login{}, fmt.Errorf("section %q: login modules: got %q, want %s alone", section, classes,
			krb5Module)
	}

	as, err := modules[0].login()
	if err != nil {
		return login.Login{}, fmt.Errorf("section %q: %w", section, err)
	}
	return as, nil
}

func (m *Module) login() (login.Login, error) {
	on := func(option string) bool { return strings.EqualFold(m.Options[option], "true") }
	keytab, cache := on("useKeyTab"), on("useTicketCache")
	switch {
	case m.Options["isInitiator"] != "" && !on("isInitiator"):
		return login.Login{}, errors.New("isInitiator: got false, want true: it is a server's")
	case m.Options["keyTab"] != "" && !keytab:
		return login.Login{}, fmt.Errorf("keyTab is set, but useKeyTab: got %q, want true", m.Options["useKeyTab"])
	case m.Options["ticketCache"] != "" && !cache:
		return login.Login{}, fmt.Errorf("ticketCache is set, but useTicketCache: got %q, want true",
			m.Options["useTicketCache"])
	case !keytab && !cache:
		return login.Login{}, errors.New(
			"useKeyTab and useTicketCache: got neither, want one to be true: nobody is there to enter a password")
	case keytab && m.Options["keyTab"] == "":
		return login.Login{}, errors.New("keyTab: got nothing, want the path of a keytab")
	case keytab && m.Options["principal"] == "":
		return login.Login{}, errors.New("principal: got nothing, want that of the keytab")
	}
	for _, option := range []string{"keyTab", "ticketCache", "principal"} {
		// They are Java's system properties, which are unknown here.
		if strings.Contains(m.Options[option], "${") {
			return login.Login{}, fmt.Errorf("%s: got %q, want it without ${…}", option, m.Options[option])
		}
	}

	as := login.Login{Principal: m.Options["principal"]}
	if keytab {
		as.Keytab = path(m.Options["keyTab"])
	} else {
		as.Cache, as.CacheFile = true, path(m.Options["ticketCache"])
	}
	return as, nil
}

// path returns the path of FILE:PATH or PATH.
func path(name string) string {
	const prefix = "FILE:"
	if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
		return name[len(prefix):]
	}
	return name
}
