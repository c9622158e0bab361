package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// An answer that is too large to be held back has an ETag, too. The story etag has those of others.
func TestETag_large(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998400 2 host=b", "m 1356998401 2.5 host=b")
	// 300,000 points are more than the gateway holds back.
	large := "/api/query?start=1356998400&end=1357298399&ms&m=sum:1s-sum-zero:m"
	a := b.Get(large)
	if a.Status != 200 || len(a.Body) < 5<<20 || !strings.HasSuffix(a.Body, `"1357298399000":0.0}}]`) ||
		a.Header.Get("ETag") == "" {
		t.Errorf("large: %d, %d bytes, %v", a.Status, len(a.Body), a.Header)
	}
	if a := b.Get(large, "If-None-Match", a.Header.Get("ETag")); a.Status != http.StatusNotModified {
		t.Errorf("large, again: %d", a.Status)
	}
}
