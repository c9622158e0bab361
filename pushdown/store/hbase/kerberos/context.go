package kerberos

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ErrServer is returned when a server has not proven that it is who it should be.
var ErrServer = errors.New("the server has not proven its identity")

// Context is a security context that is being established with one server.
type Context struct {
	// Token is to be sent first. It holds the AP-REQ.
	Token []byte

	auth    types.Authenticator // as it was sent, to compare with the reply
	session types.EncryptionKey // of the ticket
	ticket  *ticket
}

// Flags of a context. Source: RFC 4121, section 4.1.1.1.
const (
	flagMutual    = 2
	flagReplay    = 4
	flagSequence  = 8
	flagConf      = 16
	flagIntegrity = 32

	contextFlags = flagMutual | flagReplay | flagSequence | flagConf | flagIntegrity
)

// Initiate begins a context with the server of a principal, name/host[@REALM]. It waits
// for the KDC if there is no ticket for the server.
func (c *Client) Initiate(ctx context.Context, server string) (*Context, error) {
	t, err := c.ticketFor(ctx, server)
	if err != nil {
		return nil, err
	}
	return c.initiate(t)
}

func (c *Client) initiate(t *ticket) (*Context, error) {
	auth, err := types.NewAuthenticator(c.principal.realm, c.principal.PrincipalName)
	if err != nil {
		return nil, fmt.Errorf("authenticator: %w", err)
	}
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: gssChecksum()}
	if auth.SubKey, err = newKey(t.key.KeyType); err != nil {
		return nil, err
	}

	req, err := messages.NewAPReq(t.Ticket, t.key, auth)
	if err != nil {
		return nil, fmt.Errorf("AP-REQ: %w", err)
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	body, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("AP-REQ: %w", err)
	}
	return &Context{Token: sasl.AppendToken(nil, sasl.APReq, body), auth: auth, session: t.key, ticket: t}, nil
}

// gssChecksum is the checksum of an authenticator, which is none: the length of the
// channel bindings, these (none), and flags, in little-endian.
func gssChecksum() []byte {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint32(b, 16)
	binary.LittleEndian.PutUint32(b[20:], contextFlags)
	return b
}

// newKey returns a random key of a type of AES.
func newKey(encType int32) (types.EncryptionKey, error) {
	size := 32
	switch encType {
	case sasl.AES128SHA1, sasl.AES128SHA2:
		size = 16
	case sasl.AES256SHA1, sasl.AES256SHA2:
	default:
		return types.EncryptionKey{},
			fmt.Errorf("encryption type of the ticket's key: got %d, want one of AES (17 to 20)", encType)
	}
	key := make([]byte, size)
	rand.Read(key) // never fails
	return types.EncryptionKey{KeyType: encType, KeyValue: key}, nil
}

// Session is an established context: the wrap tokens of a connection.
type Session struct {
	Sealer *sasl.Sealer
	Opener *sasl.Opener
}

// Accept checks the server's reply, which holds the AP-REP: only the owner of the ticket's key can
// have made it. The error is ErrServer if it is not such a reply.
func (x *Context) Accept(reply []byte) (*Session, error) {
	id, body, err := sasl.ParseToken(reply)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrServer, err)
	}
	if id == sasl.KRBError {
		var refusal messages.KRBError
		if err := refusal.Unmarshal(body); err != nil {
			return nil, fmt.Errorf("%w: cannot parse its error: %w", ErrServer, err)
		}
		return nil, fmt.Errorf("the server refuses our ticket: %w", refusal)
	}
	if id != sasl.APRep {
		return nil, fmt.Errorf("%w: token: got %04x, want %04x", ErrServer, uint16(id), uint16(sasl.APRep))
	}

	part, err := parsed(func() (messages.EncAPRepPart, error) { return x.decrypt(body) })
	if err != nil {
		return nil, fmt.Errorf("%w: AP-REP: %w", ErrServer, err)
	}
	if part.CTime.Unix() != x.auth.CTime.Unix() || part.Cusec != x.auth.Cusec {
		return nil, fmt.Errorf("%w: AP-REP: got the time %s and %d µs of another request, want %s and %d µs",
			ErrServer, part.CTime.Format(time.RFC3339), part.Cusec, x.auth.CTime.Format(time.RFC3339), x.auth.Cusec)
	}
	return x.newSession(part)
}

// decrypt decrypts an AP-REP with the ticket's key, never with the subkey. Source: RFC
// 4120, section 5.5.2.
func (x *Context) decrypt(body []byte) (part messages.EncAPRepPart, err error) {
	var rep messages.APRep
	if err := rep.Unmarshal(body); err != nil {
		return part, err
	}
	if rep.EncPart.EType != x.session.KeyType {
		return part, fmt.Errorf("encryption type: got %d, want %d", rep.EncPart.EType, x.session.KeyType)
	}
	b, err := crypto.DecryptEncPart(rep.EncPart, x.session, keyusage.AP_REP_ENCPART)
	if err != nil {
		return part, err
	}
	return part, part.Unmarshal(b)
}

// newSession derives the keys of both directions: from the subkey of the server if it has
// sent one, else from ours.
func (x *Context) newSession(part messages.EncAPRepPart) (*Session, error) {
	key, subkey := x.auth.SubKey, false
	if len(part.Subkey.KeyValue) > 0 {
		key, subkey = part.Subkey, true
	}

	send := sasl.Direction{Subkey: subkey, First: uint64(uint32(x.auth.SeqNumber))}
	receive := sasl.Direction{Acceptor: true, Subkey: subkey, First: uint64(uint32(part.SequenceNumber))}
	sendKeys, err1 := deriveKeys(key, send.Usage())
	receiveKeys, err2 := deriveKeys(key, receive.Usage())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	sealer, err1 := sasl.NewSealer(sendKeys, send)
	opener, err2 := sasl.NewOpener(receiveKeys, receive)
	return &Session{sealer, opener}, errors.Join(err1, err2)
}

// deriveKeys derives the three keys of a usage.
func deriveKeys(key types.EncryptionKey, usage uint32) (sasl.Keys, error) {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return sasl.Keys{}, err
	}
	encryption, err1 := e.DeriveKey(key.KeyValue, common.GetUsageKe(usage))
	integrity, err2 := e.DeriveKey(key.KeyValue, common.GetUsageKi(usage))
	check, err3 := e.DeriveKey(key.KeyValue, common.GetUsageKc(usage))
	return sasl.Keys{EncType: key.KeyType, Encryption: encryption, Integrity: integrity, Check: check},
		errors.Join(err1, err2, err3)
}
