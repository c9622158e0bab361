package open

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"downpour/pushdown/process/certificates"
	"downpour/pushdown/process/login"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/jaas"
	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/sasl"
)

// Security is how the servers of a secured HBase are connected to; see
// settings.HBaseSecurity, which has the same fields. The zero value is no security.
type Security struct {
	Kerberos, JAAS, JAASSection      string
	ServerPrincipal, MasterPrincipal string
	Protection                       string
	AllowSimple, CheckRights         bool
	Krb5Conf                         string
	Krb5Config, TicketCache          string
	TLS                              string
	ClientCert, ClientKey            string
	VerifyHost                       bool
}

// open reads the files. It returns nil if HBase is not secured. Errors name the variables.
func (s Security) open(log *slog.Logger) (*hbase.Security, error) {
	as, err := s.login()
	if err != nil {
		return nil, err
	}
	if as == (login.Login{}) {
		return nil, nil
	}
	protections, err := sasl.ParseProtections(s.Protection)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HBASE_PROTECTION: %w", err)
	}

	cfg := kerberos.Config{Principal: as.Principal, Keytab: as.Keytab, Krb5Conf: cmp.Or(s.Krb5Conf, s.Krb5Config)}
	if as.Cache {
		if cfg.TicketCache, err = ticketCache(cmp.Or(as.CacheFile, s.TicketCache)); err != nil {
			return nil, err
		}
	}

	client, err := kerberos.Open(cfg, log)
	if err != nil {
		return nil, fmt.Errorf("Kerberos: %w", err)
	}
	return &hbase.Security{Client: client, RegionServer: s.ServerPrincipal, Master: s.MasterPrincipal,
		Protections: protections, AllowSimple: s.AllowSimple}, nil
}

// login returns our principal and credentials: from DOWNPOUR_HBASE_KERBEROS, or Java's login
// configuration.
func (s Security) login() (login.Login, error) {
	if s.JAAS == "" {
		return login.Parse(s.Kerberos)
	}
	text, err := os.ReadFile(s.JAAS)
	if err != nil {
		return login.Login{}, fmt.Errorf("DOWNPOUR_HBASE_JAAS: %w", err)
	}
	sections, err := jaas.Parse(text)
	if err != nil {
		return login.Login{}, fmt.Errorf("DOWNPOUR_HBASE_JAAS=%s: %w", s.JAAS, err)
	}
	as, err := jaas.LoginOf(sections, s.JAASSection)
	if err != nil {
		return login.Login{}, fmt.Errorf("DOWNPOUR_HBASE_JAAS=%s: %w (DOWNPOUR_HBASE_JAAS_SECTION)", s.JAAS, err)
	}
	return as, nil
}

// ticketCache returns the path of a ticket cache as KRB5CCNAME names it: a file, or nothing
// for the user's default. Others, such as a kernel's keyring, are not files.
func ticketCache(name string) (string, error) {
	if name == "" {
		return fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()), nil
	}
	kind, path, found := strings.Cut(name, ":")
	switch {
	case !found:
		return name, nil
	case kind == "FILE" && path != "":
		return path, nil
	}
	return "", fmt.Errorf("KRB5CCNAME: got %q, want FILE:PATH, for only files are read", name)
}

// encryption reads the certificates. It returns nil if no TLS is spoken. Errors name the
// variables.
func (s Security) encryption(log *slog.Logger) (*hbase.Encryption, error) {
	if s.TLS == "" || s.TLS == "off" {
		return nil, nil
	}
	files := certificates.Files{Roots: s.TLS, Cert: s.ClientCert, Key: s.ClientKey}
	if s.TLS == "on" {
		files.Roots = ""
	}
	reader, err := certificates.Open(files, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HBASE_TLS=%s, DOWNPOUR_HBASE_TLS_CERT=%s, DOWNPOUR_HBASE_TLS_KEY=%s: %w",
			s.TLS, s.ClientCert, s.ClientKey, err)
	}
	return &hbase.Encryption{Certificates: reader, AnyName: !s.VerifyHost}, nil
}
