package open

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"downpour/pushdown/process/certificates"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/jaas"
	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/sasl"
)

// Security says how the servers of a secured HBase are connected to; see
// settings.HBaseSecurity, which has the same fields. The zero value does without.
type Security struct {
	Kerberos, Principal              string
	JAAS, JAASSection                string
	ServerPrincipal, MasterPrincipal string
	Protection                       string
	AllowSimple, CheckRights         bool
	Krb5Config, TicketCache          string
	TLS                              string
	ClientCert, ClientKey            string
	VerifyHost                       bool
}

// open reads the files. It returns nil if HBase is not secured. Errors name the variables.
func (s Security) open(log *slog.Logger) (*hbase.Security, error) {
	s, err := s.withJAAS()
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HBASE_JAAS=%s: %w", s.JAAS, err)
	}
	if s.Kerberos == "" {
		return nil, nil
	}
	protections, err := sasl.ParseProtections(s.Protection)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HBASE_PROTECTION: %w", err)
	}

	cfg := kerberos.Config{Principal: s.Principal, Krb5Conf: s.Krb5Config}
	switch kind, path, _ := strings.Cut(s.Kerberos, ":"); kind {
	case "keytab":
		cfg.Keytab = path
	case "ccache":
		if cfg.TicketCache, err = ticketCache(cmp.Or(path, s.TicketCache)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("DOWNPOUR_HBASE_KERBEROS: got %q, want keytab:PATH, ccache:PATH or ccache", s.Kerberos)
	}

	client, err := kerberos.Open(cfg, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_HBASE_KERBEROS=%s: %w", s.Kerberos, err)
	}
	return &hbase.Security{Client: client, RegionServer: s.ServerPrincipal, Master: s.MasterPrincipal,
		Protections: protections, AllowSimple: s.AllowSimple}, nil
}

// withJAAS takes keytab or ticket cache and principal from the login configuration. What is
// also set must be the same: otherwise it would not be known as whom we are meant to log in.
func (s Security) withJAAS() (Security, error) {
	if s.JAAS == "" {
		return s, nil
	}
	text, err := os.ReadFile(s.JAAS)
	if err != nil {
		return s, err
	}
	sections, err := jaas.Parse(text)
	if err != nil {
		return s, err
	}
	login, err := jaas.LoginOf(sections, s.JAASSection)
	if err != nil {
		return s, fmt.Errorf("%w (DOWNPOUR_HBASE_JAAS_SECTION=%s)", err, s.JAASSection)
	}

	kerberos := "ccache"
	switch {
	case login.Keytab != "":
		kerberos = "keytab:" + login.Keytab
	case login.TicketCache != "":
		kerberos = "ccache:" + login.TicketCache
	}
	if s.Kerberos != "" && s.Kerberos != kerberos {
		return s, fmt.Errorf("section %q: got %s, but DOWNPOUR_HBASE_KERBEROS=%s, want the same, or only one of both", s.JAASSection, kerberos, s.Kerberos)
	}
	if s.Principal != "" && login.Principal != "" && s.Principal != login.Principal {
		return s, fmt.Errorf("section %q: principal: got %s, but DOWNPOUR_HBASE_PRINCIPAL=%s, want the same, or only one of both", s.JAASSection, login.Principal, s.Principal)
	}
	s.Kerberos, s.Principal = kerberos, cmp.Or(s.Principal, login.Principal)
	return s, nil
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
		return nil, fmt.Errorf("DOWNPOUR_HBASE_TLS=%s, DOWNPOUR_HBASE_TLS_CERT=%s, DOWNPOUR_HBASE_TLS_KEY=%s: %w", s.TLS, s.ClientCert, s.ClientKey, err)
	}
	return &hbase.Encryption{Certificates: reader, AnyName: !s.VerifyHost}, nil
}
