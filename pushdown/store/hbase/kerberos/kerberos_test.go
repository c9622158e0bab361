package kerberos

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store/hbase/kerberos/kerberostest"
	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
)

// realm is a KDC with one server and us.
type realm struct {
	*kerberostest.KDC
	server string // keytab
	cfg    Config
}

func startRealm(t *testing.T) *realm {
	t.Helper()
	k := kerberostest.StartKDC(t)
	return &realm{k, k.AddPrincipal(server, "the server's"),
		Config{Keytab: k.AddPrincipal("me", "ours"), Principal: "me", Krb5Conf: k.Krb5Conf()}}
}

func (r *realm) open(t *testing.T) *Client {
	t.Helper()
	c, err := Open(r.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shake makes a context with a server and sends one token each way.
func (r *realm) shake(t *testing.T, c *Client, s kerberostest.Server) error {
	t.Helper()
	return r.shakeWith(t, c, server, s)
}

// shakeWith is shake with the server of a principal.
func (r *realm) shakeWith(t *testing.T, c *Client, name string, s kerberostest.Server) error {
	t.Helper()
	x, err := c.Initiate(t.Context(), name)
	if err != nil {
		return err
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	s.Keytab = r.server
	behind, end := net.Pipe()
	go s.Serve(theirs, func() (net.Conn, error) { return behind, nil })
	defer end.Close()

	if _, err := ours.Write(sasl.AppendFrame([]byte(sasl.Preamble), x.Token)); err != nil {
		return err
	}
	reply, err := sasl.ReadReply(ours)
	if err != nil {
		return err
	}
	session, err := x.Accept(reply)
	if err != nil {
		return err
	}
	if _, err := ours.Write(sasl.AppendFrame(nil, nil)); err != nil {
		return err
	}
	if reply, err = sasl.ReadReply(ours); err != nil {
		return err
	}
	offer, err := session.Opener.Open(reply, sasl.Integrity)
	if err != nil || offer[0] != 7 {
		t.Errorf("offer: got %x, %v", offer, err)
	}
	return err
}

// A context is made with each of the types of keys and with a server's subkey.
func TestContext(t *testing.T) {
	for _, encType := range []int32{sasl.AES128SHA1, sasl.AES256SHA1} {
		for _, subkey := range []bool{false, true} {
			r := startRealm(t)
			r.SetEncType(encType)
			if err := r.shake(t, r.open(t), kerberostest.Server{Subkey: subkey}); err != nil {
				t.Errorf("encryption type %d, subkey %v: %v", encType, subkey, err)
			}
		}
	}
}

// A server that cannot decrypt our ticket does not pass for the one we want: neither with
// an answer of its own nor with that to another request.
func TestContext_wrongServer(t *testing.T) {
	r := startRealm(t)
	c := r.open(t)
	if err := r.shake(t, c, kerberostest.Server{WrongTime: true}); !errors.Is(err, ErrServer) {
		t.Errorf("reply to another request: got %v, want ErrServer", err)
	}

	first, err := c.Initiate(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	for name, reply := range map[string][]byte{
		"nothing":          {},
		"no token":         []byte("hello"),
		"our own token":    first.Token,
		"AP-REP of zeros":  sasl.AppendToken(nil, sasl.APRep, make([]byte, 100)),
		"error of garbage": sasl.AppendToken(nil, sasl.KRBError, []byte("x")),
	} {
		if _, err := first.Accept(reply); !errors.Is(err, ErrServer) {
			t.Errorf("%s: got %v, want ErrServer", name, err)
		}
	}
}

// otherKey gives our principal another key, which the keytab lacks.
func (r *realm) otherKey(t *testing.T) {
	t.Helper()
	old, err := os.ReadFile(r.cfg.Keytab)
	r.AddPrincipal("me", "another")
	if err := errors.Join(err, os.WriteFile(r.cfg.Keytab, old, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// What a KDC refuses stands in the error in words.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(r *realm)
		want   string
	}{
		{"unknown principal", func(r *realm) {
			r.Refuse("krbtgt/"+kerberostest.Realm,
				errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN)
		}, "does not know our principal me@"},
		{"unknown server", func(r *realm) { r.Refuse(server, errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN) },
			"does not know the server's principal hbase/a@"},
		{"locked", func(r *realm) { r.Refuse("krbtgt/"+kerberostest.Realm, errorcode.KDC_ERR_CLIENT_REVOKED) },
			"locked or has expired"},
		{"locked, told at a service", func(r *realm) { r.Refuse(server, errorcode.KDC_ERR_CLIENT_REVOKED) },
			"our principal me@TEST.EXAMPLE is locked"},
		{"revoked", func(r *realm) { r.Refuse(server, errorcode.KDC_ERR_TGT_REVOKED) },
			"has revoked the ticket of our principal me@"},
		{"modified", func(r *realm) { r.Refuse(server, errorcode.KRB_AP_ERR_MODIFIED) },
			"before a change of the KDC's key"},
		{"key version", func(r *realm) { r.Refuse(server, errorcode.KRB_AP_ERR_BADKEYVER) },
			"before a change of the KDC's key"},
		{"skew, as the KDC says", func(r *realm) { r.Refuse("krbtgt/"+kerberostest.Realm, errorcode.KRB_AP_ERR_SKEW) },
			"clocks of this machine and of the KDC"},
		{"skew, as we see", func(r *realm) { r.SetClock(20 * time.Minute) }, "clocks of this machine and of the KDC"},
		{"away", func(r *realm) { r.Stop() }, "no KDC of TEST.EXAMPLE can be reached"},
		{"other key", func(r *realm) { r.otherKey(t) }, "the keytab's key of me@"},
		{"RC4", func(r *realm) { r.SetEncType(23) }, "want one of AES"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := startRealm(t)
			c := r.open(t)
			tc.change(r)
			if err := r.shake(t, c, kerberostest.Server{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Faults of files and names are found when they are read.
func TestOpen_errors(t *testing.T) {
	r := startRealm(t)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"nothing":           {func(c *Config) { c.Keytab = "" }, "want a keytab or a ticket cache"},
		"both":              {func(c *Config) { c.TicketCache = "x" }, "not both"},
		"no principal":      {func(c *Config) { c.Principal = "" }, "our principal: got nothing"},
		"other principal":   {func(c *Config) { c.Principal = "you" }, "has no key of [you@TEST.EXAMPLE"},
		"bad principal":     {func(c *Config) { c.Principal = "me/@X" }, `got "me/@X"`},
		"keytab is missing": {func(c *Config) { c.Keytab = "/nonexistent" }, "no such file"},
		"keytab is empty":   {func(c *Config) { c.Keytab = write("k", "") }, "keytab"},
		"keytab is text":    {func(c *Config) { c.Keytab = write("k", "\x05\x02\xff\xff\xff") }, "keytab"},
		"krb5.conf missing": {func(c *Config) { c.Krb5Conf = "/nonexistent" }, "no such file"},
		"krb5.conf bad": {func(c *Config) { c.Krb5Conf = write("c", "[libdefaults]\n clockskew = soon\n") },
			"clockskew"},
		"krb5.conf RC4": {func(c *Config) {
			c.Krb5Conf = write("c",
				"[libdefaults]\n default_tgs_enctypes = rc4-hmac\n")
		}, "want one of AES"},
		"includes itself": {func(c *Config) { c.Krb5Conf = circle(t) }, "include each other"},
		"ticket cache": {func(c *Config) { c.Keytab, c.Principal, c.TicketCache = "", "", write("t", "") },
			"ticket cache"},
		"ticket cache is bad": {func(c *Config) {
			c.Keytab, c.Principal, c.TicketCache = "", "",
				write("t", "\x05\x04\x00\x0c\x00\x01")
		}, "ticket cache"},
	} {
		cfg := r.cfg
		tc.change(&cfg)
		if _, err := Open(cfg, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func circle(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(path, []byte("include "+path+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// krb5.conf may be several files, and include others.
func TestKrb5Conf_includes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"krb5.conf": "include " + dir + "/more\nincludedir " + dir + "/d/\nincludedir " + dir +
			"/missing\n[libdefaults]\n default_realm = A\n",
		"more":           "[realms]\n A = {\n  kdc = a:1\n }\n",
		"d/realm_b":      "[realms]\n B = {\n  kdc = b:1\n }\n",
		"d/c.conf":       "[realms]\n C = {\n  kdc = c:1\n }\n",
		"d/old.conf~":    "garbage",
		"d/.hidden.conf": "garbage",
		"other":          "[domain_realm]\n .b.example = B\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := loadKrb5Conf(dir + "/krb5.conf:" + dir + "/absent:" + dir + "/other")
	if err != nil {
		t.Fatal(err)
	}
	var realms []string
	for _, r := range conf.Realms {
		realms = append(realms, r.Realm+" "+strings.Join(r.KDC, ","))
	}
	if got := strings.Join(realms, "; "); got != "A a:1; C c:1; B b:1" {
		t.Errorf("realms: got %s", got)
	}
	if got := conf.ResolveRealm("h.b.example"); conf.LibDefaults.DefaultRealm != "A" || got != "B" {
		t.Errorf("default realm %s, that of h.b.example %s", conf.LibDefaults.DefaultRealm, got)
	}
	if _, err := loadKrb5Conf(dir + "/absent:" + dir + "/absent2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none is there: got %v", err)
	}
}

func TestServerPrincipal(t *testing.T) {
	for _, tc := range [][3]string{
		{"hbase/_HOST@R", "Some.Host", "hbase/some.host@R"},
		{"hbase/_HOST", "h.", "hbase/h"},
		{"hbase/fixed@R", "h", "hbase/fixed@R"},
		{"hbase", "h", "hbase"},
	} {
		if got := ServerPrincipal(t.Context(), tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s at %s: got %s, want %s", tc[0], tc[1], got, tc[2])
		}
	}
}

// Our own _HOST is one of this machine's names, whichever the keytab has.
func TestOpen_ownHost(t *testing.T) {
	r := startRealm(t)
	for _, host := range ownHosts() {
		name := "me/" + strings.ToLower(host)
		cfg := r.cfg
		cfg.Keytab, cfg.Principal = r.AddPrincipal(name, "ours"), "me/_HOST"
		c, err := Open(cfg, nil)
		if err != nil || c.Principal() != name+"@"+kerberostest.Realm {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

// After a change of the KDC's key the next ticket costs one login more.
func TestClient_newKDCKey(t *testing.T) {
	r := startRealm(t)
	r.AddPrincipal("hbase/b", "another server's")
	c := r.open(t)
	if _, err := c.Initiate(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	r.ChangeKey()
	if _, err := c.Initiate(t.Context(), "hbase/b"); err != nil {
		t.Error(err)
	}
	if logins := r.Count("krbtgt/" + kerberostest.Realm); logins != 2 {
		t.Errorf("%d logins, want 2", logins)
	}
}

// The name of an address is the first in order, and is looked up for no longer than the
// dial lasts.
func TestServerPrincipal_address(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, names := range [][]string{{"b.x.", "a.x."}, {"a.x.", "b.x."}} {
		got := serverPrincipal(ctx, "hbase/_HOST", "10.0.0.1", func(got context.Context, _ string) ([]string, error) {
			if got != ctx {
				t.Error("the look-up has another context than the dial")
			}
			return names, nil
		})
		if got != "hbase/a.x" {
			t.Errorf("%v: got %s, want hbase/a.x", names, got)
		}
	}
}
