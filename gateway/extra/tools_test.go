package extra_test

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
	plant(b)
	b.Put("m 1356998400 1 host=h")
	if a := b.Post("api/tools/trees", "{}"); a.Status != 200 || !strings.Contains(a.Body, `"disabled":true`) {
		t.Errorf("without trees: got %d %s, want that they are disabled", a.Status, a.Body)
	}
	if a := b.Get("api/tree/branch?treeid=1"); a.Status != http.StatusNotFound {
		t.Errorf("without trees: got %d %s, want no branch", a.Status, a.Body)
	}

	b = open(t, withTrees)
	plant(b)
	noLuck := fmt.Errorf("no luck: %w", store.ErrUnavailable)
	b.Store.Set(faultstore.Rule{Op: faultstore.Increment, Table: "tsdb-meta", Err: noLuck},
		faultstore.Rule{Op: faultstore.Apply, Table: "tsdb-meta", Err: noLuck})
	b.Put("m 1356998400 1 host=h") // its meta data cannot be written
	b.Refused(b.Post("api/tools/trees", "{}"), http.StatusFailedDependency, "no luck")
	if a := b.Post("api/tools/trees", `{"purge":1}`); a.Status != 200 {
		t.Errorf("purge: got %d %s, want 200", a.Status, a.Body)
	}
	b.Store.Set()
	if a := b.Post("api/tools/trees", "{}"); a.Status != 200 || !strings.Contains(a.Body, `"series":1`) {
		t.Errorf("store in order again: got %d %s, want one series", a.Status, a.Body)
	}
}

// Tools reserve their memory in the gateway's budget before they read, and give it back.
func TestServedTools_memory(t *testing.T) {
	b := open(t, withTrees)
	b.Put("m 1356998400 1 host=h")
	b.Post("api/tools/trees", "{}") // so that the put's series is in the trees before
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
		b.Store.Judge.Store(&judge)
		done := make(chan answer)
		go func() {
			if tool.body == "" {
				done <- b.Get("api/tools/" + path)
			} else {
				done <- b.Post("api/tools/"+path, tool.body)
			}
		}()
		<-reading
		var held int64
		for _, holder := range []string{"query", "write"} {
			n, err := strconv.ParseFloat(b.HeldBytes(holder), 64)
			if err != nil {
				t.Fatal(err)
			}
			held += int64(n)
		}
		close(goOn)
		if a := <-done; a.Status != 200 || held < tool.holds || held > tool.holds+1<<20 {
			t.Errorf("%s: %d bytes are held, want %d; %d %s", path, held, tool.holds, a.Status, a.Body)
		}
		b.Settled()
	}
	b.Refused(b.Post("api/tools/fsck", `{"full":true,"threads":1000000000}`), 400,
		"threads: got 1000000000, want 1 to ")
}

// A body with too many lines for the memory budget is refused, and so are a definition without a
// tree and unknown fields; all memory is given back.
func TestServedTools_lists(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.Refused(b.Post("api/tools/import", strings.Repeat("#note {}\n", 100_000)),
		http.StatusRequestEntityTooLarge, "memory")
	b.Refused(b.Post("api/tools/trees", `{"definition":true}`), http.StatusBadRequest, "without a tree")
	for path, body := range map[string]string{
		"trees":  `{"purg":1}`,
		"fsck":   `{"full":true,"options":{"Fixx":true}}`,
		"uid":    `{"command":"fsck","fixx":true}`,
		"delete": `{"kind":"tagk","name":"a","forced":true}`,
	} {
		b.Refused(b.Post("api/tools/"+path, body), http.StatusBadRequest, "unknown field")
	}
	b.Settled()
}

// Tools that work on the whole UID and meta tables run one at a time; a second one is refused.
func TestServedTools_oneAtATime(t *testing.T) {
	b := open(t, withTrees)
	b.Put("m 1356998400 1 host=h")
	b.Post("api/tools/trees", "{}")
	reading, goOn := make(chan struct{}), make(chan struct{})
	var waits atomic.Bool
	judge := func(s store.Scan) error {
		if s.Table == "tsdb-uid" && s.BlockBytes > 0 && waits.CompareAndSwap(false, true) {
			close(reading)
			<-goOn
		}
		return nil
	}
	b.Store.Judge.Store(&judge)
	done := make(chan answer)
	go func() { done <- b.Post("api/tools/uid", `{"command":"fsck"}`) }()
	<-reading
	second, third := b.Post("api/tools/uid", `{"command":"metapurge"}`), b.Post("api/tools/trees", "{}")
	close(goOn)
	if a := <-done; a.Status != 200 || !strings.Contains(a.Body, "#end ") {
		t.Errorf("the first tool: got %d %s, want it to finish", a.Status, a.Body)
	}
	b.Refused(second, http.StatusConflict, "one at a time")
	b.Refused(third, http.StatusConflict, "one at a time")
	if a := b.Post("api/tools/trees", "{}"); a.Status != 200 {
		t.Errorf("after the first tool: got %d %s, want 200", a.Status, a.Body)
	}
}
