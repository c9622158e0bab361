package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"downpour/gateway"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// The tool that builds trees does nothing on a gateway whose settings have no trees. It deletes a
// tree although series that wait for it cannot be stored.
func TestServedTools_trees(t *testing.T) {
	b := open(t, nil) // without trees
	b.plant()
	b.put("m 1356998400 1 host=h")
	if a := b.post("api/tools/trees", "{}"); a.status != 200 || !strings.Contains(a.body, `"disabled":true`) {
		t.Errorf("without trees: got %d %s, want that they are disabled", a.status, a.body)
	}
	if a := b.get("api/tree/branch?treeid=1"); a.status != http.StatusNotFound {
		t.Errorf("without trees: got %d %s, want no branch", a.status, a.body)
	}

	b = open(t, withTrees)
	b.plant()
	b.store.set(faultstore.Rule{Op: faultstore.Increment, Table: "tsdb-meta", Err: fmt.Errorf("no luck: %w", store.ErrUnavailable)},
		faultstore.Rule{Op: faultstore.Apply, Table: "tsdb-meta", Err: fmt.Errorf("no luck: %w", store.ErrUnavailable)})
	b.put("m 1356998400 1 host=h") // its meta data cannot be written
	b.refused(b.post("api/tools/trees", "{}"), http.StatusFailedDependency, "no luck")
	if a := b.post("api/tools/trees", `{"purge":1}`); a.status != 200 {
		t.Errorf("purge: got %d %s, want 200", a.status, a.body)
	}
	b.store.set()
	if a := b.post("api/tools/trees", "{}"); a.status != 200 || !strings.Contains(a.body, `"series":1`) {
		t.Errorf("store in order again: got %d %s, want one series", a.status, a.body)
	}
}

// Tools reserve their memory in the gateway's budget before they read, and give it back.
func TestServedTools_memory(t *testing.T) {
	b := open(t, withTrees)
	b.put("m 1356998400 1 host=h")
	b.post("api/tools/trees", "{}") // so that the put's series is in the trees before
	for path, tool := range map[string]struct {
		body  string
		holds int64
	}{
		"fsck":                     {`{"full":true}`, 2 * 13 << 20},
		"trees":                    {"{}", 32 << 20},
		"uid":                      {`{"command":"fsck"}`, 16 << 20},
		"export?start=1&m=m":       {"", 5 << 20},
		"scan?arg=1&arg=sum&arg=m": {"", 5 << 20},
	} {
		reading, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		judge := func(s store.Scan) error {
			if s.BlockBytes > 0 || s.Table == "tsdb-tree" { // a scan of a tool
				once.Do(func() { close(reading); <-goOn })
			}
			return nil
		}
		b.store.judge.Store(&judge)
		done := make(chan answer)
		go func() {
			if tool.body == "" {
				done <- b.get("api/tools/" + path)
			} else {
				done <- b.post("api/tools/"+path, tool.body)
			}
		}()
		<-reading
		var held int64
		for _, holder := range []string{"query", "write"} {
			n, err := strconv.ParseFloat(b.heldBytes(holder), 64)
			if err != nil {
				t.Fatal(err)
			}
			held += int64(n)
		}
		close(goOn)
		if a := <-done; a.status != 200 || held < tool.holds || held > tool.holds+1<<20 {
			t.Errorf("%s: %d bytes are held, want %d; %d %s", path, held, tool.holds, a.status, a.body)
		}
		b.settled()
	}
	b.refused(b.post("api/tools/fsck", `{"full":true,"threads":1000000000}`), 400, "threads: got 1000000000, want 1 to ")
}

// A body with too many lines for the memory budget is refused, and so are a definition without a
// tree and unknown fields; all memory is given back.
func TestServedTools_lists(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.refused(b.post("api/tools/import", strings.Repeat("#note {}\n", 100_000)), http.StatusRequestEntityTooLarge, "memory")
	b.refused(b.post("api/tools/trees", `{"definition":true}`), http.StatusBadRequest, "without a tree")
	for path, body := range map[string]string{"trees": `{"purg":1}`, "fsck": `{"full":true,"options":{"Fixx":true}}`, "uid": `{"command":"fsck","fixx":true}`, "delete": `{"kind":"tagk","name":"a","forced":true}`} {
		b.refused(b.post("api/tools/"+path, body), http.StatusBadRequest, "unknown field")
	}
	b.settled()
}

// Tools that work on the whole UID and meta tables run one at a time; a second one is refused.
func TestServedTools_oneAtATime(t *testing.T) {
	b := open(t, withTrees)
	b.put("m 1356998400 1 host=h")
	b.post("api/tools/trees", "{}")
	reading, goOn := make(chan struct{}), make(chan struct{})
	var waits atomic.Bool
	judge := func(s store.Scan) error {
		if s.Table == "tsdb-uid" && s.BlockBytes > 0 && waits.CompareAndSwap(false, true) {
			close(reading)
			<-goOn
		}
		return nil
	}
	b.store.judge.Store(&judge)
	done := make(chan answer)
	go func() { done <- b.post("api/tools/uid", `{"command":"fsck"}`) }()
	<-reading
	second, third := b.post("api/tools/uid", `{"command":"metapurge"}`), b.post("api/tools/trees", "{}")
	close(goOn)
	if a := <-done; a.status != 200 || !strings.Contains(a.body, "#end ") {
		t.Errorf("the first tool: got %d %s, want it to finish", a.status, a.body)
	}
	b.refused(second, http.StatusConflict, "one at a time")
	b.refused(third, http.StatusConflict, "one at a time")
	if a := b.post("api/tools/trees", "{}"); a.status != 200 {
		t.Errorf("after the first tool: got %d %s, want 200", a.status, a.body)
	}
}
