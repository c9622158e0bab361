// Package login reads the principal and the credentials with which we log in to Kerberos.
package login

import (
	"errors"
	"strings"
)

// Login is a keytab with our principal, or a ticket cache, whose file may come from
// KRB5CCNAME. The zero value is no authentication.
type Login struct {
	Keytab, Principal string // the principal is name[/host][@REALM], the host may be _HOST
	Cache             bool
	CacheFile         string // empty for the one of KRB5CCNAME
}

// Parse parses the value of DOWNPOUR_HBASE_KERBEROS, which its errors name:
//
//	keytab:/etc/downpour.keytab:downpour/_HOST@EXAMPLE.ORG
//	cache:/run/downpour/tickets
//	cache
func Parse(text string) (Login, error) {
	// The value is not shown: it may be a password, set here by mistake.
	wrong := errors.New("DOWNPOUR_HBASE_KERBEROS: got another form, want keytab:FILE:PRINCIPAL, cache:FILE or cache")
	kind, rest, given := strings.Cut(text, ":")
	switch {
	case text == "":
		return Login{}, nil
	case kind == "cache" && (rest != "" || !given):
		return Login{Cache: true, CacheFile: rest}, nil
	case kind != "keytab":
		return Login{}, wrong
	}

	// The name of a file may have colons, a principal has none.
	at := strings.LastIndexByte(rest, ':')
	if at <= 0 || at == len(rest)-1 {
		return Login{}, wrong
	}
	return Login{Keytab: rest[:at], Principal: rest[at+1:]}, nil
}
