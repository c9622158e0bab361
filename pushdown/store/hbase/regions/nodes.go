package regions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/sasl"

	"google.golang.org/protobuf/types/known/emptypb"
)

// bootstrapNodes is the directory of a cluster whose clients query its servers instead of
// ZooKeeper: every master, and from HBase 2.5 on every region server, knows what ZooKeeper has.
// Those of the configuration are queried first. Then one of them names the nodes that clients shall
// query, which is repeated now and then; those of the configuration are kept.
type bootstrapNodes struct {
	cfg   *Config
	life  *calls.Life
	pools []*calls.Pool // for each principal that a node may have; one without Kerberos

	mu      sync.Mutex
	named   []string               // by a node, lately
	failed  map[string]bool        // nodes that did not answer the last query
	cluster string                 // its id, once a node has reported it
	serves  map[string]*calls.Pool // by node: the one whose principal it has

	fresh sync.Once // starts keepFresh
}

const (
	// askNextAfter is how long a node may be silent before another is queried as well.
	askNextAfter = time.Second
	// nodesFor is how long a list of nodes from a node is used.
	nodesFor = 5 * time.Minute
	// maxNodes bounds them.
	maxNodes = 64
)

func newBootstrapNodes(cfg *Config, life *calls.Life) *bootstrapNodes {
	b := &bootstrapNodes{cfg: cfg, life: life, failed: map[string]bool{}, serves: map[string]*calls.Pool{}}
	b.pools = append(b.pools, calls.NewPool(cfg.Calls, life, calls.NodeService))
	if s := cfg.Calls.Security; s != nil && s.Master != s.RegionServer {
		masters := calls.NewPool(cfg.Calls, life, calls.NodeService)
		masters.OfMasters = true
		b.pools = append(b.pools, masters)
	}
	return b
}

// closeAll closes the connections to nodes.
func (b *bootstrapNodes) closeAll() {
	for _, p := range b.pools {
		p.CloseAll()
	}
}

// lookUp queries nodes for the server with a role.
func (b *bootstrapNodes) lookUp(r role) (string, error) {
	questions := []question[string]{{"GetMetaRegionLocations", parseMetaLocation}}
	if r == activeMaster {
		// HBase 1.7 has only the second of them.
		questions = []question[string]{{"GetActiveMaster", parseActiveMaster}, {"GetMasters", parseMasters}}
	}
	addr, err := askNodes(b, questions...)
	if err == nil {
		b.fresh.Do(func() { b.life.Run(b.keepFresh) })
	}
	return addr, err
}

// keepFresh updates the list of nodes to query, now and then.
func (b *bootstrapNodes) keepFresh() {
	for {
		nodes, err := askNodes(b, question[[]string]{"GetBootstrapNodes", parseNodes})
		if err != nil {
			// A cluster before 2.5 does not know the method.
			b.cfg.Calls.Logger.Debug("the bootstrap nodes stay as they are", "error", err)
		} else {
			b.mu.Lock()
			b.named = nodes[:min(len(nodes), maxNodes)]
			b.mu.Unlock()
		}
		if wait.For(b.life.Context(), Jitter(nodesFor)) != nil {
			return
		}

		// Nodes that were away may be back.
		b.mu.Lock()
		clear(b.failed)
		b.mu.Unlock()
	}
}

// order returns the nodes in the order of queries: random, so that no node is queried by all, and
// those last that did not answer before.
func (b *bootstrapNodes) order() []string {
	b.mu.Lock()
	defer b.mu.Unlock()

	nodes := slices.Concat(b.named, b.cfg.Nodes)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	slices.SortStableFunc(nodes, func(x, y string) int {
		switch {
		case b.failed[x] == b.failed[y]:
			return 0
		case b.failed[x]:
			return 1
		}
		return -1
	})
	return nodes
}

// noteAnswer keeps whether a node has answered.
func (b *bootstrapNodes) noteAnswer(node string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if delete(b.failed, node); err != nil {
		b.failed[node] = true
	}
}

// question is a method of nodes, and what reads its reply.
type question[T any] struct {
	method string
	parse  func(*emptypb.Empty) (T, error)
}

// nodeAnswer is what a node has answered.
type nodeAnswer[T any] struct {
	node  string
	value T
	err   error
}

// askNodes queries nodes, one after the other, until one gives a readable answer. The next is
// queried as soon as one has failed or is silent. A node that lacks the method of a query gets the
// next query.
func askNodes[T any](b *bootstrapNodes, questions ...question[T]) (value T, err error) {
	ctx, cancel := context.WithCancel(b.life.Context())
	defer cancel()

	nodes := b.order()
	answers := make(chan nodeAnswer[T], len(nodes)) // room for all: none blocks on us
	next := time.NewTimer(0)
	defer next.Stop()
	var faults []string
	waiting := map[string]bool{}
	for asked := 0; len(faults) < len(nodes); {
		select {
		case <-next.C:
			if asked == len(nodes) {
				continue
			}
			node := nodes[asked]
			asked++
			waiting[node] = true
			b.life.Run(func() {
				v, err := askNode(ctx, b, node, questions)
				answers <- nodeAnswer[T]{node, v, err}
			})
			next.Reset(askNextAfter)
		case a := <-answers:
			delete(waiting, a.node)
			b.noteAnswer(a.node, a.err)
			if a.err == nil {
				// Nodes that are still silent are queried last from now on.
				for node := range waiting {
					b.noteAnswer(node, errNodeUnaware)
				}
				return a.value, nil
			}
			faults = append(faults, fmt.Sprintf("%s: %v", a.node, calls.WithoutStack(a.err)))
			next.Reset(0)
		case <-ctx.Done():
			return value, ctx.Err()
		}
	}
	// As text: the faults' classes do not apply to the call for which an address is wanted.
	return value, fmt.Errorf("%w: %s: %s", errNodes, questions[0].method, strings.Join(faults, "; "))
}

// askNode queries one node.
func askNode[T any](ctx context.Context, b *bootstrapNodes, node string, questions []question[T]) (value T, err error) {
	limit := 2 * b.cfg.Calls.DialTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()

	c, err := b.connect(ctx, node)
	if err == nil {
		err = b.sameCluster(ctx, c)
	}
	if err == nil {
		var reply *emptypb.Empty
		var q question[T]
		for _, q = range questions {
			if reply, err = callNode(ctx, c, q.method); !calls.LacksMethod(err) {
				break
			}
		}
		if err == nil {
			return q.parse(reply)
		}
	}
	if errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return value, err
}

// connect returns a connection to a node. Whether a node is a master or a
// region server is not known before.
func (b *bootstrapNodes) connect(ctx context.Context, node string) (c *calls.Conn, err error) {
	pools := b.pools
	b.mu.Lock()
	if known := b.serves[node]; known != nil {
		pools = []*calls.Pool{known}
	}
	b.mu.Unlock()

	var p *calls.Pool
	for _, p = range pools {
		if c, err = p.Get(ctx, node); !refusesPrincipal(err) {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.serves[node] = p
	case refusesPrincipal(err): // another server may have the address by now
		delete(b.serves, node)
	}
	return c, err
}

// refusesPrincipal reports whether another principal of the server may work.
func refusesPrincipal(err error) bool {
	var refused *sasl.RefusedError
	return errors.As(err, &refused) || errors.Is(err, kerberos.ErrUnknownServer)
}

// sameCluster returns an error unless a node is of the cluster of the nodes before it: another
// cluster may now run at a node's former address, and a point would be lost there.
func (b *bootstrapNodes) sameCluster(ctx context.Context, c *calls.Conn) error {
	reply, err := callNode(ctx, c, "GetClusterId")
	if err != nil {
		return err
	}
	id, err := parseClusterID(reply)
	if err != nil {
		return err
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cluster == "" {
		b.cluster = id
	}
	if id != b.cluster {
		b.cfg.Calls.Logger.Warn("ignoring a bootstrap node of another cluster", "node", c.Addr, "cluster", id, "want",
			b.cluster)
		return fmt.Errorf("got a node of cluster %s, want one of %s, as those before it", id, b.cluster)
	}
	return nil
}

// callNode makes one call to a node. All requests are empty messages, and the replies are
// read by hand: gohbase's schema has none of them.
func callNode(ctx context.Context, c *calls.Conn, method string) (*emptypb.Empty, error) {
	call := calls.New(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
	c.Send(call)
	if err := c.Wait(ctx, call); err != nil {
		if calls.Classify(err) == calls.ClassReconnect {
			c.Drop()
		}
		return nil, err
	}
	return call.Response.(*emptypb.Empty), nil
}
