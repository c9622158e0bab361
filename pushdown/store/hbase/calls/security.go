package calls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/sasl"
)

// Security is how connections to the servers of a secured cluster are made. Those to
// ZooKeeper are not secured.
type Security struct {
	// Client has our tickets. An open store keeps them alive.
	Client *kerberos.Client
	// RegionServer and Master are the servers' principals, name/host[@REALM]; _HOST in
	// the place of the host is that of the server. Default: hbase/_HOST.
	RegionServer, Master string
	// Protections are those that we take; of these and the server's the strongest is
	// chosen. Default: all.
	Protections sasl.Protections
	// AllowSimple lets a server do without authentication. Anybody between it and us
	// can then do everything in our name.
	AllowSimple bool
}

const defaultServerPrincipal = "hbase/_HOST"

// WithDefaults returns the settings with defaults.
func (s Security) WithDefaults() Security {
	if s.RegionServer == "" {
		s.RegionServer = defaultServerPrincipal
	}
	if s.Master == "" {
		s.Master = s.RegionServer
	}
	if s.Protections == 0 {
		s.Protections = sasl.AnyProtection
	}
	return s
}

// principal returns the principal of the region server, or master, at an address.
func (s *Security) principal(ctx context.Context, addr string, master bool) string {
	pattern := s.RegionServer
	if master {
		pattern = s.Master
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return kerberos.ServerPrincipal(ctx, pattern, host)
}

var (
	// errSimple is returned if a server wants no authentication.
	errSimple = errors.New(
		"the server does without authentication, which is refused unless DOWNPOUR_HBASE_ALLOW_SIMPLE is true")
	// errProtection is returned if a server takes none of the protections that we do.
	errProtection = errors.New("no protection of calls that both sides take")
)

// protect encrypts and authenticates the connection nc of c, which is being dialled, as configured. It returns
// the connection to use in its place. On an error it closes nc.
func (p *Pool) protect(ctx context.Context, nc net.Conn, c *Conn) (net.Conn, error) {
	if p.cfg.Encryption != nil {
		var err error
		if nc, err = p.cfg.Encryption.encrypt(ctx, nc, c.Addr); err != nil {
			p.warnUnprotected("cannot encrypt", c.Addr, err)
			return nil, err
		}
	}
	if p.cfg.Security == nil {
		return nc, nil
	}

	out, err := p.authenticate(ctx, nc, c.Addr, &c.liveness)
	if err != nil {
		nc.Close()
		p.warnUnprotected("cannot authenticate", c.Addr, err)
	}
	return out, err
}

// warnUnprotected logs, at most once in warnEvery, why authentication to a server or TLS with it fails:
// attempts continue, because a KDC may come back, or an operator may correct the rest.
func (p *Pool) warnUnprotected(what, addr string, err error) {
	now := time.Now().UnixNano()
	last := p.warned.Load()
	if now-last > int64(warnEvery) && p.warned.CompareAndSwap(last, now) {
		p.cfg.Logger.Warn(what, "server", addr, "error", err)
	}
}

const warnEvery = 10 * time.Second

// authenticate makes Kerberos's handshake on a new connection, before HBase's own header is
// sent. It returns the connection to use in its place: nc itself if the server does without authentication,
// which Security.AllowSimple must allow, or if what follows is sent as it is, otherwise one that
// signs or seals. It does not close nc.
func (p *Pool) authenticate(ctx context.Context, nc net.Conn, addr string, l *liveness) (net.Conn, error) {
	s := p.cfg.Security
	server := s.principal(ctx, addr, p.OfMasters)
	ticket, err := s.Client.Initiate(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("Kerberos: %w", err)
	}

	// When ctx ends, a deadline in the past ends the handshake. stop returns false if that has happened.
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	h, err := shakeHands(nc, ticket, s.Protections)
	if !stop() {
		return nil, fmt.Errorf("Kerberos: handshake with %s: %w", server, ctx.Err())
	}

	var refused *sasl.RefusedError
	switch {
	case errors.Is(err, sasl.ErrSimple) && s.AllowSimple:
		p.cfg.Logger.Warn("server does without authentication", "server", addr)
		return nc, nil
	case errors.Is(err, sasl.ErrSimple):
		return nil, fmt.Errorf("Kerberos: %w", errSimple)
	case errors.As(err, &refused):
		// The server's key may have been changed after we got the ticket: the next attempt gets another.
		s.Client.Refused(server, addr, ticket)
		return nil, fmt.Errorf(
			"Kerberos: the server refuses our ticket for %s: %w (servers do not say why: the server is not that "+
				"principal or has another key of it than the KDC, or its clock is wrong)",
			server, err)
	case err != nil && p.cfg.Encryption == nil && endsUnanswered(err):
		return nil, fmt.Errorf("Kerberos: handshake with %s: %w: %w", server, errUnanswered, err)
	case err != nil:
		return nil, fmt.Errorf("Kerberos: handshake with %s: %w", server, err)
	case h.protection == sasl.Authentication:
		return nc, nil
	}
	return newWrappedConn(nc, h, l), nil
}

// handshake is the outcome of a handshake.
type handshake struct {
	*kerberos.Session
	protection sasl.Protection
	maxMessage int // bytes that the server takes in one wrap token
}

// shakeHands makes the handshake that package sasl shows, and chooses the strongest protection that both
// the server and want have. What follows on nc is HBase's
// header, without a preamble, and wrapped unless the protection is authentication.
func shakeHands(nc net.Conn, ticket *kerberos.Context, want sasl.Protections) (*handshake, error) {
	// Both ends authenticate.
	if _, err := nc.Write(sasl.AppendFrame([]byte(sasl.Preamble), ticket.Token)); err != nil {
		return nil, err
	}
	reply, err := sasl.ReadReply(nc)
	if err != nil {
		return nil, err
	}
	session, err := ticket.Accept(reply)
	if err != nil {
		return nil, err
	}

	// An empty frame requests the server's offer of protections.
	if _, err := nc.Write(sasl.AppendFrame(nil, nil)); err != nil {
		return nil, err
	}
	if reply, err = sasl.ReadReply(nc); err != nil {
		return nil, err
	}
	data, err := session.Opener.Open(reply, sasl.Integrity)
	if err != nil {
		return nil, fmt.Errorf("offer: %w", err)
	}
	offer, err := sasl.ParseOffer(data)
	if err != nil {
		return nil, err
	}

	chosen := (offer.Protections & want).Strongest()
	if chosen == 0 {
		return nil, fmt.Errorf("%w: the server offers %v, want %v", errProtection, offer.Protections, want)
	}
	_, err = nc.Write(sasl.AppendFrame(nil, session.Sealer.Sign(nil, sasl.Choice(chosen))))
	return &handshake{session, chosen, offer.MaxMessage}, err
}
