package progress

import (
	"bytes"
	"testing"
	"time"
)

// Without a terminal there is a line every ten seconds, with the time left.
func TestProgress_lines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := New(&out, "load", 1000)
	p.now = func() time.Time { return now }
	p.start, p.lineAt = now, now
	for range 4 {
		now = now.Add(6 * time.Second)
		p.Add(100)
	}
	p.Sayf("%d done", 4)
	p.End()
	const want = "load: 200 of 1000 after 12s, 20%, about 48s left\n" +
		"load: 400 of 1000 after 24s, 40%, about 36s left\n4 done\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var none *Progress // prints nothing, and must not panic
	none.Add(1)
	none.Sayf("x")
	none.End()
}
