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

// A gateway builds trees only if its own settings want them, whoever asks for it, and
// deletes one without growing it before.
func TestServedTools_trees(t *testing.T) {
	b := open(t, nil) // without trees
	b.plant()
	b.put("m 1356998400 1 host=h")
	if a := b.post("api/tools/trees", "{}"); a.status != 200 || !strings.Contains(a.body, `"disabled":true`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := b.get("api/tree/branch?treeid=1"); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}

	b = open(t, withTrees)
	b.plant()
	b.store.set(faultstore.Rule{Op: faultstore.Increment, Table: "tsdb-meta", Err: fmt.Errorf("no luck: %w", store.ErrUnavailable)},
		faultstore.Rule{Op: faultstore.Apply, Table: "tsdb-meta", Err: fmt.Errorf("no luck: %w", store.ErrUnavailable)})
	b.put("m 1356998400 1 host=h") // its meta data cannot be written
	b.refused(b.post("api/tools/trees", "{}"), http.StatusServiceUnavailable, "no luck")
	if a := b.post("api/tools/trees", `{"purge":1}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	b.store.set()
	if a := b.post("api/tools/trees", "{}"); a.status != 200 || !strings.Contains(a.body, `"series":1`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Tools take their memory from the budget of the gateway, before they have it, and give it
// back.
func TestServedTools_memory(t *testing.T) {
	b := open(t, withTrees)
	b.put("m 1356998400 1 host=h")
	b.post("api/tools/trees", "{}") // nothing of the put is left to do then
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
			if s.BlockBytes > 0 || s.Table == "tsdb-tree" { // as tools read
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

// Lists of names, and the lines of a large body, take memory as they grow.
func TestServedTools_lists(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.Memory = "64MiB" })
	b.refused(b.post("api/tools/remarks", strings.Repeat("#note {}\n", 100_000)), http.StatusRequestEntityTooLarge, "memory")
	b.refused(b.post("api/tools/trees", `{"definition":true}`), http.StatusBadRequest, "without a tree")
	for path, body := range map[string]string{"trees": `{"purg":1}`, "fsck": `{"full":true,"options":{"Fixx":true}}`, "uid": `{"command":"fsck","fixx":true}`, "delete": `{"kind":"tagk","name":"a","forced":true}`} {
		b.refused(b.post("api/tools/"+path, body), http.StatusBadRequest, "unknown field")
	}
	b.settled()
}

// Two pieces of work on the whole UID and meta tables do not run beside each other, and the
// second one is told so.
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
		t.Errorf("%d %s", a.status, a.body)
	}
	b.refused(second, http.StatusConflict, "one at a time")
	b.refused(third, http.StatusConflict, "one at a time")
	if a := b.post("api/tools/trees", "{}"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
