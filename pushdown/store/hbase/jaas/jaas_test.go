package jaas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/process/login"
)

// file is one as OpenTSDB's users have it, with what else Java allows.
const file = `/* of OpenTSDB
 */
Client {
  com.sun.security.auth.module.Krb5LoginModule required // with a keytab
  useKeyTab=true
  keyTab="/etc/opentsdb/a b.keytab"
  storeKey=true useTicketCache=false
  principal="opentsdb/h@R" /* ours */ debug="true";
};
Server{com.sun.security.auth.module.Krb5LoginModule Required useTicketCache="TRUE" ticketCache="FILE:/tmp/\x";
a.b.Other$Module optional x=y-1.2 "a key"="a \"quoted\" \101\n\75\400";};
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]Module{
		"Client": {{krb5Module, "REQUIRED",
			map[string]string{"useKeyTab": "true", "keyTab": "/etc/opentsdb/a b.keytab", "storeKey": "true",
				"useTicketCache": "false", "principal": "opentsdb/h@R", "debug": "true"}}},
		"Server": {
			{krb5Module, "REQUIRED", map[string]string{"useTicketCache": "TRUE", "ticketCache": "FILE:/tmp/x"}},
			{"a.b.Other$Module", "OPTIONAL", map[string]string{"x": "y-1.2", "a key": "a \"quoted\" A\n= 0"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if got, err := Parse([]byte(" // nothing\r\n")); err != nil || len(got) != 0 {
		t.Errorf("an empty file: got %v, %v", got, err)
	}
	if got, err := Parse([]byte("// a comment\rA{};")); err != nil || len(got) != 1 {
		t.Errorf("lines that end as of old: got %v, %v", got, err)
	}
}

// A fault is named with its line.
func TestParse_errors(t *testing.T) {
	for text, want := range map[string]string{
		"A {\n B required x=/etc/k;\n};":          "line 2: got a / without quotes",
		"A {\n B required x=a@R;\n};":             `line 2: got the character '@', want a value in "…"`,
		"A {\n B required x=1;\n};":               "line 2: got the character '1'",
		"A {\n B required x='a';\n};":             "got the character '\\''",
		"A {\n B required x=\"a\n\";\n};":         "line 2: string: got no end in its line",
		"A {\n B required x=\"a":                  "line 2: string: got no end in its line",
		"A {\n B required x=\"a\\":                "string: got no end",
		"A {\n B maybe;\n};":                      `flag of B: got "MAYBE", want one of`,
		"A {\n B required x;\n};":                 `got ";", want =`,
		"A {\n B required x=;\n};":                `got ";", want the value of x`,
		"A {\n B required\n};":                    `line 3: got "}", want an option or ;`,
		"A {\n B required;\n}":                    "got the end of the file, want ;",
		"A {\n B required;":                       "got the end of the file, want the class of a login module",
		"A":                                       "got the end of the file, want {",
		"{};":                                     `got "{", want the name of a section`,
		"A{}; A{};":                               `section "A": it is there twice`,
		"A{}; /* B":                               "comment: got no end",
		"A{};\n\n}":                               `line 3: got "}", want the name`,
		"\ufeffA{}; -":                            "got the character '-'",
		"A { B required x=\"\\\n\";\n y=z;\n};  ": `line 3: got "=", want a flag`,
	} {
		got, err := Parse([]byte(text))
		if !errors.Is(err, ErrSyntax) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
}

// No error has a word of the file, which may be a password, except symbols, options, classes and
// flags.
//
//fault:password-of-jaas-in-error "a word" => p.got
func TestParse_secrets(t *testing.T) {
	for _, text := range []string{
		`A { B required password "5eCr3t"; };`, `A { B required password 5eCr3t; };`,
		`A { B required; password="5eCr3t"; };`, `A { B required password="x" "5eCr3t" "5eCr3t"; };`,
		`A { B required password = "x"; } "5eCr3t"`, `A "5eCr3t" {};`, `A { B required password="5eCr3t"`,
		`A { B required password="5eCr3t;` + "\n};", `A { B required password={5eCr3t}; };`,
	} {
		if _, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "5eCr3t") {
			t.Errorf("%s: %v, want an error without the password", text, err)
		}
	}
}

// What a section says is how we log in, or an error says why it cannot be.
func TestLoginOf(t *testing.T) {
	const keytab = `useKeyTab=true keyTab="/k" principal="p@R"`
	for _, tc := range []struct {
		modules string
		login   login.Login
		want    string // in the error
	}{
		{keytab, login.Login{Keytab: "/k", Principal: "p@R"}, ""},
		{keytab + ` useTicketCache=true ticketCache="/c" storeKey=true doNotPrompt=true renewTGT=true useless="${x}"`,
			login.Login{Keytab: "/k", Principal: "p@R"}, ""},
		{`useKeyTab=True keyTab="file:/k" principal=p`, login.Login{Keytab: "/k", Principal: "p"}, ""},
		{`useTicketCache=true`, login.Login{Cache: true}, ""},
		{`useTicketCache=true useKeyTab=yes ticketCache="FILE:/c" principal="p"`,
			login.Login{Cache: true, CacheFile: "/c", Principal: "p"}, ""},
		{keytab + ` isInitiator=true`, login.Login{Keytab: "/k", Principal: "p@R"}, ""},
		{keytab + ` isInitiator=false`, login.Login{}, "isInitiator: got false, want true"},
		{``, login.Login{}, "useKeyTab and useTicketCache: got neither"},
		{`storeKey=true principal="p"`, login.Login{}, "useKeyTab and useTicketCache: got neither"},
		{`useFirstPass=true`, login.Login{}, "nobody is there to enter a password"},
		{`keyTab="/k" principal="p"`, login.Login{}, `keyTab is set, but useKeyTab: got "", want true`},
		{`keyTab="/k" useKeyTab=false principal="p"`, login.Login{},
			`keyTab is set, but useKeyTab: got "false", want true`},
		{`ticketCache="/k"`, login.Login{}, `ticketCache is set, but useTicketCache: got "", want true`},
		{`useKeyTab=true principal="p"`, login.Login{}, "keyTab: got nothing"},
		{`useKeyTab=true keyTab="/k"`, login.Login{}, "principal: got nothing"},
		{`useKeyTab=true keyTab="${user.home}/k" principal="p"`, login.Login{},
			`keyTab: got "${user.home}/k", want it without`},
		{`useTicketCache=true ticketCache="${x}"`, login.Login{}, "ticketCache: got"},
		{`useKeytab=true`, login.Login{}, "got neither"},
		{keytab + `; ` + krb5Module + ` optional useTicketCache=true`, login.Login{}, "login modules: got"},
	} {
		sections, err := Parse([]byte("Tsdb { " + krb5Module + " required " + tc.modules + "; };"))
		if err != nil {
			t.Fatalf("%s: %v", tc.modules, err)
		}
		got, err := LoginOf(sections, "Tsdb")
		if diff := cmp.Diff(tc.login, got); diff != "" || (err != nil) != (tc.want != "") ||
			err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q; login (-want +got):\n%s", tc.modules, err, tc.want, diff)
		}
	}

	sections, err := Parse([]byte(file + "IBM { com.ibm.security.auth.module.Krb5LoginModule required; };"))
	if err != nil {
		t.Fatal(err)
	}
	for section, want := range map[string]string{
		"client": `section "client": it is not there, got ["Client" "IBM" "Server"]`,
		"Server": `login modules: got ["com.sun.security.auth.module.Krb5LoginModule" "a.b.Other$Module"]`,
		"IBM": `got ["com.ibm.security.auth.module.Krb5LoginModule"], ` +
			`want com.sun.security.auth.module.Krb5LoginModule alone`,
	} {
		if _, err := LoginOf(sections, section); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", section, err, want)
		}
	}
}

// quoted writes a value as a string of the file.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n', '\r':
			b.WriteByte('\\')
			b.WriteString(map[byte]string{'"': `"`, '\\': `\`, '\n': "n", '\r': "r"}[c])
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

// Any text is parsed or refused, and what is parsed can be written, and parsed again, equal.
func FuzzParse(f *testing.F) {
	f.Add(file)
	f.Add("A{};")
	f.Add(`A { B required x="\777\1";; };`)
	f.Add("A/**/{//\n};/")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse([]byte(text))
		if err != nil {
			return
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(first)) {
			b.WriteString(quoted(name) + "{")
			for _, m := range first[name] {
				b.WriteString(quoted(m.Class) + " " + m.Flag)
				for key, value := range m.Options {
					b.WriteString(" " + quoted(key) + "=" + quoted(value))
				}
				b.WriteString(";")
			}
			b.WriteString("};")
			_, _ = LoginOf(first, name)
		}
		again, err := Parse([]byte(b.String()))
		if err != nil {
			t.Fatalf("%q: %v", b.String(), err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%q (-first +again):\n%s", b.String(), diff)
		}
	})
}
