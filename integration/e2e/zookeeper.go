package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ZooKeeper is a running ZooKeeper without an HBase, which it does not know.
type ZooKeeper struct {
	dir     string
	port    int
	process *Process
}

// StartSecuredZooKeeper starts a ZooKeeper that closes sessions which are not authenticated with
// SASL. Nobody can authenticate: it has no principal. Errors say where the log is.
func StartSecuredZooKeeper(ctx context.Context) (*ZooKeeper, error) {
	class, err := hbaseClassPath("")
	if err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	z := &ZooKeeper{}
	if z.dir, err = runDir("zookeeper"); err != nil {
		return nil, fmt.Errorf("start ZooKeeper: %w", err)
	}
	if err := z.start(ctx, class); err != nil {
		return nil, fmt.Errorf("start ZooKeeper, log kept in %s: %w", z.dir, err)
	}
	return z, nil
}

func (z *ZooKeeper) start(ctx context.Context, class string) (err error) {
	if z.port, err = FreePort(); err != nil {
		return err
	}
	config := filepath.Join(z.dir, "zoo.cfg")
	err = errors.Join(
		os.WriteFile(config, fmt.Appendf(nil, securedZooKeeper, filepath.Join(z.dir, "data"), z.port), 0o644),
		os.WriteFile(filepath.Join(z.dir, "log4j.properties"), []byte(log4j), 0o644))
	if err != nil {
		return err
	}
	args := append(append(javaFlags(z.dir, class, 64), sparing...),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	if z.process, err = Start(ctx, Command{Name: "zookeeper", Path: "java", Args: args, Dir: z.dir}); err != nil {
		return err
	}
	err = UntilProcess(ctx, z.process, 50*time.Millisecond, func(ctx context.Context) error {
		return dials(ctx, z.Addr())
	})
	if err != nil {
		z.process.Kill()
	}
	return err
}

// Addr returns host:port.
func (z *ZooKeeper) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(z.port)) }

// Close ends it and removes its files.
func (z *ZooKeeper) Close() error {
	z.process.Kill()
	return os.RemoveAll(z.dir)
}

// CloseKeeping ends it and returns where its log is.
func (z *ZooKeeper) CloseKeeping() (files string, err error) {
	z.process.Kill()
	return z.dir, nil
}

const securedZooKeeper = `tickTime=1000
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
sessionRequireClientSASLAuth=true
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
`
