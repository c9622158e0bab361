package kerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Config is our identity and its proof. Either Keytab or TicketCache is set.
type Config struct {
	// Keytab is the path of a file with the keys of Principal.
	Keytab string
	// TicketCache is the path of a file with a ticket-granting ticket.
	TicketCache string
	// Principal is ours: name@REALM, name/host@REALM, or with _HOST in the place of
	// the host, which is then this machine's name. Without a realm it is krb5.conf's
	// default. Empty means that of the ticket cache.
	Principal string
	// Krb5Conf lists the paths of krb5.conf files with colons between them; missing ones are
	// skipped, but one must exist. Default: /etc/krb5.conf.
	Krb5Conf string
}

const defaultKrb5Conf = "/etc/krb5.conf"

// principal is a name in a realm.
type principal struct {
	types.PrincipalName
	realm string
}

// String returns name@REALM.
func (p principal) String() string { return p.PrincipalNameString() + "@" + p.realm }

// parsePrincipal parses name[/host][@REALM].
func parsePrincipal(text, defaultRealm string) (principal, error) {
	name, realm, found := strings.Cut(text, "@")
	if !found {
		realm = defaultRealm
	}
	parts := strings.Split(name, "/")
	if slices.Contains(parts, "") || realm == "" || strings.ContainsAny(text, " \t\\") {
		return principal{}, fmt.Errorf("principal: got %q (default realm %q), want name@REALM or name/host@REALM",
			text, defaultRealm)
	}
	return principal{types.PrincipalName{NameType: nametype.KRB_NT_PRINCIPAL, NameString: parts}, realm}, nil
}

// hostMark is replaced in a principal by the name of its host.
const hostMark = "_HOST"

// ServerPrincipal puts a host's name into a principal with _HOST, name/_HOST[@REALM].
// Principals are in lower case; for an address the name is looked up, the first in
// order if it has several.
func ServerPrincipal(ctx context.Context, pattern, host string) string {
	return serverPrincipal(ctx, pattern, host, net.DefaultResolver.LookupAddr)
}

func serverPrincipal(ctx context.Context, pattern, host string,
	lookup func(context.Context, string) ([]string, error)) string {
	if !strings.Contains(pattern, "/"+hostMark) {
		return pattern
	}
	if net.ParseIP(host) != nil {
		if names, err := lookup(ctx, host); err == nil && len(names) > 0 {
			host = slices.Min(names)
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.Replace(pattern, "/"+hostMark, "/"+host, 1)
}

// ownHosts returns the names that this machine may have in a principal, the likeliest
// first.
func ownHosts() []string {
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	hosts := []string{name}
	if full, err := net.LookupCNAME(name); err == nil {
		hosts = append([]string{strings.TrimSuffix(full, ".")}, hosts...)
	}
	return hosts
}

// loadKrb5Conf reads the files of a path list. Requests for the tickets of services then
// want AES alone, because wrap tokens of other types are unlike AES's.
func loadKrb5Conf(paths string) (*config.Config, error) {
	if paths == "" {
		paths = defaultKrb5Conf
	}

	text := confText{sections: map[string]*strings.Builder{}, defaults: map[string]bool{}}
	var errs []error
	found := false
	for path := range strings.SplitSeq(paths, ":") {
		if path == "" {
			continue
		}
		err := text.read(path, 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("krb5.conf: %w", err)
		}
		errs = append(errs, err)
		found = found || err == nil
	}
	if !found {
		return nil, fmt.Errorf("krb5.conf: %w", errors.Join(errs...))
	}

	conf, err := parsed(func() (*config.Config, error) { return config.NewFromString(text.String()) })
	// Directives that gokrb5 does not know do not matter here.
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fmt.Errorf("krb5.conf %s: %w", paths, err)
	}

	aes := func(ids []int32) (out []int32) {
		for _, id := range ids {
			if id >= sasl.AES128SHA1 && id <= sasl.AES256SHA2 {
				out = append(out, id)
			}
		}
		return out
	}
	conf.LibDefaults.DefaultTGSEnctypeIDs = aes(conf.LibDefaults.DefaultTGSEnctypeIDs)
	if len(conf.LibDefaults.DefaultTGSEnctypeIDs) == 0 {
		return nil, fmt.Errorf("krb5.conf %s: default_tgs_enctypes: got %v, want one of AES", paths,
			conf.LibDefaults.DefaultTGSEnctypes)
	}
	return conf, nil
}

// included matches the files of an includedir that count.
var included = regexp.MustCompile(`^([A-Za-z0-9_-]+|[^.].*\.conf)$`)

const maxIncludes = 10 // one in another

// confText is the text of some krb5.conf files with each section once: of several, gokrb5
// takes only the last.
type confText struct {
	names    []string // of sections, in order
	sections map[string]*strings.Builder
	defaults map[string]bool // keys of [libdefaults] so far: the first of equal ones counts
}

// String returns the text of one file.
func (t *confText) String() string {
	var all strings.Builder
	for _, name := range t.names {
		all.WriteString("[" + name + "]\n" + t.sections[name].String())
	}
	return all.String()
}

// add appends a line to a section.
func (t *confText) add(section, line string) {
	if section == "libdefaults" {
		key, _, found := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if found && t.defaults[key] {
			return
		}
		t.defaults[key] = true
	}
	if t.sections[section] == nil {
		t.names = append(t.names, section)
		t.sections[section] = &strings.Builder{}
	}
	t.sections[section].WriteString(strings.TrimRight(line, "\r\n") + "\n")
}

// read reads a file with its includes, which gokrb5 does not know. depth is how many
// files include it, each the next.
func (t *confText) read(path string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: more than %d files include each other", path, maxIncludes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	section := ""
	for line := range strings.Lines(string(b)) {
		trimmed := strings.TrimSpace(line)
		directive, what, _ := strings.Cut(trimmed, " ")
		switch {
		case directive == "include":
			err = t.read(strings.TrimSpace(what), depth+1)
		case directive == "includedir":
			err = t.readDir(strings.TrimSpace(what), depth+1)
		case strings.HasPrefix(trimmed, "["):
			section, _, _ = strings.Cut(trimmed[1:], "]")
		case section != "" && trimmed != "":
			t.add(section, line)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", path, directive, err)
		}
	}
	return nil
}

// readDir reads the files of an includedir.
func (t *confText) readDir(dir string, depth int) error {
	entries, err := os.ReadDir(dir)
	// Distributions include a folder that need not be there.
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !included.MatchString(e.Name()) {
			continue
		}
		if err := t.read(filepath.Join(dir, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

// parsed calls a parser of gokrb5. Some of them panic over what they cannot parse.
func parsed[T any](parse func() (T, error)) (out T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	return parse()
}
