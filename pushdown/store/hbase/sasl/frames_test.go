package sasl_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/store/hbase/sasl"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadReply(t *testing.T) {
	token, err := sasl.ReadReply(bytes.NewReader(unhex(t, "00000000 00000003 0a0b0c ff")))
	if err != nil || !bytes.Equal(token, []byte{10, 11, 12}) {
		t.Errorf("token: got %x, %v", token, err)
	}
	if _, err := sasl.ReadReply(bytes.NewReader(unhex(t, "00000000 ffffffa8"))); !errors.Is(err, sasl.ErrSimple) {
		t.Errorf("length -88: got %v, want ErrSimple", err)
	}

	refusal := append(unhex(t, "00000001 0000000e"), "javax.Security"...)
	refusal = append(append(refusal, 0, 0, 0, 4), "Fail"...)
	_, err = sasl.ReadReply(bytes.NewReader(refusal))
	var refused *sasl.RefusedError
	if !errors.As(err, &refused) || refused.Error() != "javax.Security: Fail" {
		t.Errorf("refusal: got %v", err)
	}

	for _, bad := range []string{"00000002 00000000", "48545450", "00000000 ffffffff", "00000000 00100001",
		"00000001 00010001"} {
		if _, err := sasl.ReadReply(bytes.NewReader(append(unhex(t, bad), make([]byte, 100)...))); !errors.Is(err,
			sasl.ErrFrame) {
			t.Errorf("%s: got %v, want ErrFrame", bad, err)
		}
	}
	for n := range refusal {
		if _, err := sasl.ReadReply(bytes.NewReader(refusal[:n])); err != io.EOF &&
			!errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d bytes: got %v, want the end of the file", n, err)
		}
	}
}

// Whatever a server sends is a token, a refusal or an error, and what is read is what
// was sent.
func FuzzReadReply(f *testing.F) {
	f.Add(unhex(f, "00000000 00000003 0a0b0c"))
	f.Add(unhex(f, "00000000 ffffffa8"))
	f.Add(unhex(f, "00000001 00000001 41 ffffffff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		token, err := sasl.ReadReply(r)
		read := b[:len(b)-r.Len()]
		var refused *sasl.RefusedError
		switch {
		case err == nil:
			if want := sasl.AppendFrame([]byte{0, 0, 0, 0}, token); !bytes.Equal(read, want) {
				t.Errorf("read %x and returned %x", read, token)
			}
		case errors.Is(err, sasl.ErrSimple):
			if !bytes.Equal(read, unhex(t, "00000000 ffffffa8")) {
				t.Errorf("read %x and returned ErrSimple", read)
			}
		case errors.As(err, &refused):
			if binary.BigEndian.Uint32(read) != 1 {
				t.Errorf("read %x and returned %v", read, err)
			}
		}
	})
}

func TestToken_roundtrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := sasl.TokenID(rapid.Uint16().Draw(t, "id"))
		size := rapid.SampledFrom([]int{0, 1, 113, 114, 115, 300, 65522, 65523, 70000}).Draw(t, "size")
		body := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, size)
		b := sasl.AppendToken(nil, id, body)
		gotID, got, err := sasl.ParseToken(b)
		if err != nil || gotID != id || !bytes.Equal(got, body) {
			t.Fatalf("of %d bytes got %x, %d bytes, %v", size, gotID, len(got), err)
		}
		if _, _, err := sasl.ParseToken(b[:len(b)-1]); !errors.Is(err, sasl.ErrFrame) {
			t.Fatalf("without its last byte: got %v, want ErrFrame", err)
		}
	})
}

func FuzzParseToken(f *testing.F) {
	f.Add(sasl.AppendToken(nil, sasl.APRep, []byte("reply")))
	f.Add(sasl.AppendToken(nil, sasl.APReq, make([]byte, 300)))
	f.Add([]byte{0x60, 0x84, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		id, body, err := sasl.ParseToken(b)
		if err == nil && !bytes.HasSuffix(sasl.AppendToken(nil, id, body),
			slices.Concat([]byte{byte(id >> 8), byte(id)}, body)) {
			t.Errorf("%x: got %x and %x", b, id, body)
		}
	})
}

func TestOffer(t *testing.T) {
	offer, err := sasl.ParseOffer(unhex(t, "07 010000"))
	if err != nil || offer != (sasl.Offer{Protections: sasl.AnyProtection, MaxMessage: 1 << 16}) {
		t.Errorf("got %+v, %v", offer, err)
	}
	for _, bad := range []string{"", "07 0100", "07 01000000"} {
		if _, err := sasl.ParseOffer(unhex(t, bad)); !errors.Is(err, sasl.ErrFrame) {
			t.Errorf("%q: got %v, want ErrFrame", bad, err)
		}
	}

	for p, want := range map[sasl.Protection]string{sasl.Authentication: "01 000000", sasl.Integrity: "02 ffffff",
		sasl.Privacy: "04 ffffff"} {
		if got := sasl.Choice(p); !bytes.Equal(got, unhex(t, want)) {
			t.Errorf("choice of %v: got %x, want %s", p, got, want)
		}
	}
}

func TestProtections(t *testing.T) {
	for text, want := range map[string]string{"": "authentication,integrity,privacy", "privacy": "privacy",
		"privacy, authentication": "authentication,privacy"} {
		if got, err := sasl.ParseProtections(text); err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"secret", "privacy,", "Privacy"} {
		if got, err := sasl.ParseProtections(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
	if got := (sasl.Protections(
		sasl.Authentication) | sasl.Protections(sasl.Integrity)).Strongest(); got != sasl.Integrity {
		t.Errorf("strongest: got %v, want integrity", got)
	}
	if got := sasl.Protections(0).Strongest(); got != 0 {
		t.Errorf("strongest of none: got %v", got)
	}
}
