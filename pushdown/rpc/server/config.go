// Package server is the pushdown server, which runs next to a region server. It
// executes parts of scan plans on the store and streams series batches to gateways over
// Arrow Flight. It has no state that must survive: a part that a server did not finish
// is executed elsewhere.
package server

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
)

// Config is the server's configuration.
type Config struct {
	// Program is the program's name and version, for wire.Hello.
	Program string
	// Beside is the region server (host:port) on whose machine this server runs, ""
	// if it is unknown. Gateways prefer this server for that one's regions.
	Beside string
	// Table and Schema are the data table and its layout. Plans for others are
	// refused, because reading with the wrong layout gives wrong answers without
	// an error.
	Table  string
	Schema encoding.Schema
	// Rollups are further tables of the same layout that plans may read: those of rollups
	// and pre-aggregates.
	Rollups []string
	// Allow reports whether a token may read; nil allows all.
	Allow func(token string) bool
	// TLS is nil for a plain connection. A client whose certificate it takes needs no
	// token.
	TLS *tls.Config
	// Prove answers a gateway that has sent proof.Magic, see package proof; nil for a server that is not announced.
	Prove func(io.ReadWriter) error
	// Parts bounds how many parts are executed at a time. Others wait for a slot,
	// except for the first part of each query. Default: twice the number of CPUs.
	Parts int
	// Waiting bounds how many parts wait. More are refused, and the gateway has
	// them executed elsewhere. Default 1024.
	Waiting int
	// PartBytes bounds the memory of one part's result, even if its plan allows more. Default 1
	// GiB.
	PartBytes int64
	// Memory is the pool that parts reserve their memory from; nil is no bound.
	Memory *memory.Pool
	// Heartbeat is the time between heartbeats of a silent stream. Default
	// wire.Heartbeat.
	Heartbeat time.Duration
	// Drain is how long Serve waits for running parts when its context ends.
	// Default 10 s.
	Drain time.Duration
	// FlushBytes is about the size of a batch. Default: the operator's.
	FlushBytes int
	// ResultCache caches the answers of parts; nil caches nothing.
	ResultCache *resultcache.Cache
	// Mem provides the memory of batches. Default: garbage-collected.
	Mem batch.Allocator
	// Seek is what parts learn for skip scans, see package access; nil learns
	// nothing.
	Seek *access.PrefixCache
	// Metrics are further ones that /metrics has, of what else the process does.
	Metrics []prometheus.Collector
	// Log gets internal errors. Default slog.Default().
	Log *slog.Logger
}

// Validate returns an error that names the first field that is wrong.
func (c *Config) Validate() error {
	if c.Table == "" {
		return errors.New("pushdown: no data table is named")
	}
	return c.Schema.Validate()
}

// withDefaults sets unset fields to the defaults in their comments.
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
