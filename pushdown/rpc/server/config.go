// Package server is the server beside a region server: it executes parts of
// scan plans on the store and streams series batches to gateways over Arrow
// Flight. It keeps nothing that cannot be thrown away: a part that a server did
// not finish is executed elsewhere.
package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"runtime"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
)

// Config is the server's configuration.
type Config struct {
	// Program is the program's name and version, as hello tells it.
	Program string
	// Beside is the region server, host:port, on whose machine this runs; ""
	// is unknown. Gateways prefer this server for its regions.
	Beside string
	// Table and Schema are the data table and its layout. Plans for others
	// are refused: a reader that takes the wrong layout for the right one
	// answers wrongly without noticing.
	Table  string
	Schema encoding.Schema
	// Allow judges the token of a call; nil allows all.
	Allow func(token string) bool
	// TLS is nil for a plain connection.
	TLS *tls.Config
	// Parts bounds how many parts are executed at once; others wait, but for
	// the first of each query.
	// Default twice the number of CPUs.
	Parts int
	// Waiting bounds how many parts wait for their turn; more are refused, and
	// the gateway goes elsewhere. Default 1024.
	Waiting int
	// PartBytes bounds the memory of one part's result, whatever its plan
	// allows. Default 1 GiB.
	PartBytes int64
	// Memory is what parts reserve the bytes that they hold from; nil is no bound.
	Memory *memory.Pool
	// Heartbeat is the time between signs of life. Default wire.Heartbeat.
	Heartbeat time.Duration
	// Drain is how long Serve waits for running parts when it is told to
	// end. Default 10 s.
	Drain time.Duration
	// FlushBytes is about how large a batch is. Default: the operator's.
	FlushBytes int
	// ResultCache remembers the answers of parts; nil does not.
	ResultCache *resultcache.Cache
	// Mem provides the memory of batches. Default: garbage-collected.
	Mem batch.Allocator
	// Seek remembers what parts can skip, see package seek; nil remembers
	// nothing.
	Seek *access.PrefixCache
	// Log gets what goes wrong inside. Default slog.Default().
	Log *slog.Logger
}

// Validate returns an error that names the first field that is wrong.
func (c *Config) Validate() error {
	if c.Table == "" {
		return errors.New("pushdown: no data table is named")
	}
	return c.Schema.Validate()
}

func (c Config) withDefaults() Config {
	if c.Parts <= 0 {
		c.Parts = 2 * runtime.GOMAXPROCS(0)
	}
	if c.Waiting <= 0 {
		c.Waiting = 1024
	}
	if c.PartBytes <= 0 {
		c.PartBytes = 1 << 30
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = wire.Heartbeat
	}
	if c.Drain <= 0 {
		c.Drain = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
