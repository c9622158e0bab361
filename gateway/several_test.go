package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/uid"
	"downpour/pushdown/store/hbase"
)

// twoGateways starts two gateways on the same tables of a simulated HBase.
func twoGateways(t *testing.T, change func(*gateway.Config)) (a, b *bench) {
	t.Helper()
	cfg, st := fakeHBase(t)
	if change != nil {
		change(cfg)
	}
	other := *cfg
	where, err := hbase.ParseAddress(strings.TrimPrefix(cfg.Store, "hbase:"))
	if err != nil {
		t.Fatal(err)
	}
	where.VersionTimeout = patience
	otherStore, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { otherStore.Close() })
	return &bench{T: t, cfg: cfg, g: start(t, cfg, st)}, &bench{T: t, cfg: &other, g: start(t, &other, otherStore)}
}

// soon polls until ok returns true, for less time than that in which a gateway looks for changes
// that nobody tells of.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

const severalQuery = "/api/query?start=1356998400&end=1357002000&m=none:"

// What one gateway renames the other one, which has names and answers in its caches, finds out by
// itself. Until then it answers as before the rename and, from one answer on, as after it: never
// something else, never less.
func TestSeveral_renames(t *testing.T) {
	a, b := twoGateways(t, func(c *gateway.Config) { c.ResultCache = "16MiB" })
	a.put("m 1356998400 1 k=v", "m 1356998401 2 k=w")
	for kind, change := range map[string][3]string{
		"tagv":   {"v", "m", `"tags":{"k":"%s"},"aggregateTags":[],"dps":{"1356998400":1}`},
		"tagk":   {"k", "m", `"tags":{"%s":"w"},"aggregateTags":[],"dps":{"1356998401":2}`},
		"metric": {"m", "", `"metric":"%s"`},
	} {
		t.Run(kind, func(t *testing.T) {
			a, b := &bench{T: t, cfg: a.cfg, g: a.g}, &bench{T: t, cfg: b.cfg, g: b.g}
			old, form := change[0], change[2]
			renamed := old + "-renamed"
			query := severalQuery + "m"
			for range 3 { // the third answer is from the result cache
				if x := b.get(query); !strings.Contains(x.body, fmt.Sprintf(form, old)) {
					t.Fatalf("before: %d %s", x.status, x.body)
				}
			}
			if x := a.post("/api/uid/rename", fmt.Sprintf(`{%q:%q,"name":%q}`, kind, old, renamed)); x.status != http.StatusOK {
				t.Fatalf("rename: %d %s", x.status, x.body)
			}
			after := severalQuery + strings.Replace("m", old, renamed, 1)
			if x := a.get(after); !strings.Contains(x.body, fmt.Sprintf(form, renamed)) {
				t.Errorf("the gateway that renamed: %d %s", x.status, x.body)
			}
			soon(t, "the other gateway knows", func() bool {
				x := b.get(query)
				switch {
				case kind == "metric" && x.status == http.StatusBadRequest && strings.Contains(x.body, "No such name for 'metrics': 'm'"):
					return true
				case x.status == http.StatusOK && strings.Count(x.body, `"dps":{"13`) == 2 && strings.Contains(x.body, fmt.Sprintf(form, old)):
					return false
				case x.status == http.StatusOK && strings.Count(x.body, `"dps":{"13`) == 2 && strings.Contains(x.body, fmt.Sprintf(form, renamed)):
					// A rename writes the UID's name before it deletes the old one, as OpenTSDB's does: in between the old
					// name of a metric is answered with the new one, and then refused.
					return kind != "metric"
				}
				t.Fatalf("in between: %d %s, want the answer of before or after the rename", x.status, x.body)
				return false
			})
			if x := b.get(after); strings.Count(x.body, `"dps":{"13`) != 2 || !strings.Contains(x.body, fmt.Sprintf(form, renamed)) {
				t.Errorf("afterwards: %d %s", x.status, x.body)
			}
			if x := a.post("/api/uid/rename", fmt.Sprintf(`{%q:%q,"name":%q}`, kind, renamed, old)); x.status != http.StatusOK {
				t.Fatalf("rename back: %d %s", x.status, x.body)
			}
			soon(t, "the other gateway knows of the way back", func() bool { return strings.Contains(b.get(query).body, fmt.Sprintf(form, old)) })
		})
	}
}

// What OpenTSDB renames, which tells nobody, every gateway knows soon after the caches of one of
// them were dropped.
func TestSeveral_dropCaches(t *testing.T) {
	a, b := twoGateways(t, nil)
	b.put("m 1356998400 1 k=v")
	as := func(name string) func() bool {
		return func() bool { return strings.Contains(b.get(severalQuery+"m").body, `"tags":{"k":"`+name+`"}`) }
	}
	if !as("v")() {
		t.Fatal("the name is not there")
	}
	for door, drop := range map[string]func(){
		"HTTP": func() {
			if x := a.get("/api/dropcaches"); x.status != http.StatusOK {
				t.Errorf("%d %s", x.status, x.body)
			}
		},
		"telnet": func() {
			c := a.dial()
			fmt.Fprintln(c, "dropcaches")
			if said := c.rest(); said != "Caches dropped.\n" {
				t.Errorf("telnet: %q", said)
			}
		},
	} {
		where, err := hbase.ParseAddress(strings.TrimPrefix(a.cfg.Store, "hbase:"))
		if err != nil {
			t.Fatal(err)
		}
		st, err := hbase.Open(where)
		if err != nil {
			t.Fatal(err)
		}
		was := "v"
		if as("HTTP")() {
			was = "HTTP"
		} else if as("telnet")() {
			was = "telnet"
		}
		// A dictionary that is not shared tells nobody, as OpenTSDB does not.
		silent := uid.New(uid.Config{Store: st, Table: a.cfg.TableUID, Schema: encoding.DefaultSchema()})
		if err := silent.Rename(t.Context(), encoding.UIDTagV, was, door); err != nil {
			t.Fatal(err)
		}
		st.Close()
		drop()
		soon(t, "the other gateway knows after dropcaches by "+door, as(door))
	}
}

// Meta data that one gateway purges the other one, which has recorded the series before, makes again
// with their next points.
func TestSeveral_metapurge(t *testing.T) {
	a, b := twoGateways(t, func(c *gateway.Config) {
		c.MetaTracking, c.MetaRealtimeTS, c.MetaIncrementing = "true", "true", "false"
	})
	described := func() bool {
		x := b.get("/api/uid/tsmeta?tsuid=000001000001000001")
		return x.status == http.StatusOK && strings.Contains(x.body, "000001000001000001")
	}
	b.put("m 1356998400 1 k=v")
	eventually(t, "the series has meta data", described)
	if x := a.post("/api/tools/uid", `{"command":"metapurge"}`); x.status != http.StatusOK || !strings.Contains(x.body, "1 TSMeta") {
		t.Fatalf("metapurge: %d %s", x.status, x.body)
	}
	if described() {
		t.Fatal("the series has meta data after metapurge")
	}
	at := 1356998401
	soon(t, "it has meta data again", func() bool { at++; b.put(fmt.Sprintf("m %d 1 k=v", at)); return described() })
}
