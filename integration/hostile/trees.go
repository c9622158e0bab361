package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// treeRoutes are the routes of trees, what is none, and the one that gives rules values to read.
var treeRoutes = []string{"/api/tree", "/api/tree/rule", "/api/tree/rules", "/api/tree/branch", "/api/tree/test",
	"/api/tree/collisions", "/api/tree/notmatched", "/api/tree/nosuch", "/api/uid/uidmeta"}

// Rules whose expressions are slow to compile or to apply, or cannot be applied.
var treeExpressions = []string{
	`\\.`, ".", "|", "([a-z]+)([0-9]+)", "(a?){200}", "[a-z]{1000}[a-z]{1000}", "(.*)(.*)(.*)(.*)", "((",
	"(?=x)", "(x+x+)+y", "",
}

// tree asks for, makes, changes and deletes trees, with rules for every new series.
func (d *drawing) tree() Request {
	m := message{
		method: pick(d, []string{"GET", "POST", "POST", "POST", "PUT", "DELETE", "PATCH"}),
		path:   pick(d, treeRoutes),
	}
	switch m.path {
	case "/api/tree":
		m.body = fmt.Appendf(nil, `{"treeId":%s,"name":%q,"notes":%q,"enabled":%t,"storeFailures":true,`+
			`"strictMatch":%t,"definition":%t}`, d.treeID(),
			strings.Repeat("n", d.size(2000)), strings.Repeat("x", d.size(1<<19)), !d.one(4), d.one(3), d.one(2))
	case "/api/tree/rule":
		m.body = []byte(d.treeRule())
	case "/api/tree/rules":
		if d.one(3) {
			m.body = []byte("[" + d.deepRules() + "]")
			break
		}
		m.body = []byte("[" + strings.Repeat(d.treeRule()+",", d.size(2000)) + d.treeRule() + "]")
	case "/api/uid/uidmeta":
		m.body = d.dotted()
	case "/api/tree/branch":
		// A branch's id is the tree's and, of each level, the hash of a name.
		m.path += "?" + pick(d, []string{
			"treeid=" + d.treeID(),
			"branch=" + fmt.Sprintf("%04X", 1+d.r.IntN(4)) + strings.Repeat("0001B9F1", d.size(2000)),
		})
	default:
		m.body = fmt.Appendf(nil, `{"treeId":%s,"tsuids":["%s"]}`,
			d.treeID(), strings.Join(d.tsuids(d.metric(), d.size(1024)), `","`))
	}
	if d.one(10) {
		m.body = m.body[:len(m.body)/2]
	}
	return m.request()
}

func (d *drawing) treeID() string {
	return pick(d, []string{
		"0", "1", "1", "2", "3", "65535", "65536", "-1", `"1"`, "null", "1e9", strconv.Itoa(d.r.IntN(100)),
	})
}

// treeRule is one rule.
func (d *drawing) treeRule() string {
	return fmt.Sprintf(`{"treeId":%d,"level":%d,"order":%d,"type":%q,"field":%q,"customField":"c","regex":"%s",`+
		`"separator":"%s","regexGroupIdx":%d,"displayFormat":%q}`,
		1+d.r.IntN(3), d.r.IntN(6), d.r.IntN(3)-d.r.IntN(2),
		pick(d, []string{"METRIC", "tagk", "TAGK_CUSTOM", "METRIC_CUSTOM", "x", ""}),
		pick(d, []string{"host", "dc", ""}), pick(d, treeExpressions), pick(d, treeExpressions),
		d.r.IntN(4)-d.r.IntN(2), strings.Repeat("{ovalue}{value}", d.size(200)-1))
}

// deepRules are those of a tree that yields as many and as long names as it can: one level after
// another cuts a value, and shows all of it for each part.
func (d *drawing) deepRules() string {
	id := 1 + d.r.IntN(3)
	kind := pick(d, []string{"METRIC", "METRIC_CUSTOM"})
	format := strings.Repeat("{ovalue}", pick(d, []int{0, 1, 32}))
	rules := make([]string, pick(d, []int{2, 60, 256}))
	for level := range rules {
		rules[level] = fmt.Sprintf(`{"treeId":%d,"level":%d,"type":%q,"field":"x","customField":"c",`+
			`"separator":"\\.","displayFormat":%q}`, id, level, kind, format)
	}
	return strings.Join(rules, ",")
}

// dotted describes a metric by a value that separators cut into many parts.
func (d *drawing) dotted() []byte {
	value := strings.Repeat(pick(d, []string{"a.", ".", "é.", "a"}), d.size(1024))
	return fmt.Appendf(nil, `{"type":"metric","uid":"%06X","custom":{"c":"%sz"}}`, 1+d.r.IntN(20), value)
}
