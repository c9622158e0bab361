package kerberos

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// kdcError is a KDC's refusal, or that none could be reached, in words.
type kdcError struct {
	text          string
	away          bool // none could be reached
	unknownServer bool
	refusal       bool // by a KDC
	ours          bool // it is about our principal or clock, for any ticket
	err           error
}

// ErrUnknownServer is returned when the KDC does not know the server's principal.
var ErrUnknownServer = errors.New("the KDC does not know the server's principal")

func (e *kdcError) Error() string { return fmt.Sprintf("%s (%v)", e.text, e.err) }
func (e *kdcError) Unwrap() error { return e.err }

// Is reports whether it is ErrUnknownServer.
func (e *kdcError) Is(target error) bool { return target == ErrUnknownServer && e.unknownServer }

// explain puts an error of an exchange into words: a KDC's code, or gokrb5's error. ours is our
// principal; name that of the wanted ticket: a server's, or ours at a login.
func explain(err error, ours, name, realm string) error {
	const unknownServer = "KDC_ERR_S_PRINCIPAL_UNKNOWN"
	var krb messages.KRBError
	refusal, what := errors.As(err, &krb), err.Error()
	if refusal {
		what = errorcode.Lookup(krb.ErrorCode)
	}
	switch {
	case errors.Is(err, errNoAnswer):
		return &kdcError{text: "no KDC of " + realm + " can be reached", away: true, err: err}
	case errors.Is(err, errNoKDC):
		return &kdcError{text: "krb5.conf names no KDC of " + realm, err: err}
	case errors.Is(err, errNoKey):
		return &kdcError{text: "the keytab has no key of " + ours + " of the type that the KDC wants", err: err}
	case errors.Is(err, errOurKey):
		return &kdcError{text: "the keytab's key of " + ours + " is not the one that the KDC has", err: err}
	}
	for _, c := range []struct {
		code, text string
		ours       bool
	}{
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC of " + realm + " does not know our principal " + ours, true},
		{unknownServer, "the KDC of " + realm + " does not know the server's principal " + name, false},
		{"KDC_ERR_PREAUTH_FAILED", "the keytab's key of " + ours + " is not the one that the KDC has", true},
		{"KRB_AP_ERR_BAD_INTEGRITY",
			"the KDC of " + realm + " cannot decrypt what we sent: our ticket or key is of before a change", false},
		{"KRB_AP_ERR_MODIFIED",
			"the KDC of " + realm + " cannot decrypt our ticket: it is of before a change of the KDC's key", false},
		{"KRB_AP_ERR_BADKEYVER",
			"the KDC of " + realm + " has no more the key of our ticket: it is of before a change of the KDC's key",
			false},
		{"KDC_ERR_TGT_REVOKED", "the KDC of " + realm + " has revoked the ticket of our principal " + ours, true},
		{"KDC_ERR_CLIENT_REVOKED", "our principal " + ours + " is locked or has expired", true},
		{"KDC_ERR_KEY_EXPIRED", "the key of our principal " + ours + " has expired", true},
		{"KDC_ERR_NAME_EXP", "our principal " + ours + " has expired", true},
		{"KDC_ERR_ETYPE_NOSUPP",
			"the KDC of " + realm + " has no key of an encryption type that krb5.conf allows for " + name, false},
		{"KRB_AP_ERR_SKEW", "the clocks of this machine and of the KDC of " + realm +
			" differ by more than is allowed", true},
		{"clock skew", "the clocks of this machine and of the KDC of " + realm + " differ by more than is allowed",
			true},
		{"KRB_AP_ERR_TKT_EXPIRED", "our ticket has expired", true},
		{"KRB_AP_ERR_TKT_NYV", "our ticket is not valid yet: the clocks of this machine and of the KDC of " + realm +
			" differ", true},
	} {
		if strings.Contains(what, c.code) {
			return &kdcError{
				text:          c.text,
				unknownServer: c.code == unknownServer,
				refusal:       refusal,
				ours:          c.ours,
				err:           err,
			}
		}
	}
	return &kdcError{text: "no ticket for " + name, refusal: refusal, err: err}
}
