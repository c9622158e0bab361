package kerberos

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// played KDCs, by protocol and address: each gets the request and answers on the connection.
// A nil one never answers; where there is none nobody listens.
type playedKDCs map[place]func(request []byte, nc net.Conn)

// network returns one that dials these, and a list of the places that were dialled.
func (k playedKDCs) network() (*network, *[]string) {
	var mu sync.Mutex
	var dialled []string
	return &network{dial: func(_ context.Context, proto, addr string) (net.Conn, error) {
		p := place{proto, addr}
		mu.Lock()
		dialled = append(dialled, p.String())
		mu.Unlock()
		answer, listens := k[p]
		if !listens {
			return nil, errors.New("connection refused")
		}
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			request := make([]byte, 1<<20)
			n, err := theirs.Read(request)
			if err != nil {
				return
			}
			if answer != nil {
				answer(request[:n], theirs)
			}
			theirs.Read(request) // until the other side closes
		}()
		return ours, nil
	}}, &dialled
}

// reply writes a datagram, or after its length a TCP message.
func reply(data []byte) func([]byte, net.Conn) {
	return func(_ []byte, nc net.Conn) { nc.Write(data) }
}

func framed(size uint32, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, size), data...)
}

func refusal(code int32) []byte {
	e := messages.NewKRBError(types.PrincipalName{NameString: []string{"krbtgt", "R"}}, "R", code, "")
	b, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// confOf returns a configuration with some KDCs.
func confOf(limit int, kdcs ...string) *config.Config {
	c := config.New()
	c.LibDefaults.UDPPreferenceLimit = limit
	c.Realms = []config.Realm{{Realm: "R", KDC: kdcs}}
	return c
}

const usualLimit = 1465

// Who is asked after whom, when the answer is there, and what the error says.
func TestNetwork_ask(t *testing.T) {
	good := []byte("\x6b answer")
	goodTCP := reply(framed(uint32(len(good)), good))
	at := func(proto, host string) place { return place{proto, host + ":88"} }
	tooBig, unavailable := refusal(errorcode.KRB_ERR_RESPONSE_TOO_BIG), refusal(errorcode.KDC_ERR_SVC_UNAVAILABLE)

	for _, tc := range []struct {
		name    string
		kdcs    playedKDCs
		limit   int
		dialled string
		took    time.Duration
		want    string // in the error; empty if the answer is good
	}{
		{"the first answers", playedKDCs{at(udp, "a"): reply(good), at(udp, "b"): reply(good)}, usualLimit, "udp a:88",
			0, ""},
		{"TCP alone", playedKDCs{at(udp, "a"): reply(good), at(tcp, "b"): goodTCP}, 1, "tcp a:88, tcp b:88", 0, ""},
		{"large requests by TCP", playedKDCs{at(udp, "b"): reply(good)}, 3, "tcp a:88, tcp b:88, udp a:88, udp b:88",
			0, ""},
		{"the first hangs", playedKDCs{at(udp, "a"): nil, at(udp, "b"): reply(good)}, usualLimit, "udp a:88, udp b:88",
			time.Second, ""},
		{"UDP is dropped", playedKDCs{at(udp, "a"): nil, at(udp, "b"): nil, at(tcp, "a"): goodTCP}, usualLimit,
			"udp a:88, udp b:88, tcp a:88", 2 * time.Second, ""},
		{"the first is late", playedKDCs{at(tcp, "a"): func(_ []byte, nc net.Conn) {
			time.Sleep(5 * time.Second)
			nc.Write(framed(uint32(len(good)), good))
		}, at(tcp, "b"): nil}, 1, "tcp a:88, tcp b:88", 5 * time.Second, ""},
		{"all hang", playedKDCs{at(udp, "a"): nil, at(udp, "b"): nil, at(tcp, "a"): nil, at(tcp, "b"): nil}, usualLimit,
			"udp a:88, udp b:88, tcp a:88, tcp b:88", 3*time.Second + replyWithin, "tcp b:88: no answer within 10s"},
		{"nobody listens", playedKDCs{}, usualLimit, "udp a:88, udp b:88, tcp a:88, tcp b:88", 0,
			"udp a:88: connection refused; udp b:88: connection refused; tcp a:88"},
		{"too large for UDP", playedKDCs{at(udp, "b"): reply(tooBig), at(tcp, "b"): goodTCP, at(tcp, "a"): goodTCP},
			usualLimit, "udp a:88, udp b:88, tcp b:88", 0, ""},
		{"too large for UDP, no TCP", playedKDCs{at(udp, "a"): reply(tooBig)}, usualLimit,
			"udp a:88, tcp a:88, tcp b:88, udp b:88", 0, "KRB_ERR_RESPONSE_TOO_BIG"},
		{"one is unavailable", playedKDCs{at(udp, "a"): reply(unavailable), at(udp, "b"): reply(good)}, usualLimit,
			"udp a:88, udp b:88", 0, ""},
		{"unavailable", playedKDCs{at(tcp, "a"): reply(framed(uint32(len(unavailable)), unavailable))}, 1,
			"tcp a:88, tcp b:88", 0, "KDC_ERR_SVC_UNAVAILABLE"},
		{"a refusal counts", playedKDCs{at(udp, "a"): reply(refusal(errorcode.KDC_ERR_POLICY)),
			at(udp, "b"): reply(good)}, usualLimit, "udp a:88", 0, "KDC_ERR_POLICY"},
		{"4 GiB", playedKDCs{at(tcp, "a"): reply(framed(1<<32-1, good)), at(tcp, "b"): goodTCP}, 1,
			"tcp a:88, tcp b:88", 0, ""},
		{"all 4 GiB", playedKDCs{at(tcp, "a"): reply(framed(1<<32-1, good)),
			at(tcp, "b"): reply(framed(maxReply+1, good))}, 1, "tcp a:88, tcp b:88", 0,
			"tcp a:88: length of the reply: got 4294967295, want at most 1048576; tcp b:88: length of the reply: " +
				"got 1048577, want"},
		{"cut off", playedKDCs{at(tcp, "a"): func(_ []byte, nc net.Conn) { nc.Write(framed(100, good)); nc.Close() }},
			1, "tcp a:88, tcp b:88", 0, "unexpected EOF"},
		{"nothing", playedKDCs{at(tcp, "a"): reply(framed(0, nil)), at(udp, "b"): reply([]byte("hello"))}, 3,
			"tcp a:88, tcp b:88, udp a:88, udp b:88", 0,
			"tcp a:88: got 0 bytes that are no reply of a KDC; tcp b:88: connection refused; udp a:88: " +
				"connection refused; udp b:88: got 5 bytes that are no reply"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, dialled := tc.kdcs.network()
				began := time.Now()
				got, err := n.ask(t.Context(), confOf(tc.limit, "a:88", "b:88"), "R", []byte("request"))
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if diff := cmp.Diff(tc.dialled, strings.Join(*dialled, ", ")); diff != "" {
					t.Errorf("places (-want +got):\n%s", diff)
				}
				switch {
				case tc.want == "" && (err != nil || !bytes.Equal(got, good)):
					t.Errorf("got %q, %v, want %q", got, err, good)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}

// Replies of all lengths up to the bound arrive, also in pieces.
func TestNetwork_sizes(t *testing.T) {
	for _, size := range []int{1, 1000, 64 << 10, maxReply} {
		synctest.Test(t, func(t *testing.T) {
			want := append([]byte{0x6d}, bytes.Repeat([]byte{7}, size-1)...)
			n, _ := playedKDCs{{tcp, "a:88"}: func(_ []byte, nc net.Conn) {
				for b := framed(uint32(size), want); len(b) > 0; {
					piece := min(len(b), 3000)
					nc.Write(b[:piece])
					b = b[piece:]
				}
			}}.network()
			if got, err := n.ask(t.Context(), confOf(1, "a:88"), "R", []byte("r")); err != nil ||
				!bytes.Equal(got, want) {
				t.Errorf("%d bytes: got %d, %v", size, len(got), err)
			}
		})
	}
}

// The request comes as it is by UDP, and after its length by TCP.
func TestNetwork_request(t *testing.T) {
	for proto, want := range map[string][]byte{udp: []byte("request"), tcp: framed(7, []byte("request"))} {
		synctest.Test(t, func(t *testing.T) {
			var got []byte
			n, _ := playedKDCs{{proto, "a:88"}: func(request []byte, nc net.Conn) {
				got = bytes.Clone(request)
				nc.Close()
			}}.network()
			limit := map[string]int{udp: usualLimit, tcp: 1}[proto]
			if _, err := n.ask(t.Context(), confOf(limit, "a:88"), "R",
				[]byte("request")); !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), io.EOF.Error()) {
				t.Errorf("%s: got %v, want no answer", proto, err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", proto, got, want)
			}
		})
	}
}

// Who is asked ends with the context, even while a KDC is silent: no goroutine stays.
func TestNetwork_context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := playedKDCs{{tcp, "a:88"}: nil}.network()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := n.ask(ctx, confOf(1, "a:88"), "R", []byte("r")); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, errNoAnswer) {
			t.Errorf("got %v, want the deadline", err)
		}
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v, want 300ms", took)
		}
	})
}

// Without KDCs in krb5.conf DNS names them, if it may; else there is none.
func TestNetwork_fromDNS(t *testing.T) {
	n := &network{lookUp: func(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
		switch service + " " + proto + " " + name {
		case "kerberos udp R":
			return "", []*net.SRV{{Target: "a.", Port: 88}, {Target: ".", Port: 0}}, nil
		case "kerberos tcp R":
			return "", []*net.SRV{{Target: "b.x.", Port: 750}}, nil
		}
		return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}}
	conf := confOf(usualLimit)
	if _, err := n.places(t.Context(), conf, "R", 10); !errors.Is(err, errNoKDC) {
		t.Errorf("without DNS: got %v, want that there is none", err)
	}
	conf.LibDefaults.DNSLookupKDC = true
	got, err := n.places(t.Context(), conf, "R", 10)
	if diff := cmp.Diff([]place{{udp, "a:88"}, {tcp, "b.x:750"}}, got, cmp.AllowUnexported(place{})); diff != "" ||
		err != nil {
		t.Errorf("%v, places (-want +got):\n%s", err, diff)
	}
	if _, err := n.places(t.Context(), conf, "S", 10); !errors.Is(err, errNoKDC) ||
		!strings.Contains(err.Error(), "no such host") {
		t.Errorf("not in DNS: got %v, want that there is none, and why", err)
	}
	conf.Realms[0].KDC = []string{"c:1"}
	if got, err := n.places(t.Context(), conf, "R", 10); err != nil || len(got) != 2 || got[0].addr != "c:1" {
		t.Errorf("krb5.conf counts: got %v, %v", got, err)
	}
}

// A datagram goes to a socket and back.
func TestNetwork_udp(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go func() {
		b := make([]byte, 100)
		size, from, err := pc.ReadFrom(b)
		if err == nil {
			pc.WriteTo(append([]byte{0x7e}, b[:size]...), from)
		}
	}()
	got, err := newNetwork().send(t.Context(), place{udp, pc.LocalAddr().String()}, []byte("request"))
	if err != nil || string(got) != "\x7erequest" {
		t.Errorf("got %q, %v", got, err)
	}
}
