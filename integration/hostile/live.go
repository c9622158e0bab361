package hostile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// live is a WebSocket with live queries.
func (d *drawing) live() Request {
	m := message{method: "GET", path: "/api/ws"}
	q := Request{Door: Socket, Manner: pick(d, []Manner{Whole, Unread, Unread, Leaves, Slow})}
	switch d.r.IntN(7) {
	case 0: // heavy ones
		for i := range pick(d, []int{1, 2, 10, 120}) {
			q.Messages = append(q.Messages, d.subscribe(strconv.Itoa(i), pick(d, heavyLive)))
		}
	case 1: // come and go
		for i := range d.size(300) {
			id := strconv.Itoa(i % 7)
			q.Messages = append(q.Messages, d.subscribe(id, pick(d, lightLive)),
				fmt.Sprintf(`{"type":"unsubscribe","id":%q}`, id))
		}
	case 2: // nonsense
		for range d.size(100) {
			q.Messages = append(q.Messages, pick(d, []string{"", "[]", `{"type":"dance","id":"a"}`,
				`{"type":"subscribe","id":""}`, `{"type":"subscribe","id":"` + strings.Repeat("i", 300) + `"}`,
				`{"type":"subscribe","id":"a","query":[]}`,
				`{"type":"subscribe","id":"a","exp":{"time":[]},"format":"arrow"}`,
				`{"type":"subscribe","id":"a","exp":{},"query":{}}`,
				`{"type":"subscribe","id":"a","exp":{"time":{"start":1,"aggregator":"sum"},` +
					`"metrics":[{"id":"a","metric":"` + Light + `"}],"expressions":[{"id":"e","expr":"` +
					strings.Repeat("(", 5000) + `"}]}}`,
				`{"type":"subscribe","id":"a","query":` + strings.Repeat("[", 5000) + `}`,
				strings.Repeat("x", d.size(80<<10)),
				`{"type":"subscribe","id":"a","query":{"start":"1h-ago","queries":[{"aggregator":"sum",` +
					`"metric":"nosuch"}]},"resume":{"epoch":"x","seq":18446744073709551615}}`}))
		}
	case 3, 4: // expressions
		for i := range pick(d, []int{1, 2, 10, 120}) {
			q.Messages = append(q.Messages, d.subscribeExp(strconv.Itoa(i)))
		}
	default:
		for i := range d.size(100) {
			q.Messages = append(q.Messages, d.subscribe(strconv.Itoa(i), pick(d, append(lightLive, heavyLive...))))
		}
	}
	m.set("Upgrade", "websocket")
	m.header = append(m.header, [2]string{"Sec-WebSocket-Version", "13"},
		[2]string{"Sec-WebSocket-Key", "aG9zdGlsZWhvc3RpbGVoISEh"},
		[2]string{"Sec-WebSocket-Protocol", "downpour.v1"})
	// Every message says that its connection closes; the upgrade needs another word there.
	q.Wire = []byte(strings.Replace(string(m.wire()), "Connection: close", "Connection: Upgrade", 1))
	return q
}

// Live queries: an aggregator, a downsampling or none, a metric, a start.
var (
	lightLive = []sub{
		{aggregator: "sum", metric: Light}, {aggregator: "avg", downsample: "1m-avg", metric: Light},
		{aggregator: "max", downsample: "1h-max", metric: "hostile.counter"},
	}
	heavyLive = []sub{
		{aggregator: "none", metric: "hostile.dense"}, {aggregator: "none", metric: "hostile.wide"},
		{aggregator: "sum", downsample: "1s-sum-zero", metric: two},
		{aggregator: "none", downsample: "1s-avg-nan", metric: "hostile.dense"},
		{aggregator: "p99", downsample: "1ms-sum-zero", metric: "hostile.milli"},
		{aggregator: "none", rate: "rate", metric: "hostile.dense"},
		{aggregator: "sum", downsample: "1h-sum-zero", metric: "hostile.slow"},
		{aggregator: "none", downsample: "0all-sum", metric: "hostile.wide"},
	}
)

func (d *drawing) subscribe(id string, s sub) string {
	start := pick(d, []string{"1", strconv.Itoa(Era), strconv.Itoa(Era + 3600)})
	body := map[string]any{"start": start, "queries": []json.RawMessage{json.RawMessage(s.object(false))}}
	if d.one(4) {
		body["end"] = strconv.Itoa(Era + 36_000)
	}
	if d.one(2) {
		body["msResolution"] = true
	}
	m := map[string]any{"type": "subscribe", "id": id, "query": body, "format": pick(d, []string{"json", "arrow"})}
	text, _ := json.Marshal(m) // texts and flags
	return string(text)
}
