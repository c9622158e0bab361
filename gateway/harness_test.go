package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

func TestMain(m *testing.M) {
	// The HTTP client of the tests keeps connections; they are no leak.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// patience is how long a test waits for what must come. Only a hang takes so long, however busy the
// machine is.
const patience = 5 * time.Minute

// faulty is a store whose faults can be changed while a gateway runs on it.
type faulty struct {
	gateway.Store
	now     atomic.Pointer[faultstore.Store]
	judge   atomic.Pointer[func(store.Scan) error] // of every scan, if set
	scans   atomic.Int64                           // open now
	down    atomic.Bool                            // TableExists fails
	stopped atomic.Pointer[chan struct{}]          // writes wait until it is closed
	// after, if set, is called with the scan's context when a scan that has returned rows is asked
	// for more.
	after atomic.Pointer[func(context.Context) error]
}

func (f *faulty) Features() store.Features {
	return store.Features{Versioner: store.VersionFunc(f.Version), Marker: f, Watch: f.Watch, Seal: f.Store.Features().Seal}
}

func (f *faulty) TableExists(ctx context.Context, name string) (bool, error) {
	if f.down.Load() {
		return false, fmt.Errorf("table %s: %w", name, store.ErrUnavailable)
	}
	return f.Store.TableExists(ctx, name)
}

// set replaces all rules; without any the store is sound.
func (f *faulty) set(rules ...faultstore.Rule) *faultstore.Store {
	s := faultstore.New(f.Store, rules...)
	f.now.Store(s)
	return s
}

func (f *faulty) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if judge := f.judge.Load(); judge != nil {
		if err := (*judge)(s); err != nil {
			return nil, err
		}
	}
	sc, err := f.now.Load().Scan(ctx, s)
	if err != nil {
		return nil, err
	}
	f.scans.Add(1)
	return &counted{Scanner: sc, ctx: ctx, store: f, end: sync.OnceFunc(func() { f.scans.Add(-1) })}, nil
}

// counted is a scanner that is counted in faulty.scans until it is closed.
type counted struct {
	store.Scanner
	ctx   context.Context
	store *faulty
	rows  bool // some were returned
	end   func()
}

func (c *counted) Next() ([]store.Row, error) {
	if after := c.store.after.Load(); after != nil && c.rows {
		if err := (*after)(c.ctx); err != nil {
			return nil, err
		}
	}
	rows, err := c.Scanner.Next()
	c.rows = c.rows || len(rows) > 0
	return rows, err
}

func (c *counted) Close() error {
	c.end()
	return c.Scanner.Close()
}

func (f *faulty) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	return f.Store.Features().Watch(table, ranges, changed)
}

func (f *faulty) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	if judge := f.judge.Load(); judge != nil {
		if err := (*judge)(store.Scan{Table: table, Family: family}); err != nil {
			return nil, err
		}
	}
	return f.now.Load().Get(ctx, table, family, keys)
}

func (f *faulty) Version(ctx context.Context, table, family string, r store.KeyRange) (string, error) {
	return f.now.Load().Features().Versioner.Version(ctx, table, family, r)
}

func (f *faulty) Mark(ctx context.Context, table, family string, r store.KeyRange) (store.Mark, error) {
	return f.Store.Features().Marker.Mark(ctx, table, family, r)
}

func (f *faulty) Unchanged(ctx context.Context, table, family string, r store.KeyRange, mark string) error {
	return f.Store.Features().Marker.Unchanged(ctx, table, family, r, mark)
}

func (f *faulty) Apply(ctx context.Context, table string, m []store.Mutation) error {
	if err := f.write(ctx); err != nil {
		return err
	}
	return f.now.Load().Apply(ctx, table, m)
}

func (f *faulty) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	if err := f.write(ctx); err != nil {
		return 0, err
	}
	return f.now.Load().Increment(ctx, table, cell, delta)
}

func (f *faulty) CompareAndPut(ctx context.Context, table string, cell store.CellKey, old, value []byte) (bool, error) {
	if err := f.write(ctx); err != nil {
		return false, err
	}
	return f.now.Load().CompareAndPut(ctx, table, cell, old, value)
}

// stopWriting makes all that writes wait until answer is called, or the call's time is over.
func (f *faulty) stopWriting() (answer func()) {
	stopped := make(chan struct{})
	f.stopped.Store(&stopped)
	return sync.OnceFunc(func() { f.stopped.Store(nil); close(stopped) })
}

// write waits while writes are stopped.
func (f *faulty) write(ctx context.Context) error {
	stopped := f.stopped.Load()
	if stopped == nil {
		return nil
	}
	select {
	case <-*stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bench is a gateway over a store in memory.
type bench struct {
	*testing.T
	cfg   *gateway.Config
	store *faulty
	g     *gateway.Server
	tls   *tls.Config // of the clients, if the gateway has a certificate
	https *http.Client
}

// client speaks to the gateway.
func (b *bench) client() *http.Client {
	if b.tls == nil {
		return http.DefaultClient
	}
	if b.https == nil {
		transport := &http.Transport{TLSClientConfig: b.tls}
		b.Cleanup(transport.CloseIdleConnections)
		b.https = &http.Client{Transport: transport}
	}
	return b.https
}

// open starts a gateway; change, if not nil, changes its settings before.
func open(t *testing.T, change func(*gateway.Config)) *bench {
	t.Helper()
	cfg := config(0)
	if change != nil {
		change(cfg)
	}
	st := &faulty{Store: memoryStore(t, cfg)}
	st.set()
	return &bench{T: t, cfg: cfg, store: st, g: start(t, cfg, st)}
}

// routesOf returns all routes of a gateway with all extras.
func routesOf(t *testing.T) map[string]httpio.Endpoint {
	t.Helper()
	return open(t, nil).g.Routes()
}

// answer is an HTTP answer, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // reading the body
}

// do sends a request; header pairs follow the body. A Host pair sets the host.
func (b *bench) do(method, path string, body io.Reader, header ...string) answer {
	b.Helper()
	a, err := b.try(b.Context(), method, path, body, header...)
	if err != nil {
		b.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (b *bench) try(ctx context.Context, method, path string, body io.Reader, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.g.URL()+strings.TrimPrefix(path, "/"), body)
	if err != nil {
		return answer{}, err
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
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text), err}, nil
}

func (b *bench) get(path string, header ...string) answer {
	b.Helper()
	return b.do(http.MethodGet, path, nil, header...)
}

func (b *bench) post(path, body string, header ...string) answer {
	b.Helper()
	return b.do(http.MethodPost, path, strings.NewReader(body), header...)
}

// put stores points "metric time value tags" and waits until they are durable.
func (b *bench) put(lines ...string) {
	b.Helper()
	c := b.dial()
	for _, l := range lines {
		fmt.Fprintf(c, "put %s\n", l)
	}
	if got := c.rest(); got != "" {
		b.Fatalf("put: %s", got)
	}
}

// refused checks an error object.
func (b *bench) refused(a answer, status int, message string) {
	b.Helper()
	var body struct {
		Error struct {
			Code             int
			Message, Details string
			Missing          [][2]string
		}
	}
	err := json.Unmarshal([]byte(a.body), &body)
	if err != nil || a.status != status || body.Error.Code != status || !strings.Contains(body.Error.Message, message) {
		b.Errorf("got %d, %.300s (%v), want %d and a message with %q", a.status, a.body, err, status, message)
	}
}

// halfCloser is a connection of TCP or TLS.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// line is a telnet connection.
type line struct {
	halfCloser
	t  *testing.T
	in *bufio.Reader
}

func (b *bench) address() string { return address(b.g) }

// address is where a gateway listens.
func address(g *gateway.Server) string {
	_, rest, _ := strings.Cut(g.URL(), "://")
	return strings.TrimSuffix(rest, "/")
}

func (b *bench) dial() *line {
	b.Helper()
	var c net.Conn
	var err error
	if b.tls != nil {
		c, err = tls.Dial("tcp", b.address(), b.tls)
	} else {
		c, err = net.Dial("tcp", b.address())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &line{c.(halfCloser), b.T, bufio.NewReader(c)}
}

// rest half-closes and returns everything until the server closes.
func (l *line) rest() string {
	l.t.Helper()
	l.CloseWrite()
	text, err := io.ReadAll(l.in)
	if err != nil {
		l.t.Fatalf("after %q: %v", text, err)
	}
	return string(text)
}

// next returns the next line of the server.
func (l *line) next() string {
	l.t.Helper()
	text, err := l.in.ReadString('\n')
	if err != nil {
		l.t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// eventually polls until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// askUntil asks until the answer is as wanted. It is for gateways with a short timeout: on a busy
// machine queries run out of time that are not meant to.
func (b *bench) askUntil(path string, wanted func(answer) bool, header ...string) answer {
	b.Helper()
	return until(wanted, func() answer { return b.get(path, header...) })
}

// postUntil posts until the answer is as wanted, see askUntil.
func (b *bench) postUntil(path, body string, wanted func(answer) bool, header ...string) answer {
	b.Helper()
	return until(wanted, func() answer { return b.post(path, body, header...) })
}

func until(wanted func(answer) bool, ask func() answer) (a answer) {
	for end := time.Now().Add(patience); ; {
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
	b.put("m 1356998400 1 host=a")
	began := time.Now()
	const tries = 5
	for range tries {
		b.get(someQuery)
	}
	return max(300*time.Millisecond, 20/tries*time.Since(began))
}

// answered returns a condition for askUntil: the answer has this status.
func answered(code int) func(answer) bool { return func(a answer) bool { return a.status == code } }

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
