//go:build integration

package integration

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
)

const (
	uidNames   = 20000
	uidServers = 8
)

// Eight gateways on one HBase get 20,000 new names at the same time, most of them at several
// gateways. Each name gets one UID, and each UID has one name.
func TestUID_eightGatewaysOnHBase(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	tables := createTables(t)
	var servers []*e2e.Program
	for range uidServers {
		servers = append(servers, layouts[0].gateway(t, tables, nil))
	}
	began := time.Now()
	assign(ctx, t, func(i int) string { return servers[i].URL })
	t.Logf("%d names by %d gateways in %.1f s", uidNames, uidServers, time.Since(began).Seconds())

	checkUIDs(t, must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, tables.UID)))
	// Each gateway must also read back what any of them wrote.
	for _, s := range servers {
		checkHosts(ctx, t, s.URL)
	}
}

// Eight clients put the same names through one gateway on an embedded store. Each name has one
// series.
func TestUID_eightClientsEmbedded(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	ours := embedded(t, nil)
	began := time.Now()
	assign(ctx, t, func(int) string { return ours.URL })
	t.Logf("%d names by %d clients in %.1f s", uidNames, uidServers, time.Since(began).Seconds())
	checkHosts(ctx, t, ours.URL)
}

// assign puts a point for every name: every tenth name by all eight clients, most others by two.
func assign(ctx context.Context, t *testing.T, url func(client int) string) {
	t.Helper()
	seed := seedtest.Of(t)
	var clients errgroup.Group
	for i := range uidServers {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		var points []e2e.Point
		for n := range uidNames {
			if n%10 == 0 || n%uidServers == i || (n/uidServers)%uidServers == i {
				points = append(points, e2e.Point{
					Metric:    "uid.race",
					Timestamp: dataStart,
					Value:     json.RawMessage("1"),
					Tags:      map[string]string{"host": uidName(n)},
				})
			}
		}
		r.Shuffle(len(points), func(a, b int) { points[a], points[b] = points[b], points[a] })
		clients.Go(func() error { return e2e.Put(ctx, url(i), points) })
	}
	if err := clients.Wait(); err != nil {
		t.Fatal(err)
	}
}

func uidName(n int) string { return fmt.Sprintf("host-%05d", n) }

// checkUIDs compares the forward and the reverse half of the UID table. In family id a row is a
// name and the value its UID; in family name a row is a UID and the value its name; the qualifier
// is the kind. Row 00 holds the counters.
func checkUIDs(t *testing.T, cells []e2e.Cell) {
	t.Helper()
	forward, reverse := map[string]string{}, map[string]string{}
	for _, c := range cells {
		if string(c.Qualifier) != "tagv" || string(c.Row) == "\x00" {
			continue
		}
		switch c.Family {
		case "id":
			forward[string(c.Row)] = hex.EncodeToString(c.Value)
		case "name":
			reverse[hex.EncodeToString(c.Row)] = string(c.Value)
		}
	}
	if len(forward) != uidNames {
		t.Errorf("%d names have a UID, want %d", len(forward), uidNames)
	}
	owner := map[string]string{}
	for name, uid := range forward {
		if other, taken := owner[uid]; taken {
			t.Errorf("UID %s has two names, %s and %s", uid, name, other)
		}
		owner[uid] = name
		if reverse[uid] != name {
			t.Errorf("%s has UID %s, which has the name %q", name, uid, reverse[uid])
		}
	}
	// A lost race may leave a reverse mapping to which no forward one leads, a stray, as in
	// OpenTSDB. But its name must have another UID.
	for uid, name := range reverse {
		if forward[name] == "" {
			t.Errorf("UID %s has the name %s, which has no UID", uid, name)
		}
	}
}

// checkHosts asks for every series: each name must have exactly one, with the
// point that was put.
func checkHosts(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:uid.race%%7Bhost=*%%7D",
		url, dataStart, dataStart+60)))
	var results []struct {
		Tags map[string]string
		Dps  map[string]json.Number
	}
	if err := json.Unmarshal(a.Body, &results); err != nil {
		t.Fatalf("%s: status %d, %v: %.300s", url, a.Status, err, a.Body)
	}
	seen := map[string]bool{}
	for _, r := range results {
		host := r.Tags["host"]
		if seen[host] || r.Dps["1356998400"] != "1" || len(r.Dps) != 1 {
			t.Errorf("%s: series of %q: seen before %v, points %v", url, host, seen[host], r.Dps)
		}
		seen[host] = true
	}
	var missing sync.Once
	for n := range uidNames {
		if !seen[uidName(n)] {
			missing.Do(func() {
				t.Errorf("%s: %d series, want %d; the first missing one is %s", url, len(seen), uidNames, uidName(n))
			})
		}
	}
}
