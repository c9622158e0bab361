package hostile

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// histogramMetric is the metric of all histograms. Nothing that is compared reads it.
const histogramMetric = "hostile.histogram"

// histogram puts histograms, good and bad, or asks for them.
func (d *drawing) histogram() Request {
	switch d.r.IntN(4) {
	case 0:
		return d.histogramLines()
	case 1:
		return d.histogramQuery()
	}
	m := message{
		method: "POST",
		path:   "/api/histogram" + pick(d, []string{"", "?details", "?summary", "?details&sync&sync_timeout=1"}),
		body:   []byte(d.histogramBody()),
	}
	return m.request()
}

// histogramBody is a body of one or several histograms.
func (d *drawing) histogramBody() string {
	one := func(rest string) string {
		return fmt.Sprintf(`{"metric":%q,"timestamp":%d,"tags":{"host":"web%05d"},%s}`,
			histogramMetric, Era+d.number%7200, d.r.IntN(20), rest)
	}
	switch d.r.IntN(6) {
	case 0: // as many buckets as fit into a body, and beyond what a cell can have
		var b strings.Builder
		for i := range d.size(1 << 20) {
			fmt.Fprintf(&b, `"%d,%d":%d,`, i, i+1, i)
		}
		return one(`"buckets":{` + strings.TrimSuffix(b.String(), ",") + `}`)
	case 1:
		return one(`"buckets":{` + pick(d, []string{
			`"0,NaN":1`, `"2,1":1`, `"0,1":-1`, `"-1e39,1e39":1`, `"0,1":"x"`, `"0,1":[`,
			`"` + strings.Repeat("0,", d.size(1<<18)) + `":1`, `"0,1":99999999999999999999`,
		}) + `}`)
	case 2: // claims of more than there is, under the codec that the gateway knows
		return one(`"id":42,"value":"` + pick(d, []string{
			"f/8AAAAAAAA=", "//8AAAAAAAA=", "!!!", strings.Repeat("A", d.size(1<<20)),
			strings.Repeat("/", d.size(1<<20)),
		}) + `"`)
	case 3:
		raw := make([]byte, 6+d.size(4096))
		for i := range raw {
			raw[i] = byte(d.r.Uint32())
		}
		return one(`"id":` + strconv.Itoa(pick(d, []int{42, 42, 0, 255, 256, -1})) + `,"value":"` +
			base64.StdEncoding.EncodeToString(raw) + `"`)
	}
	var list []string
	for range d.size(1024) {
		list = append(list, one(`"buckets":{`+d.buckets()+`},"underflow":1,"overflow":2`))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// buckets are good ones.
func (d *drawing) buckets() string {
	var out []string
	for i := range 1 + d.r.IntN(8) {
		out = append(out, fmt.Sprintf(`"%d.5,%d.5":%d`, i, i+1, d.r.IntN(1<<20)))
	}
	return strings.Join(out, ",")
}

// histogramLines are lines of telnet.
func (d *drawing) histogramLines() Request {
	var b strings.Builder
	for range pick(d, []int{1, 10, 1000}) {
		value := pick(d, []string{
			"0,1=5:u=1:o=2", "0,1=5", "42 AAIAAAAAP4AAAAU/gAAAQAAAAAcBAg==", "1,0=5", "0,NaN=1", "0,1=-1", "x",
			"=", ":::", "42", "7 AAAA", strings.Repeat("0,1=1:", 200),
		})
		fmt.Fprintf(&b, "histogram %s %d %s host=web00001\n", histogramMetric, Era+d.r.IntN(7200), value)
	}
	return Request{Door: Telnet, Wire: []byte(b.String())}
}

// histogramQuery asks for percentiles or buckets of what was put.
func (d *drawing) histogramQuery() Request {
	m := message{method: "GET"}
	var p parameters
	p.add("start", strconv.Itoa(Era-3600))
	p.add("end", strconv.Itoa(Era+pick(d, []int{1, 7200, 365 * 86400})))
	kind := pick(d, []string{
		"percentiles[50,99.9]", "percentiles[0,100]", "show-histogram-buckets",
		"percentiles[50]:show-histogram-buckets", "percentiles[" + strings.Repeat("1,", d.size(4096)) + "1]",
	})
	downsample := pick(d, []string{"", "1m-sum:", "7m-sum-nan:", "1ms-sum-zero:", "0all-sum:", "1nc-sum:"})
	p.add("m", pick(d, []string{"sum", "none"})+":"+downsample+kind+":"+
		pick(d, []string{histogramMetric, "hostile.wide"})+pick(d, []string{"", "{host=*}", "{host=regexp(web.*1)}"}))
	m.path = p.on("/api/query")
	if d.one(4) {
		m.set("Accept", "application/vnd.apache.arrow.stream")
	}
	return m.request()
}
