package kerberos

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"downpour/pushdown/store/hbase/kerberos/kerberostest"
	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A KDC that wants a proof of our key gets it, with an encryption type that it lists, that
// krb5.conf allows and that the keytab has a key of.
func TestLogin_proof(t *testing.T) {
	for _, tc := range []struct {
		name  string
		types []int32
		want  string // in the error; empty if there is none
	}{
		{"one", []int32{sasl.AES256SHA1}, ""},
		{"the second", []int32{sasl.AES256SHA2, sasl.AES128SHA1}, ""},
		{"not one that we never take", []int32{999, sasl.AES256SHA1}, ""},
		{"none is listed", []int32{}, ""},
		{"no key of it", []int32{sasl.AES256SHA2},
			"the keytab has no key of me@TEST.EXAMPLE of the type that the KDC wants"},
		{"no such type", []int32{999}, "the keytab has no key of me@TEST.EXAMPLE of the type that the KDC wants"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := startRealm(t)
			r.RequireProof(tc.types...)
			err := r.shake(t, r.open(t), kerberostest.Server{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}

	t.Run("krb5.conf does not allow it", func(t *testing.T) {
		r := startRealm(t)
		r.RequireProof(sasl.AES128SHA1)
		text, err := os.ReadFile(r.cfg.Krb5Conf)
		text = bytes.Replace(text, []byte("[realms]"), []byte(" default_tkt_enctypes = aes256-cts\n[realms]"), 1)
		if err := errors.Join(err, os.WriteFile(r.cfg.Krb5Conf, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		want := "got [17], want one of krb5.conf's [18]"
		if err := r.shake(t, r.open(t), kerberostest.Server{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
	t.Run("with another key", func(t *testing.T) {
		r := startRealm(t)
		c := r.open(t)
		r.RequireProof(sasl.AES256SHA1)
		r.otherKey(t)
		want := "the keytab's key of me@TEST.EXAMPLE is not the one that the KDC has"
		if err := r.shake(t, c, kerberostest.Server{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// The lists of a refusal are read whatever they are.
func TestListedTypes(t *testing.T) {
	for _, data := range []string{"", "x", "\x30\x00", "\x30\x80", strings.Repeat("\x30", 100)} {
		if got := listedTypes([]byte(data)); got != nil {
			t.Errorf("%q: got %v, want none", data, got)
		}
	}
}

// A KDC refers us to another realm's for a service of there; without an end it is given up.
func TestService_referral(t *testing.T) {
	r := startRealm(t)
	r.server = r.AddReferred(server, "that of the other realm")
	if err := r.shake(t, r.open(t), kerberostest.Server{}); err != nil {
		t.Errorf("referred: %v", err)
	}
	if err := r.shakeWith(t, r.open(t), server+"@"+kerberostest.Other, kerberostest.Server{}); err != nil {
		t.Errorf("the realm is known: %v", err)
	}

	r.ReferForEver(server)
	if err := r.shake(t, r.open(t), kerberostest.Server{}); err == nil ||
		!strings.Contains(err.Error(), "referred to another realm more than 6 times") {
		t.Errorf("got %v, want that it is given up", err)
	}
}

// Answers to other requests, for other clients, services and realms, and with other keys are
// refused, at a login and for a service.
func TestExchange_wrongAnswers(t *testing.T) {
	other := types.PrincipalName{NameString: []string{"hbase", "other"}}
	alterations := map[string]struct {
		alter func(*messages.KDCRepFields, *messages.EncKDCRepPart)
		want  string
	}{
		"another nonce": {func(_ *messages.KDCRepFields, part *messages.EncKDCRepPart) { part.Nonce++ },
			"nonce in response does not match"},
		"another client": {func(rep *messages.KDCRepFields, _ *messages.EncKDCRepPart) { rep.CName = other },
			"CName in response does not match"},
		"another service": {func(_ *messages.KDCRepFields, part *messages.EncKDCRepPart) { part.SName = other },
			"hbase"},
		"another realm": {func(_ *messages.KDCRepFields,
			part *messages.EncKDCRepPart) {
			part.SRealm = kerberostest.Other
		}, "SRealm in response does not match"},
		"another ticket": {func(rep *messages.KDCRepFields, _ *messages.EncKDCRepPart) { rep.Ticket.SName = other },
			"got a ticket for hbase/other@TEST.EXAMPLE, want that for"},
		"another service, ticket": {func(rep *messages.KDCRepFields, part *messages.EncKDCRepPart) {
			rep.Ticket.SName, part.SName = other, other
		}, "hbase"},
	}
	for name, tc := range alterations {
		t.Run("login/"+name, func(t *testing.T) {
			r := startRealm(t)
			r.Alter(tc.alter)
			if err := r.shake(t, r.open(t), kerberostest.Server{}); err == nil ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if got := r.Count(server); got != 0 {
				t.Errorf("%d requests with the ticket of such an answer, want none", got)
			}
		})
		t.Run("service/"+name, func(t *testing.T) {
			r := startRealm(t)
			r.Alter(func(rep *messages.KDCRepFields, part *messages.EncKDCRepPart) {
				if part.SName.NameString[0] != "krbtgt" {
					tc.alter(rep, part)
				}
			})
			if err := r.shake(t, r.open(t),
				kerberostest.Server{}); err == nil || !strings.Contains(err.Error(), tc.want) || r.Count(server) == 0 {
				t.Errorf("got %v after %d requests, want %q", err, r.Count(server), tc.want)
			}
		})
	}
}

// What the KDC says in words is no code of it.
func TestExplain_words(t *testing.T) {
	e := explain(messages.KRBError{
		ErrorCode: errorcode.KDC_ERR_POLICY,
		EText:     "KDC_ERR_S_PRINCIPAL_UNKNOWN, clock skew",
	}, "me", "hbase/a", "R")
	if got := e.Error(); !strings.HasPrefix(got, "no ticket for hbase/a") || !strings.Contains(got, "KDC_ERR_POLICY") {
		t.Errorf("got %v, want no ticket by its policy", got)
	}
}
