package sasl

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
)

// Keys are the keys of one direction, derived from the context's key.
type Keys struct {
	EncType                      int32 // Kerberos's number of the encryption type
	Encryption, Integrity, Check []byte
}

// The encryption types whose wrap tokens are those of RFC 4121.
const (
	AES128SHA1 int32 = 17
	AES256SHA1 int32 = 18
	AES128SHA2 int32 = 19
	AES256SHA2 int32 = 20
)

// suite is the encryption and the MACs of one direction.
type suite struct {
	block            cipher.Block
	integrity, check hash.Hash
	macSize          int

	// macOfCipher is set where the MAC is over the encrypted bytes, after a block of
	// zeros (RFC 8009), and not over what they hold.
	macOfCipher bool

	scratch [64]byte // for a MAC that is only compared
}

const blockSize = aes.BlockSize

var zeros [blockSize]byte

func newSuite(k Keys) (*suite, error) {
	var s suite
	hash := sha1.New
	switch k.EncType {
	case AES128SHA1, AES256SHA1:
		s.macSize = 12
	case AES128SHA2:
		hash, s.macSize, s.macOfCipher = sha256.New, 16, true
	case AES256SHA2:
		hash, s.macSize, s.macOfCipher = sha512.New384, 24, true
	default:
		return nil, fmt.Errorf("encryption type: got %d, want one of AES (17 to 20)", k.EncType)
	}

	block, err := aes.NewCipher(k.Encryption)
	if err != nil {
		return nil, fmt.Errorf("encryption type %d: %w", k.EncType, err)
	}
	s.block = block
	s.integrity, s.check = hmac.New(hash, k.Integrity), hmac.New(hash, k.Check)
	return &s, nil
}

// encrypt encrypts dst from start on, at least two blocks, and appends the MAC.
//
// It is CBC with ciphertext stealing: the last two blocks change places, and the one
// that is last then is cut so that nothing is longer than before. Source: RFC 3962,
// section 5.
func (s *suite) encrypt(dst []byte, start int) []byte {
	n := len(dst) - start
	var mac [64]byte
	var sum []byte
	if !s.macOfCipher {
		sum = s.sum(mac[:0], s.integrity, dst[start:])
	}

	dst = append(dst, zeros[:(blockSize-n%blockSize)%blockSize]...)
	body := dst[start:]
	cipher.NewCBCEncrypter(s.block, zeros[:]).CryptBlocks(body, body)
	swapLast(body)
	dst = dst[:start+n]

	if s.macOfCipher {
		sum = s.sum(mac[:0], s.integrity, zeros[:], dst[start:])
	}
	return append(dst, sum...)
}

// decrypt returns what was encrypted, in the place of body, which has at least two
// blocks and a MAC.
func (s *suite) decrypt(body []byte) ([]byte, error) {
	n := len(body) - s.macSize
	want := s.scratch[:copy(s.scratch[:], body[n:])]
	var mac [64]byte
	if s.macOfCipher && !hmac.Equal(want, s.sum(mac[:0], s.integrity, zeros[:], body[:n])) {
		return nil, fmt.Errorf("%w: wrong checksum", ErrToken)
	}

	// The bytes that were stolen from the last block but one come back from the
	// decryption of the other. The MAC's place has room for the rest of the block, or the
	// buffer grows.
	plain := body[:n]
	if rest := n % blockSize; rest != 0 {
		last := n - rest
		var d [blockSize]byte
		s.block.Decrypt(d[:], plain[last-blockSize:last])
		plain = append(plain, d[rest:]...)
	}
	swapLast(plain)
	cipher.NewCBCDecrypter(s.block, zeros[:]).CryptBlocks(plain, plain)
	plain = plain[:n]

	if !s.macOfCipher && !hmac.Equal(want, s.sum(mac[:0], s.integrity, plain)) {
		return nil, fmt.Errorf("%w: wrong checksum", ErrToken)
	}
	return plain, nil
}

// swapLast swaps the last two blocks of b, which has whole blocks.
func swapLast(b []byte) {
	n := len(b)
	var last [blockSize]byte
	copy(last[:], b[n-blockSize:])
	copy(b[n-blockSize:], b[n-2*blockSize:n-blockSize])
	copy(b[n-2*blockSize:], last[:])
}
