package standby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway/api/origin"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

func begin(address string) (*Standby, *logtest.Log) {
	l := new(logtest.Log)
	return New(address, origin.Rules{}, l.Logger()), l
}

// The start waits while the store cannot be reached, and for a lock for five minutes; anything else ends it. In
// simulated time.
//
//fault:waits-for-any-fault case !mends: => case false && !mends:
func TestAwait(t *testing.T) {
	away := fmt.Errorf("DOWNPOUR_STORE=x: %w: ZooKeeper", store.ErrUnavailable)
	locked := fmt.Errorf("DOWNPOUR_STORE=x: %w: 4711, gateway fsck", store.ErrLocked)
	f := func(name string, fails error, until, took time.Duration, want error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s, _ := begin("x")
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			began := time.Now()
			err := s.Await(ctx, func(context.Context) error {
				if time.Since(began) < until {
					return fails
				}
				return nil
			})
			if !errors.Is(err, want) || time.Since(began) != took {
				t.Errorf("%s: %v after %v, want %v after %v", name, err, time.Since(began), want, took)
			}
		})
	}
	f("there", nil, 0, 0, nil)
	f("away for an hour", away, time.Hour, time.Hour, nil)
	f("away for ever", away, 48*time.Hour, 24*time.Hour, store.ErrUnavailable)
	f("an attempt takes too long", context.DeadlineExceeded, time.Minute, time.Minute, nil)
	f("a tool has the lock", locked, 4*time.Minute, 4*time.Minute, nil)
	f("another gateway has the lock", locked, time.Hour, LockPatience, store.ErrLocked)
	f("no table", store.ErrNoTable, time.Hour, 0, store.ErrNoTable)
	f("no right", store.ErrDenied, time.Hour, 0, store.ErrDenied)
	f("damaged", store.ErrDamaged, time.Hour, 0, store.ErrDamaged)
}

// The log has the last fault after three seconds and then every ten, also one that an attempt under way has met, and
// says when the store is there. A store that is there soon is no news.
func TestAwait_lines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := begin("hbase:zk1:2181")
		go func() {
			_ = s.Await(t.Context(), func(ctx context.Context) error {
				store.Retry(ctx, errors.New("no route to zk1"))
				time.Sleep(20 * time.Second)
				store.Retry(ctx, errors.New("the master is initializing"))
				time.Sleep(10 * time.Second)
				return nil
			})
			s.Open(http.NotFoundHandler(), nil)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		lines := strings.SplitAfter(log.String(), "\n")
		for i, want := range []string{"for=3s err=\"no route to zk1\"", "for=13s err=\"no route to zk1\"",
			"for=23s err=\"the master is initializing\"", "the store answers", ""} {
			if len(lines) != 5 || !strings.Contains(lines[i], want) ||
				want != "" && !strings.Contains(lines[i], "store=hbase:zk1:2181") {
				t.Fatalf("line %d of %q, want %q", i, lines, want)
			}
		}

		soon, log := begin("x")
		time.Sleep(firstLine - 1)
		soon.Open(http.NotFoundHandler(), nil)
		if lines := strings.SplitAfter(log.String(), "\n"); len(lines) != 1 {
			t.Errorf("a store that is there soon: %q, want no line", lines)
		}
	})
}

// Until the store answers, /healthz is 200 and all else 503 with the reason; then requests reach the gateway.
func TestServeHTTP(t *testing.T) {
	s, _ := begin("hbase:zk1:2181")
	defer s.Close()
	f := func(method, path string, status int, words string) http.Header {
		t.Helper()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}")))
		if w.Code != status || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, w.Code, w.Body, status, words)
		}
		return w.Header()
	}
	f("GET", "/healthz", 200, "ok")
	f("GET", "/readyz", 503, `{"error":{"code":503,"message":"waits for hbase:zk1:2181: it has not answered yet"}}`)
	err := s.Await(t.Context(), func(ctx context.Context) error {
		store.Retry(ctx, errors.New("no route"))
		f("GET", "/readyz", 503, "no route")
		return store.ErrNoTable
	})
	if !errors.Is(err, store.ErrNoTable) {
		t.Error(err)
	}
	for _, path := range []string{"/", "/api/put", "/api/query?start=1h-ago&m=sum:m&jsonp=steal", "/metrics",
		"/nothing", "/api/v9/x"} {
		h := f("POST", path, 503, `{"error":{"code":503,"message":"waits for hbase:zk1:2181: no route"}}`)
		if h.Get("Retry-After") != "1" || h.Get(Header) != "hbase:zk1:2181" ||
			h.Get("Content-Type") != "application/json; charset=UTF-8" {
			t.Errorf("%s: header %v", path, h)
		}
	}
	s.Open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served "+r.URL.Path) }),
		nil)
	if h := f("GET", "/readyz", 200, "served /readyz"); h.Get(Header) != "" {
		t.Errorf("ready, and the header says that it waits for %s", h.Get(Header))
	}
}

// Nothing is read of a telnet connection before the store answers; then all of it is. The end of the listener ends a
// connection that waits.
func TestTelnet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := begin("x")
		client, server := net.Pipe()
		defer client.Close()
		served := make(chan struct{})
		go func() { s.Telnet(t.Context(), server); close(served) }()
		client.SetDeadline(time.Now().Add(time.Hour))
		if n, err := io.WriteString(client, "put m 1 1 a=b\n"); err == nil || n != 0 {
			t.Errorf("%d bytes were read, error %v, want none for an hour", n, err)
		}
		s.Open(nil, func(_ context.Context, c net.Conn) { io.Copy(c, io.LimitReader(c, 4)) })
		client.SetDeadline(time.Time{})
		go io.WriteString(client, "put ")
		answer := make([]byte, 4)
		if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "put " {
			t.Errorf("got %q, %v", answer, err)
		}
		<-served

		ended, _ := begin("x")
		defer ended.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		ended.Telnet(ctx, server)
	})
}

// Of many telnet connections that wait the oldest are given up, and not served.
//
//fault:telnet-waits-without-bound len(s.waiting) > MaxTelnet => false
func TestTelnet_bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := begin("x")
		var ended, served atomic.Int64
		wait := func() {
			_, server := net.Pipe()
			s.Telnet(t.Context(), server)
			ended.Add(1)
		}
		for range MaxTelnet + 10 {
			go wait()
		}
		synctest.Wait()
		if ended.Load() != 10 {
			t.Errorf("%d connections were given up, want 10", ended.Load())
		}
		s.Open(nil, func(context.Context, net.Conn) { served.Add(1) })
		synctest.Wait()
		if served.Load() != MaxTelnet {
			t.Errorf("%d connections were served, want %d", served.Load(), MaxTelnet)
		}
	})
}

// A request under a host name that is not the gateway's learns nothing of the store.
func TestServeHTTP_otherHost(t *testing.T) {
	s := New("pebble:/secret", origin.Rules{Loopback: true}, slog.New(slog.DiscardHandler))
	defer s.Close()
	for host, knows := range map[string]bool{"evil.example": false, "localhost:4242": true} {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if told := strings.Contains(w.Body.String()+w.Header().Get(Header), "secret"); w.Code != 503 || told != knows {
			t.Errorf("%s: %d %v %s, want 503 that names the store: %t", host, w.Code, w.Header(), w.Body, knows)
		}
	}
}

// A process that had the lock is not named any more while the store is being opened.
func TestAwait_lockGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := begin("x")
		defer s.Close()
		tries := 0
		err := s.Await(t.Context(), func(context.Context) error {
			if tries++; tries == 1 {
				return fmt.Errorf("%w: 4711", store.ErrLocked)
			}
			if got := s.why(); got != errNoAnswer {
				t.Errorf("the reason is %v, want that there is none yet", got)
			}
			return nil
		})
		if err != nil || tries != 2 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}
