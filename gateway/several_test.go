package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/uid"
	"downpour/pushdown/store/hbase"
)

const severalQuery = "/api/query?start=1356998400&end=1357002000&m=none:"

// What one gateway renames the other one, which has names and answers in its caches, finds out by
// itself. Until then it answers as before the rename and, from one answer on, as after it: never
// something else, never less.
func TestSeveral_renames(t *testing.T) {
	a, b := gatewaytest.TwoGateways(t, func(c *gateway.Config) { c.ResultCache = "16MiB" })
	a.Put("m 1356998400 1 k=v", "m 1356998401 2 k=w")
	for kind, change := range map[string][3]string{
		"tagv":   {"v", "m", `"tags":{"k":"%s"},"aggregateTags":[],"dps":{"1356998400":1}`},
		"tagk":   {"k", "m", `"tags":{"%s":"w"},"aggregateTags":[],"dps":{"1356998401":2}`},
		"metric": {"m", "", `"metric":"%s"`},
	} {
		t.Run(kind, func(t *testing.T) {
			a, b := a.In(t), b.In(t)
			old, form := change[0], change[2]
			renamed := old + "-renamed"
			query := severalQuery + "m"
			for range 3 { // the third answer is from the result cache
				if x := b.Get(query); !strings.Contains(x.Body, fmt.Sprintf(form, old)) {
					t.Fatalf("before: %d %s", x.Status, x.Body)
				}
			}
			if x := a.Post("/api/uid/rename",
				fmt.Sprintf(`{%q:%q,"name":%q}`, kind, old, renamed)); x.Status != http.StatusOK {
				t.Fatalf("rename: %d %s", x.Status, x.Body)
			}
			after := severalQuery + strings.Replace("m", old, renamed, 1)
			if x := a.Get(after); !strings.Contains(x.Body, fmt.Sprintf(form, renamed)) {
				t.Errorf("the gateway that renamed: %d %s", x.Status, x.Body)
			}
			soon(t, "the other gateway knows", func() bool {
				x := b.Get(query)
				switch {
				case kind == "metric" && x.Status == http.StatusBadRequest &&
					strings.Contains(x.Body, "No such name for 'metrics': 'm'"):
					return true
				case x.Status == http.StatusOK && strings.Count(x.Body, `"dps":{"13`) == 2 &&
					strings.Contains(x.Body, fmt.Sprintf(form, old)):
					return false
				case x.Status == http.StatusOK && strings.Count(x.Body, `"dps":{"13`) == 2 &&
					strings.Contains(x.Body, fmt.Sprintf(form, renamed)):
					// A rename writes the UID's name before it deletes the old one, as OpenTSDB's
					// does: in between the old name of a metric is answered with the new one, and
					// then refused.
					return kind != "metric"
				}
				t.Fatalf("in between: %d %s, want the answer of before or after the rename", x.Status, x.Body)
				return false
			})
			if x := b.Get(after); strings.Count(x.Body, `"dps":{"13`) != 2 ||
				!strings.Contains(x.Body, fmt.Sprintf(form, renamed)) {
				t.Errorf("afterwards: %d %s", x.Status, x.Body)
			}
			if x := a.Post("/api/uid/rename",
				fmt.Sprintf(`{%q:%q,"name":%q}`, kind, renamed, old)); x.Status != http.StatusOK {
				t.Fatalf("rename back: %d %s", x.Status, x.Body)
			}
			soon(t, "the other gateway knows of the way back", func() bool {
				return strings.Contains(b.Get(query).Body, fmt.Sprintf(form, old))
			})
		})
	}
}

// OpenTSDB renames without notifying anybody. Every gateway knows the new name soon after the caches
// of one of them were dropped.
func TestSeveral_dropCaches(t *testing.T) {
	a, b := gatewaytest.TwoGateways(t, nil)
	b.Put("m 1356998400 1 k=v")
	as := func(name string) func() bool {
		return func() bool { return strings.Contains(b.Get(severalQuery+"m").Body, `"tags":{"k":"`+name+`"}`) }
	}
	if !as("v")() {
		t.Fatal("the name is not there")
	}
	for door, drop := range map[string]func(){
		"HTTP": func() {
			if x := a.Get("/api/dropcaches"); x.Status != http.StatusOK {
				t.Errorf("%d %s", x.Status, x.Body)
			}
		},
		"telnet": func() {
			c := a.Dial()
			fmt.Fprintln(c, "dropcaches")
			if said := c.Rest(); said != "Caches dropped.\n" {
				t.Errorf("telnet: %q", said)
			}
		},
	} {
		where, err := hbase.ParseAddress(strings.TrimPrefix(a.Config.Store, "hbase:"))
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
		// A dictionary that is not shared notifies nobody, and neither does OpenTSDB.
		silent := uid.New(uid.Config{Store: st, Table: a.Config.TableUID, Schema: encoding.DefaultSchema()})
		if err := silent.Rename(t.Context(), encoding.UIDTagV, was, door); err != nil {
			t.Fatal(err)
		}
		st.Close()
		drop()
		soon(t, "the other gateway knows after dropcaches by "+door, as(door))
	}
}

// soon polls until ok returns true, for less time than that in which a gateway looks for changes
// that it was not notified of.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	gatewaytest.Within(t, 2*time.Minute, what, ok)
}
