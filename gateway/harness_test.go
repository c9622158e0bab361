package gateway_test

import (
	"io"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// The gateways of these tests are the core alone.
type (
	bench  = gatewaytest.Bench
	answer = gatewaytest.Answer
)

var (
	open        = gatewaytest.Open
	config      = gatewaytest.Config
	start       = gatewaytest.Start
	serve       = gatewaytest.Serve
	memoryStore = gatewaytest.Memory
	eventually  = gatewaytest.Eventually
)

// askUntil asks until the answer is as wanted. It is for gateways with a short timeout: on a busy
// machine queries run out of time that are not meant to.
func askUntil(b *bench, path string, wanted func(answer) bool, header ...string) answer {
	b.Helper()
	return until(wanted, func() answer { return b.Get(path, header...) })
}

// postUntil posts until the answer is as wanted, see askUntil.
func postUntil(b *bench, path, body string, wanted func(answer) bool, header ...string) answer {
	b.Helper()
	return until(wanted, func() answer { return b.Post(path, body, header...) })
}

func until(wanted func(answer) bool, ask func() answer) (a answer) {
	for end := time.Now().Add(gatewaytest.Patience); ; {
		if a = ask(); wanted(a) || time.Now().After(end) {
			return a
		}
	}
}

// little returns a short timeout for queries that are to run into it: 300 ms, or twenty times what
// a query takes now on this machine.
func little(t *testing.T) time.Duration {
	t.Helper()
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	began := time.Now()
	const tries = 5
	for range tries {
		b.Get(gatewaytest.SomeQuery)
	}
	return max(300*time.Millisecond, 20/tries*time.Since(began))
}

// answered returns a condition for askUntil: the answer has this status.
func answered(code int) func(answer) bool { return func(a answer) bool { return a.Status == code } }

// repeated reads as text n times.
func repeated(text string, n int) io.Reader {
	return io.LimitReader(&endless{text: []byte(text)}, int64(n)*int64(len(text)))
}

type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], e.text[e.at:])
		n, e.at = n+c, (e.at+c)%len(e.text)
	}
	return n, nil
}
