// Package gatewaytest opens gateways for tests, over stores in memory and simulated HBases, and
// speaks to them as clients do: by HTTP and by telnet. A test in ./gateway has the core alone; a
// package of tests of extras sets Extras.
package gatewaytest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"downpour/gateway"
)

// Patience is how long a test waits for what must come. Only a hang takes so long, however busy the
// machine is.
const Patience = 5 * time.Minute

// Main runs the tests of a package, and wants that they leave no goroutine.
func Main(m *testing.M) {
	// The HTTP client of the tests keeps connections; they are no leak.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// Bench is a gateway of a test.
type Bench struct {
	*testing.T
	Config  *gateway.Config
	Store   *Faulty // nil if the gateway has another one
	Gateway *gateway.Server
	TLS     *tls.Config // of the clients, if the gateway has a certificate
	https   *http.Client
}

// client speaks to the gateway.
func (b *Bench) client() *http.Client {
	if b.TLS == nil {
		return http.DefaultClient
	}
	if b.https == nil {
		transport := &http.Transport{TLSClientConfig: b.TLS}
		b.Cleanup(transport.CloseIdleConnections)
		b.https = &http.Client{Transport: transport}
	}
	return b.https
}

// Open starts a gateway; change, if not nil, changes its settings before.
func Open(t *testing.T, change func(*gateway.Config)) *Bench {
	t.Helper()
	cfg := Config(0)
	if change != nil {
		change(cfg)
	}
	return Serve(t, cfg, NewFaulty(Memory(t, cfg)))
}

// Answer is an HTTP answer, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // reading the body
}

// Do sends a request; header pairs follow the body. A Host pair sets the host.
func (b *Bench) Do(method, path string, body io.Reader, header ...string) Answer {
	b.Helper()
	a, err := b.Try(b.Context(), method, path, body, header...)
	if err != nil {
		b.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Try is Do for a request that may fail.
func (b *Bench) Try(ctx context.Context, method, path string, body io.Reader, header ...string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.Gateway.URL()+strings.TrimPrefix(path, "/"), body)
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := b.client().Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(text), err}, nil
}

// Get sends a GET, see Do.
func (b *Bench) Get(path string, header ...string) Answer {
	b.Helper()
	return b.Do(http.MethodGet, path, nil, header...)
}

// Post sends a POST, see Do.
func (b *Bench) Post(path, body string, header ...string) Answer {
	b.Helper()
	return b.Do(http.MethodPost, path, strings.NewReader(body), header...)
}

// Put stores points "metric time value tags" and waits until they are durable.
func (b *Bench) Put(lines ...string) {
	b.Helper()
	c := b.Dial()
	for _, l := range lines {
		fmt.Fprintf(c, "put %s\n", l)
	}
	if got := c.Rest(); got != "" {
		b.Fatalf("put: %s", got)
	}
}

// Refused checks an error object.
func (b *Bench) Refused(a Answer, status int, message string) {
	b.Helper()
	var body struct {
		Error struct {
			Code             int
			Message, Details string
			Missing          [][2]string
		}
	}
	err := json.Unmarshal([]byte(a.Body), &body)
	if err != nil || a.Status != status || body.Error.Code != status || !strings.Contains(body.Error.Message, message) {
		b.Errorf("got %d, %.300s (%v), want %d and a message with %q", a.Status, a.Body, err, status, message)
	}
}

// Eventually polls until ok returns true.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	Within(t, Patience, what, ok)
}

// Within polls until ok returns true, for this time at most.
func Within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, d)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// PutHundred puts 100 points of metric m, 50 seconds of two hosts, and 3 of sys.few.
func (b *Bench) PutHundred() {
	b.Helper()
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("m %d %d host=h%d", 1356998400+i%50, i, i/50))
	}
	b.Put(append(lines, "sys.few 1356998400 1 host=a", "sys.few 1356998401 1 host=a", "sys.few 1356998402 1 host=a")...)
}

// GoodPoint and BadPoint are bodies of POST /api/put.
const (
	GoodPoint = `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	BadPoint  = `{"metric":"m","timestamp":1356998401,"value":"x","tags":{"host":"a"}}`
)

// SomeQuery is a query of metric m.
const SomeQuery = "/api/query?start=1356998400&end=1357084800&m=sum:m"

// PastQuery is a query of metric m that ends in the past, so that its answer gets an ETag.
const PastQuery = "/api/query?start=1356998400&end=1356998500&m=sum:m"

// In returns the gateway for a test below this one.
func (b *Bench) In(t *testing.T) *Bench {
	below := *b
	below.T = t
	return &below
}

// Names returns what the group of a pattern matches in a text, sorted.
func Names(pattern *regexp.Regexp, text string) (all []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
