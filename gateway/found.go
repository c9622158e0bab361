package gateway

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"downpour/gateway/query/dispatch"
	"downpour/pushdown/announce"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/proof"
)

// found are the clients of pushdown servers that were found, with DOWNPOUR_PUSHDOWN=auto.
type found struct {
	mu      sync.Mutex
	used    map[string]*client.Client // by address
	leaving map[*client.Client]bool   // their servers have left, and may still have parts
	closed  bool
}

// findServers looks for pushdown servers until ctx ends, and has parts executed by them.
func (q *queries) findServers(ctx context.Context) {
	if q.cfg.Embedded() {
		q.log.Info("queries are executed in process: no pushdown server reads an embedded store", "DOWNPOUR_PUSHDOWN",
			autoPushdown, "store", q.cfg.Store)
		return
	}
	options := q.dial
	certified := q.cfg.PushdownCA != "" // then TLS has checked the server's authority before
	if !certified {
		options.Prove = func(ctx context.Context, c net.Conn, address string) error {
			keys, err := q.keys()
			if err != nil {
				return err
			}
			return proof.Ask(ctx, c, address, keys)
		}
	}
	(&announce.Watcher{
		Store:     q.store,
		Table:     q.cfg.TableState,
		Data:      q.cfg.TableData,
		Keys:      q.keys,
		Certified: certified,
		Changed: func(addresses []string) {
			q.exec.SetServers(q.found.change(addresses, options, q.cfg.QueryTimeout, func(address string, err error) {
				q.log.Warn("a pushdown server that was found cannot be used", "address", address, "err", err)
			}))
		},
		Log: q.log,
	}).Run(ctx)
}

// change makes clients of new addresses. Those of servers that have left are closed once no query can still read from
// them.
func (f *found) change(addresses []string, options client.Options, within time.Duration,
	unusable func(string, error)) (servers []dispatch.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	before := f.used
	f.used = map[string]*client.Client{}
	for _, address := range addresses {
		c := before[address]
		if c == nil {
			var err error
			if c, err = client.New(address, options); err != nil {
				unusable(address, err)
				continue
			}
		}
		f.used[address] = c
		servers = append(servers, c)
		delete(before, address)
	}
	for _, c := range before {
		if f.leaving == nil {
			f.leaving = map[*client.Client]bool{}
		}
		f.leaving[c] = true
		time.AfterFunc(within, func() {
			f.leave(c)
			c.Close()
		})
	}
	return servers
}

// leave forgets a client, which the caller closes. To close a connection may take its time, in which others come and
// go.
func (f *found) leave(c *client.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.leaving, c)
}

// close closes all connections.
func (f *found) close() {
	for _, c := range f.end() {
		c.Close()
	}
}

// end returns all clients that are not closed, and takes no others.
func (f *found) end() []*client.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return slices.AppendSeq(slices.Collect(maps.Values(f.used)), maps.Keys(f.leaving))
}
