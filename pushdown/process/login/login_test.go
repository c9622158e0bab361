package login

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Login{
		"":                         {},
		"keytab:/k:downpour@R":     {Keytab: "/k", Principal: "downpour@R"},
		"keytab:C:/k:name/_HOST@R": {Keytab: "C:/k", Principal: "name/_HOST@R"},
		"cache":                    {Cache: true},
		"cache:/run/tickets":       {Cache: true, CacheFile: "/run/tickets"},
		"cache:FILE:/run/tickets":  {Cache: true, CacheFile: "FILE:/run/tickets"},
		"keytab:relative:downpour": {Keytab: "relative", Principal: "downpour"},
	} {
		got, err := Parse(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v, -want +got\n%s", text, err, d)
		}
	}
	for _, text := range []string{"keytab", "keytab:", "keytab:/k", "keytab:/k:", "keytab::p", "cache:", "ccache:/x",
		"/k", "on", ":", "5eCr3t", "password:5eCr3t", "p@R:5eCr3t"} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_HBASE_KERBEROS") ||
			strings.Contains(err.Error(), "5eCr3t") {
			t.Errorf("%q: got %+v, %v, want an error that names the variable and not its value", text, got, err)
		}
	}
}
