package kerberos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// errOurKey is returned when the keytab's keys do not decrypt a KDC's answer.
var errOurKey = errors.New("the keytab has not the key of the answer")

// maxReferrals is how many times a KDC may refer us to another realm's, one after the other.
const maxReferrals = 6

// logIn makes an AS exchange (RFC 4120, section 3.1): it returns a ticket-granting ticket,
// which is got with our key.
func (k *kdc) logIn(ctx context.Context, conf *config.Config, keys *keytab.Keytab) (*ticket, error) {
	realm := k.client.realm
	req, err := messages.NewASReqForTGT(realm, conf, k.client.PrincipalName)
	if err != nil {
		return nil, err
	}
	reply, err := k.ask(ctx, conf, realm, req.Marshal)
	var refusal messages.KRBError
	if errors.As(err, &refusal) &&
		(refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED ||
			refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_FAILED) {
		// The request is repeated with a proof that we have the key.
		proof, proofErr := k.encryptedTime(refusal, req.ReqBody.EType, keys)
		if proofErr != nil {
			return nil, fmt.Errorf("%w: %w", proofErr, err)
		}
		req.PAData = append(req.PAData, proof)
		reply, err = k.ask(ctx, conf, realm, req.Marshal)
	}
	if err != nil {
		return nil, err
	}

	var rep messages.ASRep
	if err := rep.Unmarshal(reply); err != nil {
		return nil, err
	}
	creds := credentials.New(k.client.PrincipalNameString(), realm).WithKeytab(keys)
	if ok, err := rep.Verify(conf, creds, req); !ok {
		if isDecrypting(err) {
			err = fmt.Errorf("%w: %w", errOurKey, err)
		}
		return nil, err
	}
	if err := sameService(rep.KDCRepFields); err != nil {
		return nil, err
	}
	return newTicket(rep.Ticket, rep.DecryptedEncPart), nil
}

// sameService returns an error unless the ticket of a reply is for the service that its
// encrypted part names.
func sameService(rep messages.KDCRepFields) error {
	if got, want := rep.Ticket, rep.DecryptedEncPart; !got.SName.Equal(want.SName) || got.Realm != want.SRealm {
		return fmt.Errorf("service: got a ticket for %s@%s, want that for %s@%s, as the KDC says",
			got.SName.PrincipalNameString(), got.Realm,
			want.SName.PrincipalNameString(), want.SRealm)
	}
	return nil
}

// isDecrypting reports whether an error of gokrb5 is that of a wrong key, which shows only in its
// text.
func isDecrypting(err error) bool {
	var e krberror.Krberror
	return errors.As(err, &e) && e.RootCause == krberror.DecryptingError
}

// encryptedTime returns the time encrypted with our key (PA-ENC-TIMESTAMP): with the first
// encryption type in the list of the KDC's refusal that we accept and have a key for.
func (k *kdc) encryptedTime(refusal messages.KRBError, taken []int32, keys *keytab.Keytab) (types.PAData, error) {
	wanted := listedTypes(refusal.EData)
	if len(wanted) == 0 {
		wanted = taken
	}
	var key types.EncryptionKey
	var version int
	err := fmt.Errorf("%w: its encryption type: got %v, want one of krb5.conf's %v", errNoKey, wanted, taken)
	for _, id := range wanted {
		if !slices.Contains(taken, id) {
			continue
		}
		var none error
		if key, version, none = keys.GetEncryptionKey(k.client.PrincipalName, k.client.realm, 0, id); none == nil {
			err = nil
			break
		}
		err = fmt.Errorf("%w: %w", errNoKey, none)
	}
	if err != nil {
		return types.PAData{}, err
	}

	now, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return types.PAData{}, err
	}
	sealed, err := crypto.GetEncryptedData(now, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return types.PAData{}, err
	}
	value, err := sealed.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}, err
}

// errNoKey is returned when the keytab has no key that the KDC takes as a proof.
var errNoKey = errors.New("the keytab has no key that the KDC takes")

// listedTypes returns the encryption types that a refusal lists, in the KDC's order: those of
// ETYPE-INFO2, else of ETYPE-INFO.
func listedTypes(data []byte) (ids []int32) {
	var list types.PADataSequence
	if list.Unmarshal(data) != nil {
		return nil
	}
	for _, pa := range list {
		if pa.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		info, err := pa.GetETypeInfo2()
		for i := 0; err == nil && i < len(info); i++ {
			ids = append(ids, info[i].EType)
		}
	}
	for _, pa := range list {
		if pa.PADataType != patype.PA_ETYPE_INFO || len(ids) > 0 {
			continue
		}
		info, err := pa.GetETypeInfo()
		for i := 0; err == nil && i < len(info); i++ {
			ids = append(ids, info[i].EType)
		}
	}
	return ids
}

// getTicket makes TGS exchanges (RFC 4120, section 3.3) from the KDC of a realm on, until a
// ticket for the named service has come: a KDC may refer us to that of another realm, by a
// ticket-granting ticket for it.
func (k *kdc) getTicket(ctx context.Context, conf *config.Config, realm string, tgt *ticket, name types.PrincipalName,
	renew bool) (*ticket, error) {
	for range 1 + maxReferrals {
		req, err := messages.NewTGSReq(k.client.PrincipalName, realm, conf, tgt.Ticket, tgt.key, name, renew)
		if err != nil {
			return nil, err
		}
		reply, err := k.ask(ctx, conf, realm, req.Marshal)
		if err != nil {
			return nil, err
		}
		var rep messages.TGSRep
		if err := rep.Unmarshal(reply); err != nil {
			return nil, err
		}
		if err := rep.DecryptEncPart(tgt.key); err != nil {
			return nil, err
		}
		if ok, err := rep.Verify(conf, req); !ok {
			return nil, err
		}
		if err := sameService(rep.KDCRepFields); err != nil {
			return nil, err
		}

		// gokrb5 does not compare the names.
		got := rep.DecryptedEncPart.SName
		last := len(got.NameString) - 1
		switch {
		case got.Equal(name):
			return newTicket(rep.Ticket, rep.DecryptedEncPart), nil
		case last == 1 && got.NameString[0] == "krbtgt" && !renew:
			tgt, realm = newTicket(rep.Ticket, rep.DecryptedEncPart), got.NameString[last]
		case conf.LibDefaults.Canonicalize:
			return newTicket(rep.Ticket, rep.DecryptedEncPart), nil // another name of the same
		default:
			return nil, fmt.Errorf("service: got a ticket for %s, want one for %s", got.PrincipalNameString(),
				name.PrincipalNameString())
		}
	}
	return nil, fmt.Errorf("referred to another realm more than %d times", maxReferrals)
}

// ask sends a request, and returns the reply.
func (k *kdc) ask(ctx context.Context, conf *config.Config, realm string,
	marshal func() ([]byte, error)) ([]byte, error) {
	request, err := marshal()
	if err != nil {
		return nil, err
	}
	return k.network.ask(ctx, conf, realm, request)
}
