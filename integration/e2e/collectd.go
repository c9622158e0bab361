package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Collectd is a running collectd of the system's packages. It writes this host's load by
// OpenTSDB's telnet every second, with the tags fqdn=h1 and lib=collectd.
type Collectd struct {
	Process *Process

	dir string
}

// StartCollectd starts a collectd that writes to host:port.
func StartCollectd(ctx context.Context, host, port string) (*Collectd, error) {
	root, err := Root()
	if err != nil {
		return nil, fmt.Errorf("start collectd: %w", err)
	}
	unpacked := filepath.Join(root, "build", "setup", "collectd")
	if _, err := os.Stat(unpacked + ".stamp"); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start collectd: %w", ErrNotSetUp)
	}
	dir, err := runDir("collectd")
	if err != nil {
		return nil, fmt.Errorf("start collectd: %w", err)
	}
	config := filepath.Join(dir, "collectd.conf")
	text := strings.NewReplacer("DIR", dir, "UNPACKED", unpacked, "HOST", host, "PORT", port).Replace(collectdConfig)
	err = os.WriteFile(config, []byte(text), 0o644)

	// Debian names the folder of libraries by an architecture's name that is not Go's.
	architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	c := &Collectd{dir: dir}
	if err == nil {
		c.Process, err = Start(ctx, Command{
			Name: "collectd",
			Path: filepath.Join(unpacked, "usr", "sbin", "collectd"),
			Dir:  dir,
			Args: []string{"-f", "-C", config},
			Env: append(os.Environ(),
				"LD_LIBRARY_PATH="+filepath.Join(unpacked, "usr", "lib", architecture+"-linux-gnu")),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("start collectd, logs kept in %s: %w", dir, err)
	}
	return c, nil
}

// Close ends it, which writes what it still holds, and removes its files.
func (c *Collectd) Close() error {
	return errors.Join(stopWithin(c.Process, time.Minute), os.RemoveAll(c.dir))
}

const collectdConfig = `Hostname "h1"
FQDNLookup false
BaseDir "DIR"
PIDFile "DIR/collectd.pid"
PluginDir "UNPACKED/usr/lib/collectd"
TypesDB "UNPACKED/usr/share/collectd/types.db"
Interval 1
LoadPlugin logfile
<Plugin logfile>
  File STDOUT
</Plugin>
LoadPlugin load
LoadPlugin write_tsdb
<Plugin write_tsdb>
  <Node>
    Host "HOST"
    Port "PORT"
    HostTags "lib=collectd"
  </Node>
</Plugin>
`
