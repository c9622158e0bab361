package regions

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The only node of the configuration is away for good once the store has asked it. What it
// has named is queried for the new place of hbase:meta.
func TestNodes_refreshed(t *testing.T) {
	c := startByNodes(t, hbasefake.Options{}, func(c *hbasefake.Cluster) []string { return c.Nodes()[:1] })
	c.CreateTable("t", []string{"t"})
	get := func() error {
		return c.r.get(c.ctx)
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	// The nodes are requested after the first look-up.
	limit, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	for len(c.r.nodes.order()) < 3 {
		if err := limit.Err(); err != nil {
			t.Fatalf("nodes: got %v, want three", c.r.nodes.order())
		}
		runtime.Gosched()
	}

	c.StopMaster()
	c.r.locator.forget(metaServer, c.Nodes()[1])
	if _, err := c.r.locator.address(c.ctx, metaServer); err != nil {
		t.Errorf("without the master: %v", err)
	}
}

// The nodes that one has named stay when nobody names them any more.
func TestNodes_kept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := startByNodes(t, hbasefake.Options{Network: new(networktest.Memory)},
			func(c *hbasefake.Cluster) []string { return c.Nodes()[:1] },
			func(cfg *Config) {
				cfg.Calls.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
		if _, err := c.r.locator.address(c.ctx, metaServer); err != nil {
			t.Fatal(err)
		}
		// Those that did not answer are queried like the others again.
		c.r.nodes.noteAnswer(c.Nodes()[1], errNodeUnaware)
		time.Sleep(nodesFor)
		c.r.nodes.mu.Lock()
		if failed := c.r.nodes.failed; len(failed) != 0 {
			t.Errorf("after %v %v count as failed, want none", nodesFor, failed)
		}
		c.r.nodes.mu.Unlock()
		synctest.Wait() // they are requested after the first look-up
		c.SetHook(func(hbasefake.Call) hbasefake.Fault {
			return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: "java.io.IOException"}
		})
		time.Sleep(2 * nodesFor)
		if order := c.r.nodes.order(); len(order) != 3 {
			t.Errorf("got %v, want three nodes", order)
		}
		if !strings.Contains(log.String(), "bootstrap nodes stay as they are") {
			t.Errorf("logged %s, want why", &log)
		}
	})
}

// A node that refuses connections is queried after the others from then on.
func TestNodes_refuses(t *testing.T) {
	c := startByNodes(t, hbasefake.Options{}, func(c *hbasefake.Cluster) []string { return c.Nodes()[1:] })
	c.StopServer(0)
	refuses := c.Nodes()[1]
	for range 40 {
		addr, err := c.r.locator.address(c.ctx, activeMaster)
		if err != nil || addr != c.Nodes()[0] {
			t.Fatalf("the master: got %s, %v, want %s", addr, err, c.Nodes()[0])
		}
		c.r.locator.forget(activeMaster, addr)
	}
	for range 10 {
		if order := c.r.nodes.order(); order[len(order)-1] != refuses {
			t.Fatalf("got the order %v, want %s at the end", order, refuses)
		}
	}
}

// A node that accepts connections and answers nothing delays a look-up by a second, once at
// most.
func TestNodes_silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startByNodes(t, hbasefake.Options{Network: new(networktest.Memory), Servers: 3},
			func(c *hbasefake.Cluster) []string { return c.Nodes()[1:] })
		c.PauseServer(1)
		defer c.ResumeServer(1)
		slow := 0
		for range 40 {
			began := time.Now()
			addr, err := c.r.locator.address(c.ctx, metaServer)
			if err != nil || addr != c.Nodes()[1] {
				t.Fatalf("got %s, %v, want %s", addr, err, c.Nodes()[1])
			}
			switch took := time.Since(began); {
			case took > askNextAfter:
				t.Fatalf("a look-up took %v", took)
			case took == askNextAfter:
				slow++
			}
			c.r.locator.forget(metaServer, addr)
		}
		if slow > 1 {
			t.Errorf("%d look-ups waited for the silent node, want at most 1", slow)
		}
	})
}

// When no node answers, the error has how long each of them was waited for.
func TestNodes_allSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startByNodes(t, hbasefake.Options{Network: new(networktest.Memory)},
			func(c *hbasefake.Cluster) []string { return c.Nodes() })
		c.SetHook(func(hbasefake.Call) hbasefake.Fault { return hbasefake.Fault{Kind: hbasefake.Hang} })
		began := time.Now()
		_, err := c.r.locator.address(c.ctx, metaServer)
		for _, node := range c.Nodes() {
			if err == nil || !strings.Contains(err.Error(), node+": no answer within 10s") {
				t.Errorf("got %v, want that %s has not answered within 10 s", err, node)
			}
		}
		if took := time.Since(began); took != 12*time.Second {
			t.Errorf("it took %v, want 10 s and two until the third node is queried", took)
		}
	})
}

// Only a node that lacks a method gets the one in its place. Without that it is an error, as is another refusal.
func TestNodes_lacks(t *testing.T) {
	c := startByNodes(t, hbasefake.Options{}, func(c *hbasefake.Cluster) []string { return c.Nodes()[:1] })
	for exception, masters := range map[string]int{
		"java.lang.UnsupportedOperationException": 1, "java.io.IOException": 0,
	} {
		c.SetHook(func(call hbasefake.Call) (f hbasefake.Fault) {
			if call.Method == "GetActiveMaster" || call.Method == "GetMasters" {
				f = hbasefake.Fault{Kind: hbasefake.Refuse, Exception: exception}
			}
			return f
		})
		if addr, err := c.r.locator.address(c.ctx, activeMaster); err == nil ||
			!strings.Contains(err.Error(), exception) {
			t.Errorf("%s: got %q, %v", exception, addr, err)
		}
		if n := c.Calls("GetMasters"); n != masters {
			t.Errorf("%s: %d calls of GetMasters, want %d", exception, n, masters)
		}
	}
	c.SetHook(nil)
	_, err := c.r.locator.address(c.ctx, activeMaster)
	if n := c.Calls("GetMasters"); err != nil || n != 0 {
		t.Errorf("%v after %d calls of GetMasters, want none where GetActiveMaster is known", err, n)
	}
}

// A connection to a node that is no help now is not used again.
func TestNodes_reconnects(t *testing.T) {
	dials := 0
	c := startByNodes(t, hbasefake.Options{}, func(c *hbasefake.Cluster) []string { return c.Nodes()[:1] },
		func(cfg *Config) {
			dial := cfg.Calls.Dial
			cfg.Calls.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++
				return dial(ctx, network, addr)
			}
		})
	c.SetHook(func(hbasefake.Call) hbasefake.Fault {
		return hbasefake.Fault{
			Kind: hbasefake.Refuse, Exception: "org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException",
		}
	})
	if _, err := c.r.locator.address(c.ctx, activeMaster); err == nil {
		t.Error("a node has answered that cannot")
	}
	c.SetHook(nil)
	if _, err := c.r.locator.address(c.ctx, activeMaster); err != nil || dials != 2 {
		t.Errorf("%v after %d dials, want 2", err, dials)
	}
}

// What no node can answer is an error that says what each of them answered.
func TestNodes_errors(t *testing.T) {
	all := func(c *hbasefake.Cluster) []string { return c.Nodes() }
	quick := func(cfg *Config) { cfg.RetryTimeout = time.Nanosecond }
	get := func(c *cluster) error {
		return c.r.get(c.ctx)
	}

	t.Run("away", func(t *testing.T) {
		c := startByNodes(t, hbasefake.Options{}, all, quick)
		nodes := c.Nodes()
		c.StopMaster()
		c.StopServer(0)
		c.StopServer(1)
		err := get(c)
		for _, node := range nodes {
			if err == nil || !errors.Is(err, store.ErrUnavailable) ||
				!strings.Contains(err.Error(), node+": cannot connect") {
				t.Errorf("got %v, want that %s cannot be connected to", err, node)
			}
		}
	})
	t.Run("of an empty cluster", func(t *testing.T) {
		c := startByNodes(t, hbasefake.Options{}, all, quick)
		c.SetHook(func(call hbasefake.Call) (f hbasefake.Fault) {
			if call.Method == "GetMetaRegionLocations" {
				f.Change = func(m proto.Message) { m.ProtoReflect().SetUnknown(nil) }
			}
			return f
		})
		if err := get(c); err == nil ||
			!strings.Contains(err.Error(), "location of hbase:meta: the node does not know") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("before HBase 2.3", func(t *testing.T) {
		c := startByNodes(t, hbasefake.Options{}, all, quick)
		c.SetHook(func(call hbasefake.Call) (f hbasefake.Fault) {
			if call.Method == "GetClusterId" {
				f = hbasefake.Fault{
					Kind:      hbasefake.Refuse,
					Exception: "org.apache.hadoop.hbase.ipc.UnknownServiceException",
				}
			}
			return f
		})
		if err := get(c); err == nil || !strings.Contains(err.Error(), "UnknownServiceException: injected") {
			t.Errorf("got %v", err)
		}
	})
}

// At a node's address another cluster runs: it is not believed, whatever it says of
// hbase:meta, for points would be written into that.
func TestNodes_anotherCluster(t *testing.T) {
	var log bytes.Buffer
	c := startByNodes(t, hbasefake.Options{}, func(c *hbasefake.Cluster) []string { return c.Nodes() },
		func(cfg *Config) {
			cfg.RetryTimeout = time.Nanosecond
			cfg.Calls.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
	c.CreateTable("t", []string{"t"})
	if err := c.r.get(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.SetClusterID("another")
	c.r.locator.forget(metaServer, c.Nodes()[1])
	log.Reset()
	if addr, err := c.r.locator.address(c.ctx, metaServer); err == nil ||
		!strings.Contains(err.Error(), "got a node of cluster another, want one of "+hbasefake.ClusterID) {
		t.Errorf("got %s, %v", addr, err)
	}
	if !strings.Contains(log.String(), "ignoring a bootstrap node of another cluster") {
		t.Errorf("logged %s, want a warning", &log)
	}
	c.SetClusterID(hbasefake.ClusterID)
	if _, err := c.r.locator.address(c.ctx, metaServer); err != nil {
		t.Errorf("the cluster is back: %v", err)
	}
}

// Replies of a real HBase 2.6.4 are read, and that to GetMasters of a 1.7.2.
func TestNodeReplies(t *testing.T) {
	message := func(text string) *emptypb.Empty {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		m := &emptypb.Empty{}
		m.ProtoReflect().SetUnknown(b)
		return m
	}
	const location = "0a40 0a1b 0801 120d0a05686261736512046d657461 1a00 2200 2800 3000 3800" +
		"1216 0a096c6f63616c686f7374 108b9a01 18fce8cbbea134 18ffffffffffffffffff01"
	if got, err := parseMetaLocation(message(location)); err != nil || got != "localhost:19723" {
		t.Errorf("location: got %q, %v", got, err)
	}
	const nodes = "0a16 0a096c6f63616c686f7374 10ee8901 18cb81dabea134" +
		"0a16 0a096c6f63616c686f7374 108b9a01 18fce8cbbea134"
	if got, err := parseNodes(message(nodes)); err != nil ||
		cmp.Diff([]string{"localhost:17646", "localhost:19723"}, got) != "" {
		t.Errorf("nodes: got %v, %v", got, err)
	}
	const id = "0a24 33356632303065392d653866332d346166642d623339642d313761306565356639346331"
	if got, err := parseClusterID(message(id)); err != nil || got != "35f200e9-e8f3-4afd-b39d-17a0ee5f94c1" {
		t.Errorf("cluster id: got %q, %v", got, err)
	}
	const masters = "0a1a 0a16 0a096c6f63616c686f7374 10ba8f01 18b9ddcfd8a134 1001"
	if got, err := parseMasters(message(masters)); err != nil || got != "localhost:18362" {
		t.Errorf("masters: got %q, %v", got, err)
	}
	// Of several the first one counts, and of masters the active one.
	const two = "0a0f 0a09 6c6f63616c686f7374 10ee8901 0a0f 0a09 6c6f63616c686f7374 108b9a01"
	if got, err := parseActiveMaster(message(two)); err != nil || got != "localhost:17646" {
		t.Errorf("two active masters: got %q, %v", got, err)
	}
	if got, err := parseMetaLocation(message(location + location)); err != nil || got != "localhost:19723" {
		t.Errorf("two locations: got %q, %v", got, err)
	}
	for name, none := range map[string]string{"none": "",
		"none that is active":         strings.TrimSuffix(masters, "1001") + "1000",
		"one that says nothing of it": "0a18 0a16 0a096c6f63616c686f7374 10ba8f01 18b9ddcfd8a134"} {
		if got, err := parseMasters(message(none)); !errors.Is(err, errNodeUnaware) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// A reply that cannot be used is an error that says what is wrong.
func TestNodeReplies_damaged(t *testing.T) {
	for reply, tc := range map[string]struct {
		parse func(*emptypb.Empty) (string, error)
		want  string
	}{
		"0a00":                         {parseClusterID, "does not know"},
		"0a01ff":                       {parseMasters, "master: proto"},
		"0a020801":                     {parseActiveMaster, "server name: proto"},
		"0a03 0a0161":                  {parseActiveMaster, `got host "a" and port 0`},
		"0a04 0a00 1001":               {parseActiveMaster, `got host "" and port 1`},
		"0a07 0a0161 1080 8004":        {parseActiveMaster, `got host "a" and port 65536`},
		"0a02 0aff":                    {parseMetaLocation, "location of hbase:meta: proto"},
		"0a0a 0a01ff 1205 0a0161 1001": {parseMetaLocation, "region of hbase:meta: proto"},
		"0a07 1205 0a0161 1001":        {parseMetaLocation, "got no region"},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(reply, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		m := &emptypb.Empty{}
		m.ProtoReflect().SetUnknown(b)
		if got, err := tc.parse(m); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %q, %v, want %q", reply, got, err, tc.want)
		}
		if nodes, err := parseNodes(m); err == nil && !strings.HasPrefix(tc.want, "does not know") {
			t.Errorf("%s: got nodes %v", reply, nodes)
		}
	}
}

// Whatever a node sends, the outcome is an error or an address.
func FuzzNodeReplies(f *testing.F) {
	f.Add([]byte("\x0a\x16\x0a\x09localhost\x10\x8b\x9a\x01\x18\xfc\xe8\xcb\xbe\xa1\x34"))
	f.Add([]byte("\x0a\x04\x0a\x02\x08\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &emptypb.Empty{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		for _, parse := range []func(*emptypb.Empty) (string, error){parseMetaLocation, parseActiveMaster,
			parseMasters} {
			if addr, err := parse(m); err == nil {
				if _, _, err := net.SplitHostPort(addr); err != nil {
					t.Errorf("%x: got %q", b, addr)
				}
			}
		}
		if nodes, err := parseNodes(m); err == nil && len(nodes) == 0 {
			t.Errorf("%x: got no node", b)
		}
		parseClusterID(m)
	})
}

// Many look-ups at once, with nodes that fail at random moments, all succeed.
func TestNodes_concurrent(t *testing.T) {
	c := startByNodes(t, hbasefake.Options{Servers: 3}, func(c *hbasefake.Cluster) []string { return c.Nodes() })
	c.SetHook(func(call hbasefake.Call) (f hbasefake.Fault) {
		if strings.HasPrefix(call.Method, "Get") && call.N%3 == 1 {
			f.Kind = hbasefake.DropBefore
		}
		return f
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				err := errors.New("not asked")
				for try := 0; err != nil && try < 10; try++ {
					_, err = c.r.locator.address(c.ctx, activeMaster)
				}
				if err != nil {
					t.Error(err)
				}
				c.r.locator.forget(activeMaster, c.Nodes()[0])
			}
		})
	}
	wg.Wait()
}

// Each node is in the order once, however often it is named, and those that did not answer come last.
func TestNodes_order(t *testing.T) {
	b := &bootstrapNodes{
		cfg:    &Config{Nodes: []string{"a:1", "d:1", "c:1"}},
		failed: map[string]bool{},
		named:  []string{"c:1", "a:1", "b:1"},
	}
	b.noteAnswer("c:1", errNodeUnaware)
	b.noteAnswer("a:1", errNodeUnaware)
	b.noteAnswer("a:1", nil)
	first := map[string]bool{}
	for range 200 {
		got := b.order()
		first[got[0]] = true
		if last := got[len(got)-1]; last != "c:1" {
			t.Errorf("the last of %v is %s, want the one that did not answer", got, last)
		}
		if slices.Sort(got); !slices.Equal(got, []string{"a:1", "b:1", "c:1", "d:1"}) {
			t.Fatalf("got %v, want each once", got)
		}
	}
	if len(first) != 3 {
		t.Errorf("only %v were the first of 200 orders, want each of the other three at times", first)
	}
}
