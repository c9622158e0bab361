package listener

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// A record of TLS, with which its clients begin, and what answers it: Go's client recognizes an
// answer that begins with HTTP, and others report a wrong version. An alert of TLS would not be
// clearer.
//
//	16 03 01 00 f8 01 …   a handshake, versions 3.1 to 3.3, 248 bytes, a ClientHello
const recordHandshake = 0x16

const (
	plainHere = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	noTLS     = "This port speaks no TLS: use http:// and ws://, and telnet as it is.\n"
	onlyTLS   = "This port speaks only TLS: use https:// and wss://, and telnet through TLS.\n"
)

const (
	// restTimeout and restBytes bound reading after an answer. If nothing were read,
	// the closing would reach the client first, and the answer be lost.
	restTimeout = time.Second
	restBytes   = 64 << 10
	// loggedEvery is the time between two lines in the log.
	loggedEvery = time.Second
)

// answerTLS answers a client that speaks TLS to a plain port.
func (d *Listener) answerTLS(c net.Conn) {
	d.wrongProtocol(c, "a client speaks TLS to a port without it: it needs http://, or the gateway DOWNPOUR_TLS_CERT",
		plainHere+noTLS)
}

// answerPlain answers a client that speaks another protocol to a port with TLS, if err, of the
// handshake, shows that.
func (d *Listener) answerPlain(err error) {
	var other tls.RecordHeaderError
	if !errors.As(err, &other) || other.Conn == nil {
		return
	}
	answer := onlyTLS
	if isVerb(other.RecordHeader[0]) {
		answer = plainHere + onlyTLS
	}
	d.wrongProtocol(other.Conn, "a client speaks no TLS to a port that wants it: it needs https://", answer)
}

// isVerb recognizes HTTP by its first byte: its verbs are in capitals, the commands of telnet are not.
func isVerb(first byte) bool { return first >= 'A' && first <= 'Z' }

// wrongProtocol logs, answers and lets the client read the answer.
func (d *Listener) wrongProtocol(c net.Conn, line, answer string) {
	if last := d.logged.Load(); time.Now().UnixNano()-last >= int64(loggedEvery) &&
		d.logged.CompareAndSwap(last, time.Now().UnixNano()) {
		d.cfg.Log.Warn(line, "address", c.RemoteAddr().String())
	}
	c.SetDeadline(time.Now().Add(restTimeout))
	if _, err := io.WriteString(c, answer); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c, restBytes))
}
