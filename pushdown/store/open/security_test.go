package open

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/pushdown/process/login"
)

// How we log in stands in one variable, or in a login configuration of Java's.
func TestSecurity_login(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	const module = "com.sun.security.auth.module.Krb5LoginModule required "
	text := "Client { " + module + `useKeyTab=true keyTab="/k" principal="p@R"; };
		File { ` + module + `useTicketCache=true ticketCache="/c"; };
		User { ` + module + `useTicketCache=true principal="p@R"; };
		Other { a.Other required; };`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.conf")
	if err := os.WriteFile(bad, []byte("Client {"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		security Security
		want     login.Login
		err      string
	}{
		"none": {Security{JAASSection: "Client"}, login.Login{}, ""},
		"variable": {Security{Kerberos: "keytab:/x:q", JAASSection: "Client"},
			login.Login{Keytab: "/x", Principal: "q"}, ""},
		"keytab": {Security{JAAS: path, JAASSection: "Client"}, login.Login{Keytab: "/k", Principal: "p@R"},
			""},
		"ticket cache":   {Security{JAAS: path, JAASSection: "File"}, login.Login{Cache: true, CacheFile: "/c"}, ""},
		"the user's":     {Security{JAAS: path, JAASSection: "User"}, login.Login{Cache: true, Principal: "p@R"}, ""},
		"no section":     {Security{JAAS: path, JAASSection: "Tsdb"}, login.Login{}, `section "Tsdb": it is not there`},
		"another module": {Security{JAAS: path, JAASSection: "Other"}, login.Login{}, `got ["a.Other"]`},
		"no file":        {Security{JAAS: path + "x", JAASSection: "Client"}, login.Login{}, "no such file"},
		"a cut file":     {Security{JAAS: bad, JAASSection: "Client"}, login.Login{}, "cannot be parsed: line 1"},
	} {
		got, err := tc.security.login()
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if _, err := tc.security.open(nil); tc.err != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), "DOWNPOUR_HBASE_JAAS")) {
			t.Errorf("%s: open: got %v, want an error that names the variable", name, err)
		}
	}
}
