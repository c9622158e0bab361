package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// metadata asks for or changes something other than points.
func (d *drawing) metadata() Request {
	m := message{method: "GET"}
	p := parameters{}
	switch d.r.IntN(9) {
	case 0:
		m.path = "/api/suggest"
		p.add("type", pick(d, []string{"metrics", "tagk", "tagv", "x"}))
		p.add("q", pick(d, []string{"", "web", "h", strings.Repeat("w", d.size(8192)), "é", "\x00"}))
		p.add("max", pick(d, []string{"1", "100000", "2147483647", "99999999999999999999", "-1", "x"}))
	case 1:
		m.path = "/api/search/lookup"
		p.add("m", pick(d, []string{
			"*", Light, "hostile.wide", "hostile.slow{host=*}", "*{dc=dc1}", "{=web00001}", "nosuch",
			"hostile.wide{" + strings.Repeat("host=web00001,", d.size(512)) + "dc=*}",
		}))
		p.add("limit", pick(d, []string{"0", "-1", "25", "2147483647"}))
		if d.one(2) {
			m = d.lookup()
			return m.request()
		}
	case 2:
		m.path = "/api/query/last"
		for range pick(d, []int{1, 2, 50, 300}) {
			p.add("timeseries", pick(d, []string{
				Light, "hostile.wide", "hostile.dense{host=web00001,dc=dc1}", "hostile.wide{host=*}", "nosuch",
			}))
		}
		p.flag(d.one(2), "resolve")
		if d.one(2) {
			p.add("back_scan", pick(d, []string{"1", "24", "8784", "2147483647", "-1"}))
		}
		if d.one(3) {
			p.add("tsuids", strings.Join(d.tsuids(d.metric(), d.size(1024)), ","))
		}
	case 3:
		m.path = "/api/uid/" + pick(d, []string{"assign", "rename", "uidmeta", "tsmeta", "nosuch"})
		p.add(pick(d, []string{"metric", "tagk", "tagv"}),
			strings.Repeat("hostile.new", 1+d.size(512))+strconv.Itoa(d.number))
		p.add("name", strings.Repeat("N", d.size(8192)))
		p.add("uid", pick(d, []string{"000001", "FFFFFFFF", strings.Repeat("0", d.size(8192))}))
		p.add("type", pick(d, []string{"metric", "tagk", "x"}))
	case 4:
		return d.note()
	case 5:
		m.path = pick(d, []string{"/api/dropcaches", "/dropcaches"})
	case 6:
		m.path = pick(d, []string{
			"/api/stats/query", "/api/stats", "/stats", "/metrics", "/api/config", "/api/aggregators",
			"/api/config/filters", "/api/version", "/s/nosuch", "/", "/healthz",
		})
	case 7:
		m.path = "/api/" + strings.Repeat(pick(d, []string{"a/", "%2e%2e/", "//"}), d.size(4096))
	default:
		m.method = "POST"
		m.path = pick(d, []string{
			"/api/suggest", "/api/search/lookup", "/api/query/last", "/api/uid/assign", "/api/uid/tsmeta",
			"/api/annotation/bulk",
		})
		n := d.size(1 << 20)
		m.body = []byte(pick(d, []string{strings.Repeat("[", n), strings.Repeat(`{"queries":[`, n/12+1),
			`{"type":"metrics","max":1e400}`, `[` + strings.Repeat(`{},`, n/3) + `{}]`,
			`{"metric":["` + strings.Repeat("hostile.many", n/12+1) + `"]}`,
			`{"queries":[` + strings.Repeat(`{"metric":"`+Light+`"},`, n/32) + `{}]}`}))
	}
	m.path = p.on(m.path)
	return m.request()
}

func (d *drawing) lookup() message {
	metric := pick(d, []string{"hostile.wide", "hostile.slow", "*", ""})
	tags := strings.Repeat(`{"key":"host","value":"*"},`, d.size(256)) + `{"key":"dc","value":"dc1"}`
	return message{
		method: "POST",
		path:   "/api/search/lookup",
		body: fmt.Appendf(nil, `{"metric":%q,"tags":[%s],"limit":%d,"useMeta":%t}`,
			metric, tags, d.r.IntN(2)*1000, d.one(2)),
	}
}

// note is an annotation of no series of the world, for those come with answers.
func (d *drawing) note() Request {
	text := strings.Repeat("n", d.size(512<<10))
	body := fmt.Sprintf(`{"startTime":%d,"tsuid":%q,"description":%q,"custom":{"a":%q}}`, Era+d.number,
		pick(d, []string{"", "FFFFFE000001000001", "zz", strings.Repeat("00", 500)}), text, text[:len(text)/2])
	m := message{method: pick(d, []string{"POST", "PUT", "DELETE"}), path: "/api/annotation", body: []byte(body)}
	switch d.r.IntN(4) {
	case 0:
		m.path, m.body = "/api/annotation/bulk", []byte("["+body+"]")
	case 1:
		m.method, m.path, m.body = "GET", "/api/annotations?start_time=1&end_time=9999999999", nil
	}
	return m.request()
}
