package tools_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"downpour/gateway/extra/tools"
)

// series top counts what the meta table has, or else the rows of the last full hour, on a store and through a gateway
// that has it open.
func TestSeries(t *testing.T) {
	// The hour that is full, and the one that will be if it ends now.
	var points string
	for _, hour := range []time.Time{time.Now().Add(-time.Hour), time.Now()} {
		at := hour.Truncate(time.Hour).Unix() + 60
		for i := range 3 {
			points += fmt.Sprintf("cpu %d 1 host=h%d dc=x\n", at, i)
		}
		points += fmt.Sprintf("mem %d 1 host=h9\n", at)
	}
	ofHour := regexp.MustCompile(`, with rows of the hour from [-0-9T:]+:00:00Z on`)

	const metrics = "metric  series  new today\ncpu     3       3\n"
	const keys = "tag key  values  new today\nhost     4       4\n"
	uids := func(m, k, v int) string {
		const rows = "metrics  %d     0.0 %%   %[1]d          not soon\n" +
			"tagk     %[2]d     0.0 %%   %[2]d          not soon\n" +
			"tagv     %[3]d     0.0 %%   %[3]d          not soon\n\n"
		return "UIDs of  used  of all  new today  run out\n" + fmt.Sprintf(rows, m, k, v)
	}
	all := uids(2, 2, 5) + "4 series of 2 metrics with 2 tag keys"
	check := func(p *place, url, of string) {
		t.Helper()
		f := func(fault, out string, args ...string) {
			t.Helper()
			err := p.tool(url, nil, "series", args...)
			if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
				t.Errorf("%s, %q: error %v, want %q", url, args, err, fault)
			}
			if got := ofHour.ReplaceAllString(p.out.String(), " (hour)"); got != out {
				t.Errorf("%s, %q: %q, want %q", url, args, got, out)
			}
		}
		f("", uids(0, 0, 0)+"0 series of 0 metrics with 0 tag keys\n", "top")
		if err := p.tool(url, strings.NewReader(points), "import", "-"); err != nil {
			t.Fatal(err)
		}
		f("", metrics+"mem     1       1\n\n"+keys+"dc       1       1\n\n"+all+of, "top")
		f("", metrics+"\n"+keys+"\n"+all+of, "-top", "1", "top")
		f("top: got \"0\", want 1 to 1000", "", "top", "-top", "0")
		f("want top", "", "bottom")
	}
	check(embedded(t), "http://127.0.0.1:1", "\n")
	check(onHBase(t), "http://127.0.0.1:1", " (hour)\n")
	p := embedded(t)
	p.serve(func(url string, _ tools.Store) { check(p, url, "\n") })
}
