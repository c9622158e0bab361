package query

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What means nothing is named, and what means something is not.
func TestIgnored(t *testing.T) {
	const (
		months  = `the duration "5min" is read as 5n, n is for months`
		seconds = `the duration "90000mins" is read as 90000s, s is for seconds`
	)
	for text, want := range map[string][]string{
		"start=1h-ago&m=sum:5m-avg:cpu":                               nil,
		"start=2012/01/01-00:00&end=now&m=sum:1dc-avg:rate:cpu":       nil,
		"start=1H-AGO&m=sum:500ms-avg:pre-agg:explicit_tags:cpu":      nil,
		"start=1h-ago&m=sum:0all-avg:rollup_raw:cpu&tsuid=sum:000001": nil,
		"start=1h-ago&m=sum:1y-avg-nan:rate{counter}:cpu{a=b}":        nil,
		"start=1h-ago&m=sum:5min-avg:cpu":                             {months},
		"start=1h-ago&m=sum:5minc-avg:cpu":                            {months},
		"start=90000mins-ago&m=sum:cpu":                               {seconds},
		"start=1d-ago&end=1.5h-ago&m=sum:cpu": {
			`the duration "1.5h" is read as 1h, h is for hours`,
		},
		"start=1h-ago&m=sum:500mS-avg:cpu":               nil,
		"start=1h-ago&m=sum:500MS-avg:cpu":               {`the duration "500MS" is read as 500s, s is for seconds`},
		"start=1h-ago&m=sum:5min-avg:a&m=sum:5min-avg:b": {months},
		"start=1h-ago&m=sum:a:b:c:x&m=sum:d:e:f:y&m=sum:g:h:i:z&m=sum:j:k:l:w": {
			`the part "a" of m=sum:a:b:c:x means nothing`, `the part "b" of m=sum:a:b:c:x means nothing`,
			`the part "c" of m=sum:a:b:c:x means nothing`, `the part "d" of m=sum:d:e:f:y means nothing`,
			`the part "e" of m=sum:d:e:f:y means nothing`, `the part "f" of m=sum:d:e:f:y means nothing`,
			`the part "g" of m=sum:g:h:i:z means nothing`, `the part "h" of m=sum:g:h:i:z means nothing`,
			`the part "i" of m=sum:g:h:i:z means nothing`, `the part "j" of m=sum:j:k:l:w means nothing`, "and more",
		},
		"start=1h-ago&m=sum:2qms-avg:cpu": {
			`the duration "2qms" is read as 2ms, ms is for milliseconds`,
		},
		"start=1h-ago&tsuid=sum:pre-agg:000001": {`the part "pre-agg" of tsuid=sum:pre-agg:000001 means nothing`},
		"start=1h-ago&m=sum:cpu&timezone=Europe/Berlin": {
			`a GET's timezone means nothing without fix=timezone`,
		},
		"start=1h-ago&m=sum:cpu&timezone=Europe/Berlin&fix=timezone": nil,
		"start=1h-ago&m=sum:cpu&tz=Mars/Base":                        {`tz means nothing to this route`},
		"start=1h-ago&m=sum:deriv:cpu&m=max:x:y:rate:disk": {
			`the part "deriv" of m=sum:deriv:cpu means nothing`, `the part "x" of m=max:x:y:rate:disk means nothing`,
			`the part "y" of m=max:x:y:rate:disk means nothing`,
		},
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParseURI(values, time.Unix(1356998400, 0))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, q.Ignored()); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
}
