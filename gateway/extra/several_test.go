package extra_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// Meta data that one gateway purges the other one, which has recorded the series before, makes again
// with their next points.
func TestSeveral_metapurge(t *testing.T) {
	a, b := gatewaytest.TwoGateways(t, func(c *gateway.Config) {
		c.MetaTracking, c.MetaRealtimeTS, c.MetaIncrementing = "true", "true", "false"
	})
	described := func() bool {
		x := b.Get("/api/uid/tsmeta?tsuid=000001000001000001")
		return x.Status == http.StatusOK && strings.Contains(x.Body, "000001000001000001")
	}
	b.Put("m 1356998400 1 k=v")
	eventually(t, "the series has meta data", described)
	if x := a.Post("/api/tools/uid", `{"command":"metapurge"}`); x.Status != http.StatusOK ||
		!strings.Contains(x.Body, "1 TSMeta") {
		t.Fatalf("metapurge: %d %s", x.Status, x.Body)
	}
	if described() {
		t.Fatal("the series has meta data after metapurge")
	}
	at := 1356998401
	gatewaytest.Within(t, 2*time.Minute, "it has meta data again", func() bool {
		at++
		b.Put(fmt.Sprintf("m %d 1 k=v", at))
		return described()
	})
}
