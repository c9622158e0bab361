// Package opentsdbconf reads an opentsdb.conf, so that users of OpenTSDB can keep their
// settings. It translates its keys into DOWNPOUR_* variables, which are the only settings:
//
//	tsd.storage.salt.width = 1          DOWNPOUR_SALT_WIDTH=1
//	tsd.storage.hbase.zk_quorum = a,b   DOWNPOUR_STORE=hbase:a,b/hbase
//	tsd.network.port = 4242             DOWNPOUR_LISTEN=127.0.0.1:4242
//	tsd.http.staticroot = /usr/share    (a note, without the value: not honoured, and why)
//
// A variable that is set wins over the file. For each key that this program does not
// honour there is a note, one line for the log at start: otherwise users would find out
// by the damage that a setting has no effect.
// Source: net.opentsdb.utils.Config, java.util.Properties.
package opentsdbconf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/magiconair/properties"

	"downpour/pushdown/process/list"
)

// Conf is a file's keys and values.
type Conf struct {
	name    string
	values  map[string]string
	sources map[string][]string // by variable: the keys that have made its value
}

// Load reads a file; see Parse.
func Load(path string) (*Conf, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_OPENTSDB_CONF: %w", err)
	}
	return Parse(path, text)
}

// Parse reads the text of a file of the given name: Java properties in
// ISO-8859-1. The last of equal keys counts.
func Parse(name string, text []byte) (*Conf, error) {
	// Java's properties know no ${…}: it is part of the value.
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := &Conf{name: name, values: make(map[string]string, p.Len())}
	for k, v := range p.Map() {
		// In Java spaces after a value belong to it, but no number, host or table name
		// ends with a space.
		c.values[k] = strings.TrimSpace(v)
	}
	return c, nil
}

// Environment adds the settings of the file to an environment. merged holds environ, and
// a variable for each honoured key whose variable is not set in environ, or empty. notes
// has a line for each key that is not honoured, sorted. The error names every value that
// cannot be parsed.
func (c *Conf) Environment(environ map[string]string) (merged map[string]string, notes []string, err error) {
	c.sources = map[string][]string{}
	t := &translation{conf: c, environ: environ, merged: maps.Clone(environ)}
	if t.merged == nil {
		t.merged = map[string]string{}
	}

	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		t.translateKey(key)
	}
	// These make variables of several keys.
	t.store()
	t.listen()
	t.rollups()
	t.security()

	slices.Sort(t.notes)
	return t.merged, t.notes, errors.Join(t.errs...)
}

// variables are the names with which errors of settings begin; a star stands for the rest of a name.
var variables = regexp.MustCompile(`DOWNPOUR_[A-Z0-9_]+\*?`)

// Blame names this file and its keys in an error, which may be joined of several, about variables
// that Environment has set: who wrote the file has never seen them.
func (c *Conf) Blame(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range all.Unwrap() {
			out = append(out, c.Blame(e))
		}
		return errors.Join(out...)
	}
	if err == nil {
		return nil
	}

	var keys []string
	begin, _, _ := strings.Cut(err.Error(), ": ")
	for _, name := range variables.FindAllString(begin, -1) {
		prefix, many := strings.CutSuffix(name, "*")
		for variable, made := range c.sources {
			if variable == name || many && strings.HasPrefix(variable, prefix) {
				keys = append(keys, made...)
			}
		}
	}
	if len(keys) == 0 {
		return err
	}
	slices.Sort(keys)
	blamed := strings.Join(slices.Compact(keys), ", ")
	return fmt.Errorf("%s: %s: %w", c.name, blamed, err) //fault:conf-error-without-key TestConfigure_blamesKey
}

// translation is one call of Environment.
type translation struct {
	conf            *Conf
	environ, merged map[string]string
	notes           []string
	errs            []error
}

// translateKey gives the variable of a key of the file the key's value, or records why it does not:
// as a note, or as an error that ends the start. It passes over composed keys, which store, listen,
// rollups and security translate, and over those whose value is what Downpour does anyway.
func (t *translation) translateKey(key string) {
	value := t.conf.values[key]
	if slices.Contains(composed, key) {
		return
	}

	if rule, ok := honoured[key]; ok {
		translated, err := rule.read(value)
		switch {
		case err != nil:
			t.refuse(key, value, err)
		case translated == "" && value != "": // the 0 of milliseconds, which in OpenTSDB is no bound
			t.note(key, rule.variable+" keeps its default: no bound at all is not allowed")
		default:
			t.set(rule.variable, translated, key)
		}
		return
	}

	if only, ok := constant[key]; ok {
		switch {
		case only.is(value):
		case slices.Contains(demanded, key):
			t.refuse(key, value, fmt.Errorf("%s: %s", only.value, only.reason))
		default:
			t.note(key, only.reason)
		}
		return
	}
	t.note(key, unknownReason(key))
}

// refuse adds the error of a key whose value is not what is wanted.
func (t *translation) refuse(key, got string, want error) {
	t.errs = append(t.errs, fmt.Errorf("%s: %s: got %q, want %w", t.conf.name, key, got, want))
}

// set gives a variable the value that some keys make, unless the environment has one: then a
// note reports each of these keys that the file has.
func (t *translation) set(variable, value string, keys ...string) {
	if t.environ[variable] == "" {
		t.merged[variable] = value
		t.conf.sources[variable] = slices.DeleteFunc(keys,
			func(key string) bool { _, given := t.conf.values[key]; return !given })
		return
	}
	for _, key := range keys {
		if _, given := t.conf.values[key]; given {
			t.note(key, variable+" is set")
		}
	}
}

// note adds a note about a key that is not honoured. The value is left out: it may be a password, and
// the note goes to the log.
func (t *translation) note(key, reason string) {
	t.notes = append(t.notes, fmt.Sprintf("%s: %s is not honoured: %s",
		t.conf.name, key, reason)) //fault:secret-in-notes TestConf_Environment_secrets
}

// Keys that are translated together with others.
const (
	quorumKey  = "tsd.storage.hbase.zk_quorum"
	basedirKey = "tsd.storage.hbase.zk_basedir"
	portKey    = "tsd.network.port"
	bindKey    = "tsd.network.bind"
	enableKey  = "tsd.rollups.enable"
	rollupsKey = "tsd.rollups.config"

	authEnableKey      = "hbase.security.auth.enable"
	authenticationKey  = "hbase.security.authentication"
	clientConfigKey    = "hbase.sasl.clientconfig"
	serverPrincipalKey = "hbase.kerberos.regionserver.principal"
	protectionKey      = "hbase.rpc.protection"
)

var composed = []string{quorumKey, basedirKey, portKey, bindKey, enableKey, rollupsKey,
	authEnableKey, authenticationKey, clientConfigKey, serverPrincipalKey, protectionKey}

// store sets DOWNPOUR_STORE. If the file has neither key the variable keeps its default.
// OpenTSDB would use an HBase on this machine then, but nobody has asked to write there.
func (t *translation) store() {
	quorum, named := t.conf.values[quorumKey]
	basedir, rooted := t.conf.values[basedirKey]
	switch {
	case !named && !rooted:
		if t.environ["DOWNPOUR_STORE"] == "" {
			t.notes = append(t.notes, fmt.Sprintf("%s: %s is not there: DOWNPOUR_STORE keeps its default, not HBase "+
				"on this machine", t.conf.name, quorumKey))
		}
		return
	case !named:
		quorum = "localhost" // OpenTSDB's default
	}
	if basedir == "" {
		basedir = "/hbase"
	}

	t.set("DOWNPOUR_STORE", "hbase:"+strings.Join(list.Split(quorum), ",")+"/"+strings.Trim(basedir, "/"), quorumKey,
		basedirKey)
}

// listen sets DOWNPOUR_LISTEN. Without a bind address OpenTSDB listens on all addresses;
// here it is loopback alone.
func (t *translation) listen() {
	port, hasPort := t.conf.values[portKey]
	bind, hasBind := t.conf.values[bindKey]
	if !hasPort && !hasBind {
		return
	}
	if !hasPort {
		port = "4242"
	}

	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		t.errs = append(t.errs, fmt.Errorf("%s: %s: got %q, want a port of 1 to 65535", t.conf.name, portKey, port))
		return
	}
	if bind == "" {
		bind = "127.0.0.1"
		if t.environ["DOWNPOUR_LISTEN"] == "" {
			t.notes = append(t.notes, fmt.Sprintf("%s: %s is not there: listening on 127.0.0.1, where OpenTSDB "+
				"listens everywhere", t.conf.name, bindKey))
		}
	}
	// An IPv6 address stands in brackets before a port.
	if strings.Contains(bind, ":") && !strings.HasPrefix(bind, "[") {
		bind = "[" + bind + "]"
	}
	t.set("DOWNPOUR_LISTEN", bind+":"+port, portKey, bindKey)
}

// rollups sets DOWNPOUR_ROLLUPS if rollups are enabled.
func (t *translation) rollups() {
	text, given := t.conf.values[rollupsKey]
	switch {
	case !readBool(t.conf.values[enableKey]):
		if given {
			t.note(rollupsKey, enableKey+" is not true")
		}
	case text == "":
		t.errs = append(t.errs, fmt.Errorf("%s: %s: got %q, want the JSON of rollups or the path of a .json file, "+
			"because %s is true", t.conf.name, rollupsKey, text, enableKey))
	default:
		t.set("DOWNPOUR_ROLLUPS", text, enableKey, rollupsKey)
	}
}

// security takes over how HBase's servers are connected to. Our keytab and principal stand
// in a JAAS file of OpenTSDB's Java, and not in this one: without a variable that names that
// file, or them, a store on a secured HBase is an error.
func (t *translation) security() {
	enable, given := t.conf.values[authEnableKey]
	kerberos := strings.EqualFold(t.conf.values[authenticationKey], "kerberos") && (!given || readBool(enable))
	if !kerberos {
		for _, key := range []string{clientConfigKey, serverPrincipalKey, protectionKey} {
			if _, given := t.conf.values[key]; given {
				t.note(key, authenticationKey+" is not kerberos")
			}
		}
		return
	}

	if p := t.conf.values[serverPrincipalKey]; p != "" {
		t.set("DOWNPOUR_HBASE_PRINCIPAL", p, serverPrincipalKey)
	}
	if p := t.conf.values[protectionKey]; p != "" {
		t.set("DOWNPOUR_HBASE_PROTECTION", strings.ToLower(p), protectionKey)
	}

	section, named := t.conf.values[clientConfigKey]
	switch {
	case t.environ["DOWNPOUR_HBASE_JAAS"] != "":
		if section != "" {
			t.set("DOWNPOUR_HBASE_JAAS_SECTION", section, clientConfigKey)
		}
	case t.environ["DOWNPOUR_HBASE_KERBEROS"] != "":
		if named {
			t.note(clientConfigKey, "DOWNPOUR_HBASE_KERBEROS is set")
		}
	case strings.HasPrefix(t.merged["DOWNPOUR_STORE"], "hbase"):
		t.errs = append(t.errs, fmt.Errorf("%s: %s = %s: neither DOWNPOUR_HBASE_JAAS nor DOWNPOUR_HBASE_KERBEROS is "+
			"set, want in the first the path of the JAAS file (-Djava.security.auth.login.config), whose section %s "+
			"counts, or in the second keytab:FILE:PRINCIPAL",
			t.conf.name, authenticationKey, t.conf.values[authenticationKey], cmp.Or(section, "Client")))
	}
}

// Keys returns, by variable, the key of an opentsdb.conf that becomes its value. Variables that several
// keys make up are missing.
func Keys() map[string]string {
	keys := map[string]string{}
	for key, r := range honoured {
		keys[r.variable] = key
	}
	return keys
}
