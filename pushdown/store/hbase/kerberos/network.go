package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

const (
	// askNextAfter is how long a KDC may be silent before the next is called as well, and
	// replyWithin the longest time for a reply. Both are as in libkrb5.
	askNextAfter = time.Second
	replyWithin  = 10 * time.Second
	// maxReply bounds a reply: its sender is not yet authenticated. Tickets of members
	// of many groups have some 64 KiB.
	maxReply = 1 << 20
)

var (
	// errNoAnswer is returned when no KDC has answered.
	errNoAnswer = errors.New("no answer of a KDC")
	// errNoKDC is returned when there is no KDC to call.
	errNoKDC = errors.New("no KDC is known")
)

// network sends requests to KDCs.
type network struct {
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	lookUp func(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

func newNetwork() *network {
	return &network{(&net.Dialer{}).DialContext, net.DefaultResolver.LookupSRV}
}

// place is where a request can be sent.
type place struct{ proto, addr string }

func (p place) String() string { return p.proto + " " + p.addr }

// kdcReply is what came from a place.
type kdcReply struct {
	place place
	data  []byte
	err   error
}

// ask sends a request to the KDCs of a realm, one after the other, until one has answered.
// The next is called as soon as one has failed or is silent. A refusal is a KRBError.
func (n *network) ask(ctx context.Context, conf *config.Config, realm string, request []byte) ([]byte, error) {
	places, err := n.places(ctx, conf, realm, len(request))
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	replies := make(chan kdcReply, len(places)) // room for all: none blocks on us
	next := time.NewTimer(0)
	defer next.Stop()
	var faults []string
	unavailable := error(nil)
	for asked := 0; asked < len(places) || len(faults) < asked; {
		select {
		case <-next.C:
			if asked == len(places) {
				continue
			}
			p := places[asked]
			asked++
			wg.Go(func() {
				data, err := n.send(ctx, p, request)
				replies <- kdcReply{p, data, err}
			})
			next.Reset(askNextAfter)
		case r := <-replies:
			var refusal messages.KRBError
			switch {
			case r.err != nil:
				faults = append(faults, fmt.Sprintf("%s: %v", r.place, r.err))
			case refusal.Unmarshal(r.data) != nil:
				return r.data, nil
			case refusal.ErrorCode == errorcode.KRB_ERR_RESPONSE_TOO_BIG && r.place.proto == udp:
				// The same KDC has the answer, by TCP.
				faults = append(faults, fmt.Sprintf("%s: %v", r.place, refusal))
				places = append(places[:asked:asked], tcpFirst(places[asked:], r.place.addr)...)
			case refusal.ErrorCode == errorcode.KDC_ERR_SVC_UNAVAILABLE:
				faults, unavailable = append(faults, fmt.Sprintf("%s: %v", r.place, refusal)), refusal
			default:
				return nil, refusal
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
		}
	}
	if unavailable != nil {
		return nil, unavailable
	}
	return nil, fmt.Errorf("%w: %s", errNoAnswer, strings.Join(faults, "; "))
}

const tcp, udp = "tcp", "udp"

// tcpFirst puts KDCs by TCP first, and those by UDP last.
func tcpFirst(places []place, addr string) []place {
	out := slices.Clone(places)
	rank := func(p place) int {
		switch {
		case p == place{tcp, addr}:
			return 0
		case p.proto == tcp:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(x, y place) int { return rank(x) - rank(y) })
	return out
}

// places returns where a request of a size can be sent, in order: first UDP, unless the
// request is larger than krb5.conf's udp_preference_limit, which is 1 for TCP alone; KDCs in
// the order of krb5.conf, or of DNS.
func (n *network) places(ctx context.Context, conf *config.Config, realm string, size int) ([]place, error) {
	protos := []string{udp, tcp}
	switch limit := conf.LibDefaults.UDPPreferenceLimit; {
	case limit == 1:
		protos = []string{tcp}
	case size > limit:
		protos = []string{tcp, udp}
	}

	var listed []string
	for _, r := range conf.Realms {
		if r.Realm == realm {
			listed = r.KDC
		}
	}
	var out []place
	var errs []error
	for _, proto := range protos {
		addrs := listed
		if len(listed) == 0 && conf.LibDefaults.DNSLookupKDC {
			var err error
			addrs, err = n.fromDNS(ctx, proto, realm)
			errs = append(errs, err)
		}
		for _, addr := range addrs {
			out = append(out, place{proto, addr})
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(append([]error{errNoKDC}, errs...)...)
	}
	return out, nil
}

// fromDNS returns the KDCs that DNS names.
func (n *network) fromDNS(ctx context.Context, proto, realm string) ([]string, error) {
	_, records, err := n.lookUp(ctx, "kerberos", proto, realm)
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, r := range records {
		// A single dot means that there is no such service.
		if host := strings.TrimSuffix(r.Target, "."); host != "" {
			addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(int(r.Port))))
		}
	}
	return addrs, nil
}

// send sends a request to one place and returns the reply, which is at least the beginning
// of a message of a KDC.
func (n *network) send(ctx context.Context, p place, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, replyWithin, fmt.Errorf("no answer within %v", replyWithin))
	defer cancel()
	reply, err := n.exchange(ctx, p, request)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case len(reply) == 0 || !slices.Contains(replyTags, reply[0]):
		return nil, fmt.Errorf("got %d bytes that are no reply of a KDC", len(reply))
	}
	return reply, nil
}

// replyTags are the first bytes of AS-REP, TGS-REP and KRB-ERROR.
var replyTags = []byte{0x6b, 0x6d, 0x7e}

func (n *network) exchange(ctx context.Context, p place, request []byte) ([]byte, error) {
	nc, err := n.dial(ctx, p.proto, p.addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()

	if p.proto == udp {
		if _, err := nc.Write(request); err != nil {
			return nil, err
		}
		reply := make([]byte, 64<<10) // the most that a datagram has
		size, err := nc.Read(reply)
		return reply[:size], err
	}

	if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxReply {
		return nil, fmt.Errorf("length of the reply: got %d, want at most %d", size, maxReply)
	}
	reply := make([]byte, size)
	_, err = io.ReadFull(nc, reply)
	return reply, err
}
