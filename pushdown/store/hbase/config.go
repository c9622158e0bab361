package hbase

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"downpour/pushdown/process/list"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/regions"
	"downpour/pushdown/store/hbase/unchanged"
)

// Config is where a cluster is and how long to wait for it. Only Quorum or Nodes is
// needed; a zero field means its default.
type Config struct {
	// Quorum lists the ZooKeeper servers, "host:port[,host:port…]".
	Quorum string
	// Nodes lists masters or region servers, "host:port", that are queried in place of ZooKeeper.
	Nodes []string
	// Unusable are the errors of the servers that were left out of Quorum or Nodes, which Open logs.
	Unusable []error
	// Root is HBase's znode (zookeeper.znode.parent); default "/hbase".
	Root string
	// RightsElsewhere is set if another system than HBase's own access control grants rights, so
	// that CheckReadable cannot check them.
	RightsElsewhere bool
	// Logger gets failures that are retried, at debug level, and lost
	// connections, as warnings. Default: no log.
	Logger *slog.Logger

	// DialTimeout bounds one TCP connect, the handshakes of Encryption and of Security with the wait for a
	// ticket, and HBase's connection header; default 5 s.
	DialTimeout time.Duration
	// ZooKeeperTimeout is the session timeout of a look-up; default 10 s.
	ZooKeeperTimeout time.Duration
	// RPCTimeout bounds one call, except for writes; default 60 s. It must exceed
	// half of the servers' hbase.rpc.timeout and scanner lease (30 s by default),
	// after which a scan that finds nothing sends a heartbeat.
	RPCTimeout time.Duration
	// WriteTimeout bounds one call of mutations. Such a call is not sent again
	// while its server may still execute it, so after the timeout the connection is
	// closed too. It also bounds Apply if the context has no deadline. Default
	// 3 min.
	WriteTimeout time.Duration
	// ProbeAfter is how long a server may be silent before it gets a probe. If the
	// probe is unanswered for as long again, the store finds out whether the server
	// is dead or slow, see package calls. Default 3 s.
	ProbeAfter time.Duration
	// RetryTimeout ends an operation that has failed for this long, or a scan that
	// has failed for this long since its last reply, even if the context allows
	// more. It does not end Apply, which retries until its context ends. Default
	// 60 s.
	RetryTimeout time.Duration

	// VersionTimeout bounds Version and each of its calls to hbase:meta. A version
	// token only saves work: if a server does not answer this fast, reading the rows is
	// better. Default 1 s.
	VersionTimeout time.Duration

	// Proof is the evidence by which Version may know that rows have not changed;
	// default ProofExact.
	Proof Proof

	// Security authenticates us to the servers and them to us, by Kerberos; nil uses
	// simple authentication, which is none.
	Security *Security

	// Encryption speaks TLS with the servers, below what Security does; nil speaks none.
	Encryption *Encryption

	// Dial opens connections to ZooKeeper and to the servers; default TCP.
	// It is the place for a proxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// LookUpHost returns the addresses of the name of a ZooKeeper server. Default: as the system does.
	LookUpHost func(ctx context.Context, name string) ([]string, error)
}

const (
	defaultRoot   = "/hbase"
	defaultZKPort = 2181
)

// ParseAddress parses "HOST:PORT[,HOST:PORT…][/znode]", the part of
// DOWNPOUR_STORE after "hbase:". A host without a port gets ZooKeeper's 2181;
// the znode defaults to /hbase. The result has Quorum, Root and Unusable set.
func ParseAddress(address string) (Config, error) {
	quorum, root := address, defaultRoot
	if i := strings.IndexByte(address, '/'); i >= 0 {
		quorum, root = address[:i], strings.TrimRight(address[i:], "/ ")
		if root == "" || strings.Contains(root, "//") {
			return Config{}, fmt.Errorf("cannot parse hbase address %q: znode %q: want /name", address, address[i:])
		}
	}

	hosts, unusable, err := parseHosts(quorum, parseHost)
	if err != nil {
		return Config{}, fmt.Errorf("cannot parse hbase address %q: %w", address, err)
	}
	return Config{Quorum: strings.Join(hosts, ","), Root: root, Unusable: unusable}, nil
}

// ParseNodes parses "//HOST:PORT[,HOST:PORT…]", the part of DOWNPOUR_STORE after
// "hbase+rpc:". The result has Nodes and Unusable set.
func ParseNodes(address string) (Config, error) {
	text, ok := strings.CutPrefix(address, "//")
	if !ok || strings.ContainsAny(text, "/?#") {
		return Config{}, fmt.Errorf("cannot parse bootstrap nodes %q: want //HOST:PORT[,HOST:PORT…]", address)
	}
	nodes, unusable, err := parseHosts(text, func(node string) (string, error) {
		// Masters and region servers have other ports: none is the usual one.
		if !strings.Contains(node, ":") {
			return "", fmt.Errorf("host %q: got no port, want that of a master or region server, such as 16000", node)
		}
		return parseHost(node)
	})
	if err != nil {
		return Config{}, fmt.Errorf("cannot parse bootstrap nodes %q: %w", address, err)
	}
	return Config{Nodes: nodes, Unusable: unusable}, nil
}

// parseHosts parses a list of hosts. At least one must be usable.
func parseHosts(text string, parse func(string) (string, error)) (hosts []string, unusable []error, err error) {
	hosts, unusable, err = list.Usable(list.Split(text), parse)
	if err == nil && len(hosts) == 0 {
		err = fmt.Errorf("host: got nothing, want HOST:PORT[,HOST:PORT…][/znode]")
	}
	return hosts, unusable, err
}

// parseHost checks one "host[:port]" and adds a missing port.
func parseHost(s string) (string, error) {
	// Only an IPv6 address has brackets, and that has colons.
	if !strings.Contains(s, ":") && strings.ContainsAny(s, "[]") {
		return "", fmt.Errorf("host %q: got a bracket, want HOST:PORT", s)
	}

	if !strings.Contains(s, ":") {
		return net.JoinHostPort(s, strconv.Itoa(defaultZKPort)), nil
	}
	host, port, _ := net.SplitHostPort(s) // both are empty if it cannot be split
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", fmt.Errorf("host %q: want HOST:PORT with a port of 1 to 65535", s)
	}
	return net.JoinHostPort(host, port), nil
}

// complete checks the address and sets defaults.
func (c Config) complete() (Config, error) {
	if err := c.completeAddress(); err != nil {
		return c, err
	}
	if c.Security != nil {
		security := c.Security.WithDefaults()
		c.Security = &security
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.LookUpHost == nil {
		c.LookUpHost = net.DefaultResolver.LookupHost
	}

	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.DialTimeout, 5 * time.Second},
		{&c.ZooKeeperTimeout, 10 * time.Second},
		{&c.RPCTimeout, 60 * time.Second},
		{&c.WriteTimeout, 3 * time.Minute},
		{&c.ProbeAfter, 3 * time.Second},
		{&c.RetryTimeout, 60 * time.Second},
		{&c.VersionTimeout, time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}

	return c, nil
}

// completeAddress checks the quorum or the nodes.
func (c *Config) completeAddress() error {
	if len(c.Nodes) > 0 {
		if c.Quorum != "" {
			return fmt.Errorf("got both ZooKeeper servers %s and bootstrap nodes %s, want one of both", c.Quorum,
				strings.Join(c.Nodes, ","))
		}
		parsed, err := ParseNodes("//" + strings.Join(c.Nodes, ","))
		c.Nodes = parsed.Nodes
		return err
	}

	parsed, err := ParseAddress(c.Quorum)
	if err != nil {
		return err
	}
	c.Quorum = parsed.Quorum
	if c.Root == "" {
		c.Root = parsed.Root
	}
	return nil
}

// routing is how servers are found and called; scan reads hbase:meta.
func (c *Config) routing(scan func(context.Context, store.Scan) (store.Scanner, error)) *regions.Config {
	user := "root"
	if c.Security != nil {
		user = c.Security.Client.Principal()
	}
	return &regions.Config{
		Calls: &calls.Config{
			EffectiveUser: user,
			Logger:        c.Logger,
			Dial:          c.Dial,
			DialTimeout:   c.DialTimeout,
			RPCTimeout:    c.RPCTimeout,
			WriteTimeout:  c.WriteTimeout,
			ProbeAfter:    c.ProbeAfter,
			Security:      c.Security,
			Encryption:    c.Encryption,
		},
		Quorum:           c.Quorum,
		Root:             c.Root,
		Nodes:            c.Nodes,
		ZooKeeperTimeout: c.ZooKeeperTimeout,
		LookUpHost:       c.LookUpHost,
		RetryTimeout:     c.RetryTimeout,
		Scan:             scan,
	}
}

// Security is how connections to the servers of a secured cluster are made.
type Security = calls.Security

// Encryption is how connections to the servers are encrypted.
type Encryption = calls.Encryption

// Proof is the evidence by which Version may know that rows have not changed.
type Proof = unchanged.Proof

const (
	// ProofExact relies on read points alone.
	ProofExact = unchanged.ProofExact
	// ProofTimestamps also proves ranges of a region that is written to elsewhere.
	ProofTimestamps = unchanged.ProofTimestamps
)

// ErrExpiring is returned when rows may change without being written.
var ErrExpiring = unchanged.ErrExpiring
