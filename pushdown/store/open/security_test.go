package open

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A login configuration gives what is not set; what is set as well must be the same.
func TestSecurity_withJAAS(t *testing.T) {
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
		got                 Security
		kerberos, principal string
		want                string // in the error
	}{
		"none":                 {Security{Kerberos: "keytab:/x", Principal: "x", JAASSection: "Client"}, "keytab:/x", "x", ""},
		"keytab":               {Security{JAAS: path, JAASSection: "Client"}, "keytab:/k", "p@R", ""},
		"ticket cache":         {Security{JAAS: path, JAASSection: "File"}, "ccache:/c", "", ""},
		"the user's":           {Security{JAAS: path, JAASSection: "User"}, "ccache", "p@R", ""},
		"principal beside":     {Security{JAAS: path, JAASSection: "File", Principal: "x"}, "ccache:/c", "x", ""},
		"the same":             {Security{JAAS: path, JAASSection: "Client", Kerberos: "keytab:/k", Principal: "p@R"}, "keytab:/k", "p@R", ""},
		"another keytab":       {Security{JAAS: path, JAASSection: "Client", Kerberos: "keytab:/x"}, "", "", `section "Client": got keytab:/k, but DOWNPOUR_HBASE_KERBEROS=keytab:/x`},
		"another way":          {Security{JAAS: path, JAASSection: "User", Kerberos: "ccache:/c"}, "", "", "got ccache, but DOWNPOUR_HBASE_KERBEROS=ccache:/c"},
		"another principal":    {Security{JAAS: path, JAASSection: "Client", Principal: "p"}, "", "", "principal: got p@R, but DOWNPOUR_HBASE_PRINCIPAL=p"},
		"no section":           {Security{JAAS: path, JAASSection: "Tsdb"}, "", "", `section "Tsdb": it is not there`},
		"another module":       {Security{JAAS: path, JAASSection: "Other"}, "", "", `got ["a.Other"]`},
		"no login file":        {Security{JAAS: path + "x", JAASSection: "Client"}, "", "", "no such file"},
		"no login file at all": {Security{JAAS: bad, JAASSection: "Client"}, "", "", "cannot be parsed: line 1"},
	} {
		got, err := tc.got.withJAAS()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if diff := cmp.Diff([]string{tc.kerberos, tc.principal}, []string{got.Kerberos, got.Principal}); err == nil && diff != "" {
			t.Errorf("%s: Kerberos and principal (-want +got):\n%s", name, diff)
		}
		if _, err := tc.got.open(nil); tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "DOWNPOUR_HBASE_JAAS="+tc.got.JAAS+": ")) {
			t.Errorf("%s: open: got %v, want an error that names the variable", name, err)
		}
	}
}
