package kerberostest

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Server is the secured side of a connection. With only Keytab set it behaves correctly.
type Server struct {
	Keytab string // of its own keys

	Offer      sasl.Protections // default all
	MaxMessage int              // default 64 KiB
	Subkey     bool             // it sends a subkey of its own
	Piece      int              // bytes of a reply in one token; default 4 KiB

	Simple        bool   // it wants no authentication
	Refusal       string // it refuses every ticket with this message
	WrongTime     bool   // its AP-REP is of another request
	HeaderRefusal []byte // what it sends after the client's header, before it closes
	Damage        int    // the number, from 1, of the reply's token that has one bit changed
}

// Serve makes the handshake on nc, connects to the server behind it by dial and passes on
// what comes, until one of both closes. It closes nc.
func (s Server) Serve(nc net.Conn, dial func() (net.Conn, error)) error {
	defer nc.Close()
	c, err := s.accept(nc)
	if err != nil {
		return err
	}
	if s.HeaderRefusal != nil {
		// All of the header is read: an end with unread bytes would be a reset.
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			return err
		}
		_, err := nc.Write(s.HeaderRefusal)
		return err
	}

	behind, err := dial()
	if err != nil {
		return err
	}
	defer behind.Close()
	if _, err := behind.Write([]byte(sasl.SimplePreamble)); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer nc.Close()
		_, err = io.Copy(c, behind)
	})
	_, err2 := io.Copy(behind, c)
	behind.Close()
	wg.Wait()
	return errors.Join(err, err2)
}

// accepted is a connection after its handshake. A nil opener passes bytes as they are.
type accepted struct {
	net.Conn
	Server
	protection sasl.Protection
	sealer     *sasl.Sealer
	opener     *sasl.Opener
	plain      []byte
	tokens     int
}

func (s Server) accept(nc net.Conn) (*accepted, error) {
	preamble := make([]byte, len(sasl.Preamble))
	if _, err := io.ReadFull(nc, preamble); err != nil {
		return nil, err
	}
	if string(preamble) != sasl.Preamble {
		return nil, errors.New("no preamble")
	}
	token, err := readFrame(nc)
	if err != nil {
		return nil, err
	}
	if s.Simple {
		_, err := nc.Write([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xa8})
		return &accepted{Conn: nc, Server: s, protection: sasl.Authentication}, err
	}

	reply, c, err := s.context(token)
	if err != nil || s.Refusal != "" {
		refusal := s.Refusal
		if refusal == "" {
			refusal = "GSS initiate failed"
		}
		b := sasl.AppendFrame([]byte{0, 0, 0, 1}, []byte("javax.security.sasl.SaslException"))
		nc.Write(sasl.AppendFrame(b, []byte(refusal)))
		return nil, errors.Join(errors.New("refused"), err)
	}
	c.Conn = nc

	if _, err := nc.Write(sasl.AppendFrame([]byte{0, 0, 0, 0}, reply)); err != nil {
		return nil, err
	}
	if _, err := readFrame(nc); err != nil {
		return nil, err
	}
	offer := binary.BigEndian.AppendUint32(nil, uint32(c.Offer)<<24|uint32(c.MaxMessage))
	if _, err := nc.Write(sasl.AppendFrame([]byte{0, 0, 0, 0}, c.sealer.Sign(nil, offer))); err != nil {
		return nil, err
	}
	if token, err = readFrame(nc); err != nil {
		return nil, err
	}
	choice, err := c.opener.Open(token, sasl.Integrity)
	if err != nil {
		return nil, err
	}
	c.protection = sasl.Protection(choice[0])
	return c, nil
}

// context checks the AP-REQ and makes the AP-REP.
func (s Server) context(token []byte) ([]byte, *accepted, error) {
	_, body, err := sasl.ParseToken(token)
	if err != nil {
		return nil, nil, err
	}
	var req messages.APReq
	if err := req.Unmarshal(body); err != nil {
		return nil, nil, err
	}
	keys, err := keytab.Load(s.Keytab)
	if err != nil {
		return nil, nil, err
	}
	if ok, err := req.Verify(keys, 5*time.Minute, types.HostAddress{}, nil); !ok {
		return nil, nil, errors.Join(errors.New("AP-REQ is not valid"), err)
	}

	auth, session := req.Authenticator, req.Ticket.DecryptedEncPart.Key
	part := messages.EncAPRepPart{CTime: auth.CTime, Cusec: auth.Cusec, SequenceNumber: 0x7ffffff0}
	if s.WrongTime {
		part.Cusec = (part.Cusec + 1) % 1e6
	}
	key := auth.SubKey
	if s.Subkey {
		b := make([]byte, len(session.KeyValue))
		rand.Read(b)
		part.Subkey = types.EncryptionKey{KeyType: session.KeyType, KeyValue: b}
		key = part.Subkey
	}
	reply, err := marshalAPRep(part, s.Subkey, session)
	if err != nil {
		return nil, nil, err
	}

	if s.Offer == 0 {
		s.Offer = sasl.AnyProtection
	}
	if s.MaxMessage == 0 {
		s.MaxMessage = 64 << 10
	}
	if s.Piece == 0 {
		s.Piece = 4 << 10
	}
	c := &accepted{Server: s}
	send := sasl.Direction{Acceptor: true, Subkey: s.Subkey, First: uint64(part.SequenceNumber)}
	receive := sasl.Direction{Subkey: s.Subkey, First: uint64(auth.SeqNumber)}
	var err1, err2 error
	c.sealer, err1 = sasl.NewSealer(derive(key, send.Usage()), send)
	c.opener, err2 = sasl.NewOpener(derive(key, receive.Usage()), receive)
	return reply, c, errors.Join(err1, err2)
}

// marshalAPRep makes the token of an AP-REP. gokrb5 marshals an optional key that is
// empty, so there are two forms.
func marshalAPRep(part messages.EncAPRepPart, subkey bool, session types.EncryptionKey) ([]byte, error) {
	var b []byte
	var err error
	if subkey {
		b, err = asn1.Marshal(part)
	} else {
		b, err = asn1.Marshal(struct {
			CTime          time.Time `asn1:"generalized,explicit,tag:0"`
			Cusec          int       `asn1:"explicit,tag:1"`
			SequenceNumber int64     `asn1:"optional,explicit,tag:3"`
		}{part.CTime, part.Cusec, part.SequenceNumber})
	}
	if err != nil {
		return nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncAPRepPart), session,
		keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, err
	}
	b, err = asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	return sasl.AppendToken(nil, sasl.APRep, asn1tools.AddASNAppTag(b, asnAppTag.APREP)), err
}

func derive(key types.EncryptionKey, usage uint32) sasl.Keys {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return sasl.Keys{}
	}
	encryption, _ := e.DeriveKey(key.KeyValue, common.GetUsageKe(usage))
	integrity, _ := e.DeriveKey(key.KeyValue, common.GetUsageKi(usage))
	check, _ := e.DeriveKey(key.KeyValue, common.GetUsageKc(usage))
	return sasl.Keys{EncType: key.KeyType, Encryption: encryption, Integrity: integrity, Check: check}
}

// readFrame reads a length and as many bytes.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > 64<<20 {
		return nil, errors.New("frame of more than 64 MiB")
	}
	b := make([]byte, size, size+16)
	_, err := io.ReadFull(r, b)
	return b, err
}

// Read reads what the client has wrapped.
func (c *accepted) Read(b []byte) (int, error) {
	if c.protection == sasl.Authentication {
		return c.Conn.Read(b)
	}
	for len(c.plain) == 0 {
		token, err := readFrame(c.Conn)
		if err != nil {
			return 0, err
		}
		if len(token) > c.MaxMessage {
			return 0, errors.New("token longer than was offered")
		}
		if c.plain, err = c.opener.Open(token, c.protection); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.plain)
	c.plain = c.plain[n:]
	return n, nil
}

// Write wraps, in pieces.
func (c *accepted) Write(b []byte) (int, error) {
	if c.protection == sasl.Authentication {
		return c.Conn.Write(b)
	}
	n := len(b)
	for len(b) > 0 {
		piece := b[:min(len(b), c.Piece)]
		b = b[len(piece):]
		var token []byte
		if c.protection == sasl.Privacy {
			token = c.sealer.Seal(nil, piece)
		} else {
			token = c.sealer.Sign(nil, piece)
		}
		if c.tokens++; c.tokens == c.Damage {
			token[len(token)/2] ^= 1
		}
		if _, err := c.Conn.Write(sasl.AppendFrame(nil, token)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Listen serves connections on loopback until the returned function is called, each by
// the server that next returns, with what dial connects to behind it.
func Listen(next func() Server, dial func() (net.Conn, error)) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { next().Serve(nc, dial) })
		}
	})
	return l.Addr().String(), func() { l.Close(); wg.Wait() }, nil
}
