package proof

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Magic is how a connection begins on which a proof is demanded. Neither HTTP/1 nor HTTP/2 begins so.
const Magic = "PRF"

// ErrUnproven is returned for a server that has not proven that it knows an admin token.
var ErrUnproven = errors.New("the server has not proven that it knows an admin token of ours")

// maxMessage bounds the bytes of a message.
const maxMessage = 4 << 10

// asked is what a gateway sends.
type asked struct {
	Nonce      string   `json:"nonce"`
	Address    string   `json:"address"`
	Signatures []string `json:"signatures"`
}

// answered is what a server sends.
type answered struct {
	Signature string `json:"signature,omitempty"`
	Refused   string `json:"refused,omitempty"`
}

// Ask demands the proof from the server at the other end of a connection, which was dialed at an address. Nothing was
// sent on it before. The error is an ErrUnproven, unless the connection failed.
func Ask(ctx context.Context, c net.Conn, address string, keys []Key) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	if len(keys) == 0 {
		return fmt.Errorf("%w: we know none", ErrUnproven)
	}
	b := make([]byte, 32)
	rand.Read(b) // never fails
	nonce := hex.EncodeToString(b)
	if _, err := io.WriteString(c, Magic); err != nil {
		return err
	}
	q := asked{Nonce: nonce, Address: address, Signatures: Signatures(keys, question, nonce, address)}
	if err := write(c, q); err != nil {
		return err
	}
	var a answered
	if err := read(c, &a); err != nil {
		return fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	if a.Refused != "" {
		return fmt.Errorf("%w: it says that %.100q", ErrUnproven, a.Refused)
	}
	_, proven := Signer(keys, []string{a.Signature}, answer, nonce, address)
	if !proven { //fault:any-signature-is-a-proof TestHandshake_replayed
		return fmt.Errorf("%w: its signature is wrong", ErrUnproven)
	}
	return nil
}

// Why a server refuses to answer.
var (
	errStranger = errors.New("no signature is by an admin token of this server")
	errAddress  = errors.New("this server is not announced at that address")
)

// Answer gives the proof to who has sent Magic, if it knows an admin token, too, and has dialed the address at which
// this server is announced. After an error the connection is of no use.
func Answer(c io.ReadWriter, address string, keys []Key) error {
	var q asked
	if err := read(c, &q); err != nil {
		return err
	}
	refuse := func(err error) error {
		_ = write(c, answered{Refused: err.Error()})
		return err
	}
	by, ok := Signer(keys, q.Signatures, question, q.Nonce, q.Address)
	if !ok { //fault:anybody-may-ask TestHandshake
		return refuse(errStranger)
	}
	if address == "" || q.Address != address { //fault:proof-for-any-address TestHandshake
		return refuse(errAddress)
	}
	return write(c, answered{Signature: by.Sign(answer, q.Nonce, q.Address)})
}

func write(to io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	return err
}

// read reads a message, and no byte of what follows it.
func read(from io.Reader, message any) error {
	var length [2]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return fmt.Errorf("no message of the proof came: %w", err)
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > maxMessage {
		return fmt.Errorf("a message of the proof has %d bytes, want at most %d", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return fmt.Errorf("a message of the proof ends early: %w", err)
	}
	if err := json.Unmarshal(b, message); err != nil {
		return fmt.Errorf("a message of the proof cannot be read: %w", err)
	}
	return nil
}
