package hostile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// subscribeExp subscribes to expressions that cost much, or that can never be answered.
func (d *drawing) subscribeExp(id string) string {
	time := map[string]any{
		"start":      pick(d, []string{"1", strconv.Itoa(Era), strconv.Itoa(Era + 3600)}),
		"aggregator": pick(d, []string{"sum", "sum", "none", "p99"}),
	}
	if d.one(4) {
		time["end"] = strconv.Itoa(Era + 36_000)
	}
	if d.one(2) {
		time["downsampler"] = map[string]any{
			"interval":   pick(d, []string{"1ms", "1s", "1m", "1h"}),
			"aggregator": "avg",
		}
	}

	var metrics []any
	var ids []string
	letter := "m"
	if d.one(7) { // expressions find no variable in upper case
		letter = "M"
	}
	for i := range pick(d, []int{1, 2, 2, 20, 64, 300}) {
		ids = append(ids, fmt.Sprint(letter, i))
		m := map[string]any{
			"id":         ids[i],
			"metric":     pick(d, append(heavyLive, lightLive...)).metric,
			"aggregator": pick(d, []string{"sum", "avg", "max"}),
		}
		if d.one(2) {
			m["filter"] = "f"
		}
		metrics = append(metrics, m)
	}
	body := map[string]any{"time": time, "metrics": metrics, "expressions": d.liveExpressions(ids),
		"filters": []any{map[string]any{
			"id":   "f",
			"tags": []any{map[string]any{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": true}},
		}}}
	if d.one(3) {
		body["outputs"] = []any{map[string]any{"id": "e0"}, map[string]any{"id": ids[0]}, map[string]any{"id": "e0"}}
	}
	m := map[string]any{"type": "subscribe", "id": id, "exp": body, "format": pick(d, []string{"json", "arrow"})}
	text, _ := json.Marshal(m) // texts and flags
	return string(text)
}

// liveExpressions are expressions e0, e1 and so on over metrics with some ids.
func (d *drawing) liveExpressions(ids []string) (all []any) {
	add := func(text string) {
		e := map[string]any{"id": "e" + strconv.Itoa(len(all)), "expr": text}
		if d.one(2) {
			e["join"] = map[string]any{
				"operator":     pick(d, []string{"union", "union", "intersection"}),
				"useQueryTags": d.one(2),
			}
		}
		all = append(all, e)
	}
	switch some := pick(d, ids); d.r.IntN(5) {
	case 0: // all metrics in one
		add(strings.Join(ids, " + "))
	case 1: // each uses the one before; a circle closes where e0 uses e1
		add(some + pick(d, []string{"", "", "", " + e1"}))
		for i := range d.size(300) {
			add(fmt.Sprintf("e%d * 2 - %s", i, pick(d, ids)))
		}
	case 2: // deep, in a message that may be too long
		deep := d.size(40 << 10)
		add(strings.Repeat("(", deep) + some + strings.Repeat(")", deep))
	case 3: // long
		add(some + strings.Repeat(" / "+some, d.size(20<<10)))
	default: // many tables
		for range 1 + d.size(200) {
			add(pick(d, ids) + " > " + pick(d, ids) + " ? " + some + " : 1e308 * " + some)
		}
	}
	return all
}
