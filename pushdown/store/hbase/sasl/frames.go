package sasl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The preambles of a connection to an HBase server.
const (
	Preamble       = "HBas\x00\x51" // SASL with Kerberos
	SimplePreamble = "HBas\x00\x50" // no authentication
)

// ErrFrame is returned for bytes that no server sends in a handshake.
var ErrFrame = errors.New("malformed SASL frame")

// ErrSimple is returned by ReadReply if the server wants no SASL: it takes the
// connection's header next, without a preamble.
var ErrSimple = errors.New("the server wants no authentication")

// RefusedError is a server's refusal of the handshake.
type RefusedError struct {
	Class, Message string // of a Java exception
}

// Error returns class and message.
func (e *RefusedError) Error() string { return e.Class + ": " + e.Message }

const (
	statusSuccess = 0
	statusError   = 1

	lengthSimple = -88 // in the place of a token's length

	// maxToken bounds a token of the handshake. A ticket with the groups of an Active
	// Directory takes up to 64 KiB.
	maxToken = 1 << 20
	maxText  = 64 << 10 // bytes of an exception's class or message
)

// AppendFrame appends a token of the handshake, which may be empty, after its length.
func AppendFrame(dst, token []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(token)))
	return append(dst, token...)
}

// ReadReply reads a server's reply in the handshake and returns its token. The error is
// ErrSimple, a *RefusedError, ErrFrame, or one of r.
func ReadReply(r io.Reader) ([]byte, error) {
	status, err := readInt(r)
	if err != nil {
		return nil, err
	}
	switch status {
	case statusSuccess:
	case statusError:
		return nil, readRefusal(r)
	default:
		return nil, fmt.Errorf("%w: status: got %d, want 0 or 1", ErrFrame, status)
	}

	length, err := readInt(r)
	switch {
	case err != nil:
		return nil, err
	case length == lengthSimple:
		return nil, ErrSimple
	case length < 0 || length > maxToken:
		return nil, fmt.Errorf("%w: length of a token: got %d, want 0 to %d", ErrFrame, length, maxToken)
	}
	return readBytes(r, length)
}

// readRefusal reads what follows the status of an error.
func readRefusal(r io.Reader) error {
	class, err := readText(r)
	if err != nil {
		return err
	}
	message, err := readText(r)
	if err != nil {
		return err
	}
	return &RefusedError{class, message}
}

func readText(r io.Reader) (string, error) {
	length, err := readInt(r)
	if err != nil {
		return "", err
	}
	// Java writes -1 for a text that is null.
	if length == -1 {
		return "", nil
	}
	if length < 0 || length > maxText {
		return "", fmt.Errorf("%w: length of an error's text: got %d, want 0 to %d", ErrFrame, length, maxText)
	}
	b, err := readBytes(r, length)
	return strings.ToValidUTF8(string(b), "?"), err
}

func readInt(r io.Reader) (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return int(int32(binary.BigEndian.Uint32(b[:]))), nil
}

func readBytes(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	if err == io.EOF && n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// Protection is how calls and replies are protected after the handshake.
type Protection byte

// The protections, weakest first; each is its bit in an offer.
const (
	Authentication Protection = 1 // they travel in clear
	Integrity      Protection = 2 // they are signed
	Privacy        Protection = 4 // they are sealed
)

// String returns the name that hbase.rpc.protection has for it.
func (p Protection) String() string {
	switch p {
	case Authentication:
		return "authentication"
	case Integrity:
		return "integrity"
	case Privacy:
		return "privacy"
	}
	return fmt.Sprintf("protection %d", byte(p))
}

// Protections is a set of protections.
type Protections byte

// AnyProtection is the set of all three.
const AnyProtection = Protections(Authentication | Integrity | Privacy)

// ParseProtections parses names with commas between them, as in hbase.rpc.protection.
// Nothing is AnyProtection.
func ParseProtections(text string) (Protections, error) {
	if strings.TrimSpace(text) == "" {
		return AnyProtection, nil
	}
	var set Protections
next:
	for name := range strings.SplitSeq(text, ",") {
		for _, p := range []Protection{Authentication, Integrity, Privacy} {
			if strings.TrimSpace(name) == p.String() {
				set |= Protections(p)
				continue next
			}
		}
		return 0, fmt.Errorf("got %q, want authentication, integrity or privacy, or some of them with commas between",
			text)
	}
	return set, nil
}

// Strongest returns the strongest protection of a set, 0 if it has none.
func (s Protections) Strongest() Protection {
	for _, p := range []Protection{Privacy, Integrity, Authentication} {
		if s&Protections(p) != 0 {
			return p
		}
	}
	return 0
}

// String returns the names, weakest first, with commas between them.
func (s Protections) String() string {
	var names []string
	for _, p := range []Protection{Authentication, Integrity, Privacy} {
		if s&Protections(p) != 0 {
			names = append(names, p.String())
		}
	}
	return strings.Join(names, ",")
}

// Offer is a server's offer.
type Offer struct {
	Protections Protections
	MaxMessage  int // bytes of data that the server takes in one wrap token
}

// ParseOffer parses the data of a server's signed offer.
func ParseOffer(b []byte) (Offer, error) {
	if len(b) != 4 {
		return Offer{}, fmt.Errorf("%w: offer: got %d bytes, want 4", ErrFrame, len(b))
	}
	return Offer{Protections(b[0]) & AnyProtection, int(binary.BigEndian.Uint32(b) & 0xffffff)}, nil
}

// Choice returns the data of the client's choice. With authentication alone no message
// is wrapped, and their length must be 0. Source: RFC 4752, section 3.1.
func Choice(p Protection) []byte {
	if p == Authentication {
		return []byte{byte(p), 0, 0, 0}
	}
	return []byte{byte(p), 0xff, 0xff, 0xff}
}
