package sasl_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"downpour/pushdown/store/hbase/sasl"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/common"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/types"
	"pgregory.net/rapid"
)

var encTypes = []int32{sasl.AES128SHA1, sasl.AES256SHA1, sasl.AES128SHA2, sasl.AES256SHA2}

// peer is the other implementation of the encryption: gokrb5's.
type peer struct {
	etype.EType
	key types.EncryptionKey
}

func newPeer(t rapid.TB, encType int32) peer {
	t.Helper()
	e, err := crypto.GetEtype(encType)
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, e.GetKeyByteSize())
	if encType == sasl.AES256SHA2 {
		key = make([]byte, 32) // gokrb5 gives the size of its MAC's key
	}
	rand.NewChaCha8([32]byte{byte(encType)}).Read(key)
	return peer{e, types.EncryptionKey{KeyType: encType, KeyValue: key}}
}

// keys derives the keys of a usage.
func (p peer) keys(t rapid.TB, usage uint32) sasl.Keys {
	t.Helper()
	derive := func(constant []byte) []byte {
		k, err := p.DeriveKey(p.key.KeyValue, constant)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	return sasl.Keys{EncType: p.key.KeyType, Encryption: derive(common.GetUsageKe(usage)),
		Integrity: derive(common.GetUsageKi(usage)), Check: derive(common.GetUsageKc(usage))}
}

func (p peer) sealer(t rapid.TB, d sasl.Direction) *sasl.Sealer {
	t.Helper()
	s, err := sasl.NewSealer(p.keys(t, d.Usage()), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p peer) opener(t rapid.TB, d sasl.Direction) *sasl.Opener {
	t.Helper()
	o, err := sasl.NewOpener(p.keys(t, d.Usage()), d)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func drawDirection(t *rapid.T) sasl.Direction {
	return sasl.Direction{Acceptor: rapid.Bool().Draw(t, "acceptor"), Subkey: rapid.Bool().Draw(t, "subkey"),
		First: rapid.Uint64().Draw(t, "first")}
}

// What is sealed or signed is opened again, token after token, whether the bytes after
// the header are rotated or not.
func TestWrap_roundtrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPeer(t, rapid.SampledFrom(encTypes).Draw(t, "etype"))
		d := drawDirection(t)
		seal, open := p.sealer(t, d), p.opener(t, d)
		for range rapid.IntRange(1, 4).Draw(t, "tokens") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
			protection := rapid.SampledFrom([]sasl.Protection{sasl.Integrity, sasl.Privacy}).Draw(t, "protection")
			token := wrap(seal, protection, data)
			if len(token) > len(data)+seal.Overhead() {
				t.Fatalf("token of %d bytes has %d, more than the overhead of %d", len(data), len(token),
					seal.Overhead())
			}

			rotate(token, rapid.IntRange(0, 300).Draw(t, "rotation"))
			got, err := open.Open(token, protection)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("got %x, %v, want %x", got, err, data)
			}
		}
	})
}

func wrap(s *sasl.Sealer, p sasl.Protection, data []byte) []byte {
	if p == sasl.Privacy {
		return s.Seal(nil, data)
	}
	return s.Sign(nil, data)
}

// rotate turns what follows the header to the right by n bytes.
func rotate(token []byte, n int) {
	binary.BigEndian.PutUint16(token[6:], uint16(n))
	body := token[16:]
	k := len(body) - n%len(body)
	copy(body, slices.Concat(body[k:], body[:k]))
}

// gokrb5 decrypts what we seal, and we open what it encrypts.
func TestWrap_sealedByOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPeer(t, rapid.SampledFrom(encTypes).Draw(t, "etype"))
		d := drawDirection(t)
		data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")

		token := p.sealer(t, d).Seal(nil, data)
		plain, err := p.DecryptMessage(p.key.KeyValue, token[16:], d.Usage())
		if err != nil || !bytes.Equal(plain, slices.Concat(data, token[:16])) {
			t.Fatalf("gokrb5 decrypts to %x, %v, want the data and the header", plain, err)
		}

		filler := rapid.IntRange(0, 20).Draw(t, "filler")
		header := slices.Clone(token[:16])
		binary.BigEndian.PutUint16(header[4:], uint16(filler))
		_, sealed, err := p.EncryptMessage(p.key.KeyValue, slices.Concat(data, make([]byte, filler), header), d.Usage())
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.opener(t, d).Open(slices.Concat(header, sealed), sasl.Privacy)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("of gokrb5's token got %x, %v, want %x", got, err, data)
		}
	})
}

// gokrb5 verifies what we sign, and we verify what it signs.
func TestWrap_signedByOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPeer(t, rapid.SampledFrom(encTypes).Draw(t, "etype"))
		d := sasl.Direction{Acceptor: rapid.Bool().Draw(t, "acceptor"), First: rapid.Uint64().Draw(t, "first")}
		data := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")

		token := p.sealer(t, d).Sign(nil, data)
		var theirs gssapi.WrapToken
		if err := theirs.Unmarshal(token, d.Acceptor); err != nil {
			t.Fatal(err)
		}
		if ok, err := theirs.Verify(p.key, d.Usage()); !ok {
			t.Fatalf("gokrb5 does not verify it: %v", err)
		}

		made := gssapi.WrapToken{
			Flags:     token[2],
			EC:        uint16(p.GetHMACBitLength() / 8),
			SndSeqNum: d.First,
			Payload:   data,
		}
		if err := made.SetCheckSum(p.key, d.Usage()); err != nil {
			t.Fatal(err)
		}
		b, err := made.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.opener(t, d).Open(b, sasl.Integrity)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("of gokrb5's token got %x, %v, want %x", got, err, data)
		}
	})
}

// Java's tokens have only the low 32 bits of their number, which begin with 0 again. Others
// count on. A number that is neither is refused.
func TestWrap_manyTokens(t *testing.T) {
	for _, protection := range []sasl.Protection{sasl.Integrity, sasl.Privacy} {
		for _, low := range []bool{false, true} {
			p := newPeer(t, sasl.AES256SHA1)
			first := sasl.Direction{Acceptor: true, First: 1<<32 - 2}
			open := p.opener(t, first)
			for i := range uint64(5) {
				d := first
				if d.First += i; low {
					d.First = uint64(uint32(d.First))
				}
				if got, err := open.Open(wrap(p.sealer(t, d), protection, []byte("data")), protection); err != nil ||
					string(got) != "data" {
					t.Errorf("%v, low bits only %t, token %d: got %q, %v", protection, low, i, got, err)
				}
			}
			for _, n := range []uint64{2, 1<<32 + 2, 4, 1<<33 + 3} { // 1<<32 + 3 is next
				d := sasl.Direction{Acceptor: true, First: n}
				if _, err := open.Open(wrap(p.sealer(t, d), protection, nil),
					protection); !errors.Is(err, sasl.ErrToken) {
					t.Errorf("%v: number %d: got %v, want ErrToken", protection, n, err)
				}
			}

			// Who begins above has more than 32 bits.
			d := sasl.Direction{Acceptor: true, First: 1<<32 + 1}
			short := sasl.Direction{Acceptor: true, First: 1}
			if _, err := p.opener(t, d).Open(wrap(p.sealer(t, short), protection, nil),
				protection); !errors.Is(err, sasl.ErrToken) {
				t.Errorf("%v: low bits of a number that began above: got %v, want ErrToken", protection, err)
			}
		}
	}
}

// A token with one bit changed, one that comes twice, and one behind a missing one are
// refused.
//
//fault:changed-token-opened !hmac.Equal => false && !hmac.Equal
func TestWrap_refused(t *testing.T) {
	for _, encType := range encTypes {
		for _, protection := range []sasl.Protection{sasl.Integrity, sasl.Privacy} {
			p := newPeer(t, encType)
			d := sasl.Direction{Acceptor: true, First: 7}
			token := wrap(p.sealer(t, d), protection, []byte("some data of a reply"))
			// The rotation says how the bytes lie, not what they are, and is not signed;
			// one that is a multiple of their number is none.
			for bit := range 8 * len(token) {
				changed := slices.Clone(token)
				changed[bit/8] ^= 1 << (bit % 8)
				data, err := p.opener(t, d).Open(changed, protection)
				rotated := bit/8 == 6 || bit/8 == 7
				if !errors.Is(err, sasl.ErrToken) && !rotated {
					t.Errorf("etype %d, %v, bit %d changed: got %q, %v, want ErrToken", encType, protection, bit, data,
						err)
				}
			}
			for n := range len(token) {
				if _, err := p.opener(t, d).Open(slices.Clone(token[:n]), protection); !errors.Is(err, sasl.ErrToken) {
					t.Errorf("etype %d, %v, cut to %d bytes: got %v, want ErrToken", encType, protection, n, err)
				}
			}

			open := p.opener(t, d)
			if _, err := open.Open(slices.Clone(token), protection); err != nil {
				t.Fatal(err)
			}
			if _, err := open.Open(slices.Clone(token), protection); !errors.Is(err, sasl.ErrToken) {
				t.Errorf("the same token again: got %v, want ErrToken", err)
			}

			s := p.sealer(t, d)
			wrap(s, protection, []byte("lost"))
			if _, err := p.opener(t, d).Open(wrap(s, protection, []byte("second")),
				protection); !errors.Is(err, sasl.ErrToken) {
				t.Errorf("the second token without the first: got %v, want ErrToken", err)
			}
		}
	}
}

// A signed token is not taken where tokens must be sealed, nor the other way round, nor
// one of our own direction.
func TestWrap_otherProtection(t *testing.T) {
	p := newPeer(t, sasl.AES256SHA1)
	d := sasl.Direction{Acceptor: true}
	if _, err := p.opener(t, d).Open(p.sealer(t, d).Sign(nil, []byte("x")),
		sasl.Privacy); !errors.Is(err, sasl.ErrToken) {
		t.Errorf("signed, want sealed: got %v, want ErrToken", err)
	}
	if _, err := p.opener(t, d).Open(p.sealer(t, d).Seal(nil, []byte("x")),
		sasl.Integrity); !errors.Is(err, sasl.ErrToken) {
		t.Errorf("sealed, want signed: got %v, want ErrToken", err)
	}
	if _, err := p.opener(t, d).Open(p.sealer(t, sasl.Direction{}).Seal(nil, []byte("x")),
		sasl.Privacy); !errors.Is(err, sasl.ErrToken) {
		t.Errorf("our own direction: got %v, want ErrToken", err)
	}
}

func TestWrap_encType(t *testing.T) {
	if _, err := sasl.NewSealer(sasl.Keys{EncType: 23}, sasl.Direction{}); err == nil {
		t.Error("RC4: got no error")
	}
}

// Random bytes open to nothing, and nothing panics.
func FuzzOpen(f *testing.F) {
	p := newPeer(f, sasl.AES128SHA2)
	d := sasl.Direction{Acceptor: true}
	seal := p.sealer(f, d)
	f.Add(seal.Seal(nil, []byte("some data"))[:40])
	f.Add(p.sealer(f, d).Sign(nil, nil)[:30])
	f.Add([]byte{5, 4, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, protection := range []sasl.Protection{sasl.Integrity, sasl.Privacy} {
			if data, err := p.opener(t, d).Open(slices.Clone(b), protection); err == nil {
				t.Errorf("opened %x to %x", b, data)
			}
		}
	})
}

// Both sizes matter: a small call, and the pieces of a large reply. The keys are those of
// the most common type.
func BenchmarkWrap(b *testing.B) {
	p := newPeer(b, sasl.AES256SHA1)
	for _, protection := range []sasl.Protection{sasl.Integrity, sasl.Privacy} {
		for _, size := range []int{100, 1 << 20} {
			data := make([]byte, size)
			name := protection.String() + map[bool]string{true: "/small", false: "/large"}[size == 100]
			b.Run(name+"/wrap", func(b *testing.B) {
				s, buf := p.sealer(b, sasl.Direction{}), make([]byte, 0, size+200)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if protection == sasl.Privacy {
						s.Seal(buf, data)
					} else {
						s.Sign(buf, data)
					}
				}
			})
			b.Run(name+"/open", func(b *testing.B) {
				d := sasl.Direction{Acceptor: true}
				token := wrap(p.sealer(b, d), protection, data)
				buf := make([]byte, len(token), len(token)+16)
				keys := p.keys(b, d.Usage())
				b.SetBytes(int64(size))
				b.ReportAllocs()
				o, _ := sasl.NewOpener(keys, d)
				for b.Loop() {
					copy(buf, token)
					again := *o // with the same sequence number
					if _, err := again.Open(buf, protection); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
