package settings

import (
	"errors"
	"fmt"
	"strings"

	"downpour/pushdown/process/login"
)

// HBaseSecurity is how we connect to HBase's servers. Its fields are those of
// open.Security.
type HBaseSecurity struct {
	// Kerberos is keytab:FILE:PRINCIPAL, cache:FILE, cache for the file that KRB5CCNAME names, or
	// empty for no authentication. The principal is ours, name[/host][@REALM]; the host may be _HOST for
	// this machine's name.
	Kerberos string `env:"DOWNPOUR_HBASE_KERBEROS"`
	// JAAS is instead the path of a Java login configuration, whose section JAASSection has the
	// keytab or ticket cache and our principal.
	JAAS        string `env:"DOWNPOUR_HBASE_JAAS"`
	JAASSection string `env:"DOWNPOUR_HBASE_JAAS_SECTION" envDefault:"Client"`
	// ServerPrincipal and MasterPrincipal are those of region servers and masters; the
	// host may be _HOST for that of the server. An empty MasterPrincipal is as the other.
	ServerPrincipal string `env:"DOWNPOUR_HBASE_PRINCIPAL" envDefault:"hbase/_HOST"`
	MasterPrincipal string `env:"DOWNPOUR_HBASE_MASTER_PRINCIPAL"`
	// Protection lists what is taken of authentication, integrity and privacy; empty
	// is all.
	Protection string `env:"DOWNPOUR_HBASE_PROTECTION"`
	// AllowSimple lets a server do without authentication although Kerberos is set.
	AllowSimple bool `env:"DOWNPOUR_HBASE_ALLOW_SIMPLE" envDefault:"false"`
	// CheckRights checks at start whether HBase's own access control lets us read all of the
	// tables. It cannot see rights that another system grants, such as Apache Ranger.
	CheckRights bool `env:"DOWNPOUR_HBASE_CHECK_RIGHTS" envDefault:"true"`
	// Krb5Conf is the path of krb5.conf, files with colons between them; empty is that of Krb5Config. Krb5Config and
	// TicketCache are the variables of all Kerberos programs.
	Krb5Conf    string `env:"DOWNPOUR_KRB5_CONF"`
	Krb5Config  string `env:"KRB5_CONFIG" envDefault:"/etc/krb5.conf"`
	TicketCache string `env:"KRB5CCNAME"`

	// TLS is off, on for the system's authorities, or the path of a PEM file with those that
	// are trusted. ClientCert and ClientKey are our certificate, for servers that require
	// one; both are set or none. VerifyHost requires the server's name in its certificate.
	TLS        string `env:"DOWNPOUR_HBASE_TLS" envDefault:"off"`
	ClientCert string `env:"DOWNPOUR_HBASE_TLS_CERT"`
	ClientKey  string `env:"DOWNPOUR_HBASE_TLS_KEY"`
	VerifyHost bool   `env:"DOWNPOUR_HBASE_TLS_VERIFY_HOST" envDefault:"true"`
}

// validate returns the faults of what can be seen without reading files.
func (s *HBaseSecurity) validate() (errs []error) {
	if _, err := login.Parse(s.Kerberos); err != nil {
		errs = append(errs, err)
	}
	// The principal would be ambiguous.
	if s.Kerberos != "" && s.JAAS != "" {
		errs = append(
			errs, errors.New("DOWNPOUR_HBASE_JAAS: DOWNPOUR_HBASE_KERBEROS is set, too; want only one of both"))
	}

	for name := range strings.SplitSeq(s.Protection, ",") {
		switch strings.TrimSpace(name) {
		case "authentication", "integrity", "privacy":
		case "":
			if s.Protection == "" {
				continue
			}
			fallthrough
		default:
			errs = append(errs,
				fmt.Errorf(
					"DOWNPOUR_HBASE_PROTECTION: got %q, want authentication, integrity or privacy, "+
						"or some of them with commas between",
					s.Protection))
		}
	}
	return append(errs, s.validateTLS()...)
}

// validateTLS returns the faults of the settings of TLS.
func (s *HBaseSecurity) validateTLS() (errs []error) {
	if (s.ClientCert == "") != (s.ClientKey == "") {
		errs = append(
			errs, errors.New(
				"DOWNPOUR_HBASE_TLS_CERT and DOWNPOUR_HBASE_TLS_KEY: only one of them is set, want both or none"))
	}
	// An operator who sets one of them thinks that TLS is spoken.
	if off := s.TLS == "" || s.TLS == "off"; off && (s.ClientCert != "" || s.ClientKey != "") {
		errs = append(
			errs, errors.New(
				"DOWNPOUR_HBASE_TLS: got off, but DOWNPOUR_HBASE_TLS_CERT or DOWNPOUR_HBASE_TLS_KEY is set, "+
					"want on or the path of a file with authorities"))
	}
	// Any holder of a certificate of a public authority would be accepted as HBase.
	if s.TLS == "on" && !s.VerifyHost {
		errs = append(
			errs, errors.New(
				"DOWNPOUR_HBASE_TLS_VERIFY_HOST: got false with DOWNPOUR_HBASE_TLS=on, which trusts "+
					"the system's authorities, want true, or the path of a file with an authority of your own "+
					"in DOWNPOUR_HBASE_TLS"))
	}
	return errs
}
