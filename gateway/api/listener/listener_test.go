package listener

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"downpour/gateway/api/listener/listenertest"
	"downpour/pushdown/rpc/auth/authtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Telnet = func(_ context.Context, c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "telnet %s", line)
	}
	d := New(l, cfg)
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			fmt.Fprintf(w, "http %s", r.URL.Path)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(d) }()
	t.Cleanup(func() {
		d.Close()
		d.Wait()
		srv.Close()
		<-done
	})
	return l.Addr().String()
}

func TestDoor(t *testing.T) {
	addr := open(t, Config{})
	f := func(send, want string) {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Minute))
		io.WriteString(c, send)
		got, _ := io.ReadAll(c)
		if len(got) < len(want) || string(got[len(got)-len(want):]) != want {
			t.Errorf("%q: got %q, want it to end with %q", send, got, want)
		}
	}
	f("put m 1 2 a=b\n", "telnet put m 1 2 a=b\n")
	f("version\n", "telnet version\n")
	f("GET /x HTTP/1.0\r\n\r\n", "http /x")
	f("POST /y HTTP/1.0\r\nContent-Length: 0\r\n\r\n", "http /y")
	f("\x00\n", "telnet \x00\n")
}

// buffered is a pipe whose writes do not wait for the reader, as those to a socket.
type buffered struct{ net.Conn }

func (b buffered) Write(p []byte) (int, error) {
	go b.Conn.Write(bytes.Clone(p))
	return len(p), nil
}

// A client that speaks TLS to a port without it, or something else to one that has it, is answered at once, in words
// that it can show, and named in the log once a second.
func TestDoor_wrongProtocol(t *testing.T) {
	made := authtest.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(made.CertFile, made.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	f := func(secured bool, speak func(c net.Conn) string, want, line string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			l := listenertest.NewPipes()
			d := New(l, Config{
				Telnet: func(context.Context, net.Conn) { t.Error("it was served") },
				Log:    slog.New(slog.NewTextHandler(&log, nil)),
			})
			began := time.Now()
			for range 3 {
				client, server := net.Pipe()
				conn := net.Conn(server)
				if secured {
					conn = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}})
				}
				l.Hand(conn)
				if got := speak(client); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				client.Close()
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("the answers took %v, want no time", took)
			}
			d.Close()
			d.Wait()
			if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), line) {
				t.Errorf("logged %q, want %q once", &log, line)
			}
		})
	}
	raw := func(text string) func(net.Conn) string {
		return func(c net.Conn) string {
			go io.WriteString(c, text)
			var got []byte
			for !bytes.HasSuffix(got, []byte("\n")) || bytes.HasSuffix(got, []byte("\r\n")) {
				b := make([]byte, 1000)
				n, err := c.Read(b)
				if got = append(got, b[:n]...); err != nil {
					break
				}
			}
			return string(got)
		}
	}
	f(false, func(c net.Conn) string {
		return fmt.Sprint(tls.Client(buffered{c}, &tls.Config{InsecureSkipVerify: true}).Handshake())
	}, "first record does not look like a TLS handshake", "without it")
	f(false, raw("\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03"), "HTTP/1.0 400 Bad Request\r\n", "without it")
	f(false, raw("\x16"), "This port speaks no TLS: use http://", "without it")
	f(true, raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.0 400 Bad Request\r\n", "needs https://")
	f(true, raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "This port speaks only TLS: use https://", "needs https://")
	f(true, raw("put m 1 2 a=b\n"), "This port speaks only TLS", "needs https://")
}

// An address gets so many connections and no more; one that is closed makes room.
func TestDoor_limit(t *testing.T) {
	addr := open(t, Config{MaxPerAddress: 1})
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.SetDeadline(time.Now().Add(5 * time.Minute))
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Errorf("a second connection got %d bytes, want it closed", n)
	}
	io.WriteString(first, "version\n")
	if _, err := io.ReadAll(first); err != nil {
		t.Error(err)
	}
	first.Close()
	deadline := time.Now().Add(5 * time.Minute)
	for answer := ""; answer == ""; {
		third, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		third.SetDeadline(deadline)
		io.WriteString(third, "version\n")
		b, _ := io.ReadAll(third)
		third.Close()
		if answer = string(b); time.Now().After(deadline) {
			t.Fatal("a connection is still refused, want room after one was closed")
		}
	}
}

// A TLS client that sends nothing is disconnected after ten seconds. A telnet client may be silent
// for five minutes, also over TLS.
//
//fault:silent-before-tls => _ = secured; return ctx.Err()
func TestDoor_silent(t *testing.T) {
	made := authtest.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(made.CertFile, made.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, secured, handshake bool, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			l := listenertest.NewPipes()
			d := New(l, Config{
				Telnet: func(_ context.Context, c net.Conn) { t.Error("a silent connection was served") },
				Log:    slog.New(slog.DiscardHandler),
			})
			defer d.Close()
			here, there := net.Pipe()
			client, server := here, there
			if secured {
				server = tls.Server(there, &tls.Config{Certificates: []tls.Certificate{pair}})
			}
			l.Hand(server)
			began := time.Now()
			if handshake {
				secured := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
				if err := secured.Handshake(); err != nil {
					t.Fatal(err)
				}
				client = secured
			}
			if n, err := client.Read(make([]byte, 1)); n > 0 || err == nil || time.Since(began) != want {
				t.Errorf("%s: %v after %s, want the end after %s", name, err, time.Since(began), want)
			}
			here.Close()
		})
	}
	f("plain", false, false, 5*time.Minute)
	f("TLS, no hello", true, false, 10*time.Second)
	f("TLS, then nothing", true, true, 5*time.Minute)
}
