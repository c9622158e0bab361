// Package proof lets gateways and pushdown servers prove to each other that they know an admin token, and shows it to
// nobody.
//
//	key.go        keys that are derived from admin tokens, and what they sign
//	handshake.go  the proof at the beginning of a connection
//
// # Keys
//
// A key is derived from a token by PBKDF2, so slowly that who sees a signature can hardly find a token by trying: a
// token that a person has made up has at least 16 characters, but perhaps few that cannot be guessed. A random one
// cannot be found at all. Each signature is for one Purpose, so that none can be used in place of another.
//
// # Handshake
//
// Before anything else, a gateway that has found a server sends a random number, the address that it dials, and
// signatures of both. The server answers with a signature of its own, if it knows one of the keys and is announced at
// just this address:
//
//	gateway: "PRF" length {"nonce":"…","address":"rs1:4280","signatures":["…",…]}
//	server:  length {"signature":"…"} or {"refused":"why"}
//
// So who listens at an announced address without knowing an admin token cannot answer. It gains nothing if it passes
// the question on to a pushdown server, which has another address. And who knows no admin token gets no signature from
// a pushdown server, because it cannot ask.
//
// What follows on the connection is as safe as the connection: only TLS keeps out who can change what others send.
package proof

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
)

// Key is derived from an admin token.
type Key [sha256.Size]byte

// MaxKeys bounds the keys that are used: those of the first admin tokens of a file.
const MaxKeys = 8

// rounds is the work to derive a key: about a third of a second.
const rounds = 600_000

// derived are keys by the hashes of their tokens, because to derive them takes long. maxDerived bounds them: tokens are
// replaced now and then.
var derived struct {
	sync.Mutex
	keys map[[sha256.Size]byte]Key
}

const maxDerived = 100

// Keys returns the keys of admin tokens, which are given by their hashes, see auth.Tokens.Admins.
func Keys(hashes [][sha256.Size]byte) (keys []Key, err error) {
	derived.Lock()
	defer derived.Unlock()
	if derived.keys == nil || len(derived.keys) >= maxDerived {
		derived.keys = map[[sha256.Size]byte]Key{}
	}
	for _, h := range hashes[:min(len(hashes), MaxKeys)] {
		k, ok := derived.keys[h]
		if !ok {
			b, err := pbkdf2.Key(sha256.New, string(h[:]), []byte("downpour admin token 1"), rounds, len(k))
			if err != nil {
				return nil, fmt.Errorf("cannot derive a key from an admin token: %w", err)
			}
			copy(k[:], b)
			derived.keys[h] = k
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Purpose is what a signature is for.
type Purpose string

// Purposes of signatures.
const (
	Announcement Purpose = "downpour announcement 1" // of a pushdown server, see package announce
	question     Purpose = "downpour question 1"
	answer       Purpose = "downpour answer 1"
)

// Sign returns the signature of some texts in hex: an HMAC over them and their lengths.
func (k Key) Sign(purpose Purpose, texts ...string) string {
	h := hmac.New(sha256.New, k[:])
	for _, t := range append([]string{string(purpose)}, texts...) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Signatures returns the signatures by some keys.
func Signatures(keys []Key, purpose Purpose, texts ...string) (out []string) {
	for _, k := range keys {
		out = append(out, k.Sign(purpose, texts...))
	}
	return out
}

// Signer returns the first of some keys by which one of the signatures is. It compares in constant time.
func Signer(keys []Key, signatures []string, purpose Purpose, texts ...string) (by Key, ok bool) {
	for _, k := range keys {
		want := []byte(k.Sign(purpose, texts...))
		for _, s := range signatures[:min(len(signatures), MaxKeys)] {
			if hmac.Equal(want, []byte(s)) && !ok {
				by, ok = k, true
			}
		}
	}
	return by, ok
}
