// Package kerberostest plays the other sides of Kerberos for tests: a KDC that listens on
// loopback, and a server that accepts contexts and then passes on what it unwraps. Both
// can be made to misbehave. They are made with gokrb5, as the client is; the tests of
// integration have MIT's KDC and Java's server.
package kerberostest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Realm is the realm of every KDC, and Other another one that it serves as well.
const (
	Realm = "TEST.EXAMPLE"
	Other = "OTHER.EXAMPLE"
)

// encType is the type of all keys, and of the sessions unless a test wants another.
const encType = sasl.AES256SHA1

// KDC gives tickets to anybody: only the owner of the key can use them.
type KDC struct {
	t        testing.TB
	dir      string
	listener net.Listener
	krbtgt   *keytab.Keytab
	cross    *keytab.Keytab // of krbtgt/Other, in Realm

	mu       sync.Mutex
	keys     map[string]*keytab.Keytab // by name, without the realm
	encType  int32
	life     time.Duration
	shift    time.Duration // of the clock
	refusals map[string]int32
	referred map[string]*keytab.Keytab // see AddReferred
	proof    []int32                   // see RequireProof
	alter    func(*messages.KDCRepFields, *messages.EncKDCRepPart)
	counts   map[string]int
	counted  chan struct{} // closed at the next count
}

// StartKDC starts a KDC that ends with the test. Its tickets last for a day.
func StartKDC(t testing.TB) *KDC {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &KDC{
		t:        t,
		dir:      t.TempDir(),
		listener: l,
		encType:  encType,
		life:     24 * time.Hour,
		keys:     map[string]*keytab.Keytab{},
		refusals: map[string]int32{},
		referred: map[string]*keytab.Keytab{},
		counts:   map[string]int{},
		counted:  make(chan struct{}),
	}
	k.krbtgt = k.newKeys("krbtgt/"+Realm, Realm, "secret of the KDC")
	k.cross = k.newKeys("krbtgt/"+Other, Realm, "secret of both")
	k.addKeys(k.cross, "krbtgt/"+Other, Other, "secret of both")

	text := fmt.Sprintf("[libdefaults]\n default_realm = %s\n udp_preference_limit = 1\n[realms]\n", Realm)
	for _, realm := range []string{Realm, Other} {
		text += fmt.Sprintf(" %s = {\n  kdc = %s\n }\n", realm, l.Addr())
	}
	if err := os.WriteFile(k.Krb5Conf(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { k.serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return k
}

// Krb5Conf returns the path of a krb5.conf that names the KDC.
func (k *KDC) Krb5Conf() string { return filepath.Join(k.dir, "krb5.conf") }

// Stop refuses all further connections.
func (k *KDC) Stop() { k.listener.Close() }

// AddPrincipal makes a principal, or gives it another key, and returns the path of its
// keytab.
func (k *KDC) AddPrincipal(name, password string) string {
	k.t.Helper()
	keys := k.newKeys(name, Realm, password)
	k.set(func() { k.keys[name] = keys })
	return k.write(name, keys)
}

// AddReferred makes a principal of the realm Other, to which a request for it is referred, and
// returns the path of its keytab.
func (k *KDC) AddReferred(name, password string) string {
	k.t.Helper()
	keys := k.newKeys(name, Other, password)
	k.set(func() { k.referred[name] = keys })
	return k.write(name, keys)
}

// ReferForEver refers requests for a service to the realm Other, there, too.
func (k *KDC) ReferForEver(name string) { k.set(func() { k.referred[name] = k.cross }) }

func (k *KDC) write(name string, keys *keytab.Keytab) string {
	k.t.Helper()
	path := filepath.Join(k.dir, strings.ReplaceAll(name, "/", "_")+".keytab")
	f, err := os.Create(path)
	if err != nil {
		k.t.Fatal(err)
	}
	defer f.Close()
	if _, err := keys.Write(f); err != nil {
		k.t.Fatal(err)
	}
	return path
}

func (k *KDC) newKeys(name, realm, password string) *keytab.Keytab {
	k.t.Helper()
	keys := keytab.New()
	k.addKeys(keys, name, realm, password)
	return keys
}

func (k *KDC) addKeys(keys *keytab.Keytab, name, realm, password string) {
	k.t.Helper()
	for _, e := range []int32{sasl.AES256SHA1, sasl.AES128SHA1, etypeID.RC4_HMAC} {
		if err := keys.AddEntry(name, realm, password, time.Now(), 1, e); err != nil {
			k.t.Fatal(err)
		}
	}
}

// SetLife sets how long the tickets from now on last.
func (k *KDC) SetLife(d time.Duration) { k.set(func() { k.life = d }) }

// SetClock shifts the KDC's clock.
func (k *KDC) SetClock(d time.Duration) { k.set(func() { k.shift = d }) }

// SetEncType sets the type of keys.
func (k *KDC) SetEncType(e int32) { k.set(func() { k.encType = e }) }

// Refuse answers requests for tickets for a service with an error of a code; "krbtgt/" and
// the realm are logins. Code 0 gives them again.
func (k *KDC) Refuse(service string, code int32) { k.set(func() { k.refusals[service] = code }) }

// RequireProof refuses logins without the time encrypted with the client's key, and lists
// encryption types for it.
func (k *KDC) RequireProof(types ...int32) { k.set(func() { k.proof = types }) }

// Alter changes all further replies before they are sealed.
func (k *KDC) Alter(f func(*messages.KDCRepFields, *messages.EncKDCRepPart)) {
	k.set(func() { k.alter = f })
}

func (k *KDC) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// ChangeKey gives the KDC another key: tickets for it from before are refused.
func (k *KDC) ChangeKey() {
	keys := k.newKeys("krbtgt/"+Realm, Realm, "another secret of the KDC")
	k.set(func() { k.krbtgt = keys })
}

// Wait waits until n tickets for a service were requested.
func (k *KDC) Wait(ctx context.Context, service string, n int) error {
	for {
		k.mu.Lock()
		count, counted := k.counts[service], k.counted
		k.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-counted:
		case <-ctx.Done():
			return fmt.Errorf("got %d requests for %s, want %d: %w", count, service, n, ctx.Err())
		}
	}
}

// Count returns how many tickets for a service were requested.
func (k *KDC) Count(service string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts[service]
}

// serve answers one request, after its length.
func (k *KDC) serve(nc net.Conn) {
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(nc, b); err != nil {
		return
	}
	reply, err := k.answer(b)
	if err != nil {
		var refusal messages.KRBError
		if refusal, _ = err.(messages.KRBError); refusal.ErrorCode == 0 {
			k.t.Errorf("KDC: %v", err)
			return
		}
		if reply, err = refusal.Marshal(); err != nil {
			k.t.Errorf("KDC: %v", err)
			return
		}
	}
	nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...))
}

func (k *KDC) answer(b []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	var as messages.ASReq
	if as.Unmarshal(b) == nil {
		keys := k.keys[as.ReqBody.CName.PrincipalNameString()]
		if keys == nil {
			return nil, k.refusal(as.ReqBody, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN)
		}
		if err := k.checkProof(as, keys); err != nil {
			return nil, err
		}
		key, kvno, err := keys.GetEncryptionKey(as.ReqBody.CName, Realm, 0, encType)
		if err != nil {
			return nil, err
		}
		fields, err := k.give(as.ReqBody, as.ReqBody.CName, k.krbtgt, key, keyusage.AS_REP_ENCPART, kvno)
		rep := messages.ASRep{KDCRepFields: fields}
		rep.MsgType = msgtype.KRB_AS_REP
		return marshalled(rep.Marshal, err)
	}

	var tgs messages.TGSReq
	if err := tgs.Unmarshal(b); err != nil {
		return nil, err
	}
	var req messages.APReq
	for _, pa := range tgs.PAData {
		if pa.PADataType == patype.PA_TGS_REQ {
			if err := req.Unmarshal(pa.PADataValue); err != nil {
				return nil, err
			}
		}
	}
	own := k.krbtgt
	if req.Ticket.SName.NameString[1] == Other {
		own = k.cross
	}
	if err := req.Ticket.DecryptEncPart(own, &req.Ticket.SName); err != nil {
		return nil, k.refusal(tgs.ReqBody, errorcode.KRB_AP_ERR_MODIFIED)
	}
	part := req.Ticket.DecryptedEncPart
	if part.EndTime.Before(k.now()) {
		return nil, k.refusal(tgs.ReqBody, errorcode.KRB_AP_ERR_TKT_EXPIRED)
	}
	keys := k.keys[tgs.ReqBody.SName.PrincipalNameString()]
	referred := k.referred[tgs.ReqBody.SName.PrincipalNameString()]
	switch {
	case referred != nil && referred != k.cross && tgs.ReqBody.Realm == Other:
		keys = referred
	case referred != nil:
		keys, tgs.ReqBody.SName = k.cross, types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+Other)
	case tgs.ReqBody.SName.PrincipalNameString() == "krbtgt/"+Other:
		keys = k.cross
	case tgs.ReqBody.SName.NameString[0] == "krbtgt":
		keys = k.krbtgt
	}
	if keys == nil {
		return nil, k.refusal(tgs.ReqBody, errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN)
	}
	fields, err := k.give(tgs.ReqBody, part.CName, keys, part.Key, keyusage.TGS_REP_ENCPART_SESSION_KEY, 0)
	rep := messages.TGSRep{KDCRepFields: fields}
	rep.MsgType = msgtype.KRB_TGS_REP
	return marshalled(rep.Marshal, err)
}

func marshalled(marshal func() ([]byte, error), err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return marshal()
}

func (k *KDC) now() time.Time { return time.Now().UTC().Add(k.shift) }

func (k *KDC) refusal(body messages.KDCReqBody, code int32) messages.KRBError {
	return messages.NewKRBError(body.SName, Realm, code, errorcode.Lookup(code))
}

// give makes a ticket for a service with keys, and the part that the client decrypts with
// its key.
func (k *KDC) give(body messages.KDCReqBody, client types.PrincipalName, keys *keytab.Keytab, key types.EncryptionKey,
	usage uint32, kvno int) (messages.KDCRepFields, error) {
	service := body.SName.PrincipalNameString()
	k.counts[service]++
	close(k.counted)
	k.counted = make(chan struct{})
	if code := k.refusals[service]; code != 0 {
		return messages.KDCRepFields{}, k.refusal(body, code)
	}

	session := k.encType
	if keys == k.krbtgt || keys == k.cross {
		session = encType
	}
	now := k.now().Truncate(time.Second)
	f := types.NewKrbFlags()
	types.SetFlag(&f, flags.Renewable)
	end, renew := now.Add(k.life), now.Add(7*24*time.Hour)
	t, sessionKey, err := messages.NewTicket(client, Realm, body.SName, body.Realm, f, keys, session, 1, now, now, end,
		renew)
	if err != nil {
		return messages.KDCRepFields{}, err
	}
	part := messages.EncKDCRepPart{
		Key:       sessionKey,
		Nonce:     body.Nonce,
		Flags:     f,
		AuthTime:  now,
		StartTime: now,
		EndTime:   end,
		RenewTill: renew,
		LastReqs:  []messages.LastReq{{LRValue: now}},
		SRealm:    body.Realm,
		SName:     body.SName,
	}
	rep := messages.KDCRepFields{PVNO: iana.PVNO, CRealm: Realm, CName: client, Ticket: t}
	if k.alter != nil {
		k.alter(&rep, &part)
	}
	b, err := part.Marshal()
	if err != nil {
		return messages.KDCRepFields{}, err
	}
	rep.EncPart, err = crypto.GetEncryptedData(b, key, usage, kvno)
	return rep, err
}

// checkProof refuses a login without the proof that RequireProof requires.
func (k *KDC) checkProof(as messages.ASReq, keys *keytab.Keytab) error {
	if k.proof == nil {
		return nil
	}
	for _, pa := range as.PAData {
		if pa.PADataType != patype.PA_ENC_TIMESTAMP {
			continue
		}
		var sealed types.EncryptedData
		if err := sealed.Unmarshal(pa.PADataValue); err != nil {
			return err
		}
		key, _, err := keys.GetEncryptionKey(as.ReqBody.CName, Realm, sealed.KVNO, sealed.EType)
		if err != nil {
			return k.refusal(as.ReqBody, errorcode.KDC_ERR_ETYPE_NOSUPP)
		}
		if _, err := crypto.DecryptEncPart(sealed, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP); err != nil {
			return k.refusal(as.ReqBody, errorcode.KDC_ERR_PREAUTH_FAILED)
		}
		return nil
	}

	var info types.ETypeInfo2
	for _, id := range k.proof {
		info = append(info, types.ETypeInfo2Entry{EType: id, Salt: "salt"})
	}
	value, err := asn1.Marshal(info)
	if err != nil {
		return err
	}
	refusal := k.refusal(as.ReqBody, errorcode.KDC_ERR_PREAUTH_REQUIRED)
	refusal.EData, err = asn1.Marshal(types.PADataSequence{{PADataType: patype.PA_ENC_TIMESTAMP},
		{PADataType: patype.PA_ETYPE_INFO2, PADataValue: value}})
	if err != nil {
		return err
	}
	return refusal
}
