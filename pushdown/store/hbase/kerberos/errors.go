package kerberos

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jcmturner/gokrb5/v8/krberror"
)

// kdcError is a KDC's refusal, or that none could be asked, in words.
type kdcError struct {
	text          string
	away          bool // none could be asked
	unknownServer bool
	refusal       bool // by a KDC
	ours          bool // it is about our principal or clock, whatever the ticket is for
	err           error
}

// ErrUnknownServer is returned when the KDC does not know the server's principal.
var ErrUnknownServer = errors.New("the KDC does not know the server's principal")

func (e *kdcError) Error() string { return fmt.Sprintf("%s (%v)", e.text, e.err) }
func (e *kdcError) Unwrap() error { return e.err }

// Is tells whether it is ErrUnknownServer.
func (e *kdcError) Is(target error) bool { return target == ErrUnknownServer && e.unknownServer }

// explain puts an error of gokrb5 into words, which keeps a KDC's code only in its text.
// ours is our principal; name that for which a ticket was wanted: a server's, or ours at a
// login.
func explain(err error, ours, name, realm string) error {
	const away, unknownServer = "Networking_Error", "KDC_ERR_S_PRINCIPAL_UNKNOWN"
	refusal := strings.Contains(err.Error(), krberror.KDCError)
	for _, c := range []struct {
		code, text string
		ours       bool
	}{
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC of " + realm + " does not know our principal " + ours, true},
		{unknownServer, "the KDC of " + realm + " does not know the server's principal " + name, false},
		{"KDC_ERR_PREAUTH_FAILED", "the keytab's key of " + ours + " is not the one that the KDC has", true},
		{"KRB_AP_ERR_BAD_INTEGRITY", "the KDC of " + realm + " cannot decrypt what we sent: our ticket or key is of before a change", false},
		{"KRB_AP_ERR_MODIFIED", "the KDC of " + realm + " cannot decrypt our ticket: it is of before a change of the KDC's key", false},
		{"KRB_AP_ERR_BADKEYVER", "the KDC of " + realm + " has no more the key of our ticket: it is of before a change of the KDC's key", false},
		{"KDC_ERR_TGT_REVOKED", "the KDC of " + realm + " has revoked the ticket of our principal " + ours, true},
		{"KDC_ERR_CLIENT_REVOKED", "our principal " + ours + " is locked or has expired", true},
		{"KDC_ERR_KEY_EXPIRED", "the key of our principal " + ours + " has expired", true},
		{"KDC_ERR_NAME_EXP", "our principal " + ours + " has expired", true},
		{"KDC_ERR_ETYPE_NOSUPP", "the KDC of " + realm + " has no key of an encryption type that krb5.conf allows for " + name, false},
		{"KRB_AP_ERR_SKEW", "the clocks of this machine and of the KDC of " + realm + " differ by more than is allowed", true},
		{"clock skew", "the clocks of this machine and of the KDC of " + realm + " differ by more than is allowed", true},
		{"AS_REP is not valid or client password/keytab incorrect < Decrypting_Error", "the keytab's key of " + ours + " is not the one that the KDC has", false},
		{"KRB_AP_ERR_TKT_EXPIRED", "our ticket has expired", true},
		{"KRB_AP_ERR_TKT_NYV", "our ticket is not valid yet: the clocks of this machine and of the KDC of " + realm + " differ", true},
		{"no KDCs defined", "krb5.conf names no KDC of " + realm, false},
		{"does not have any defined KDCs", "krb5.conf names no KDC of " + realm, false},
		{"matching key not found", "the keytab has no key of " + ours + " of the type that the KDC wants", false},
		{away, "no KDC of " + realm + " can be reached", false},
	} {
		if strings.Contains(err.Error(), c.code) {
			return &kdcError{text: c.text, away: c.code == away, unknownServer: c.code == unknownServer, refusal: refusal, ours: c.ours, err: err}
		}
	}
	return &kdcError{text: "no ticket for " + name, refusal: refusal, err: err}
}
