package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// pastQuery is a query of metric m that ends in the past, so that its answer gets an ETag.
const pastQuery = "/api/query?start=1356998400&end=1356998500&m=sum:m"

// An answer that is too large to be held back has an ETag, too. The story etag has those of others.
func TestETag_large(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1356998401 2.5 host=b")
	// 300,000 points are more than the gateway holds back.
	large := "/api/query?start=1356998400&end=1357298399&ms&m=sum:1s-sum-zero:m"
	a := b.get(large)
	if a.status != 200 || len(a.body) < 5<<20 || !strings.HasSuffix(a.body, `"1357298399000":0.0}}]`) || a.header.Get("ETag") == "" {
		t.Errorf("large: %d, %d bytes, %v", a.status, len(a.body), a.header)
	}
	if a := b.get(large, "If-None-Match", a.header.Get("ETag")); a.status != http.StatusNotModified {
		t.Errorf("large, again: %d", a.status)
	}
}
