package differential

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"downpour/encoding"
)

// TagKeys are the tag keys that series have, and AbsentKey one that has a UID
// but no series.
var (
	TagKeys   = []string{"host", "dc", "task"}
	AbsentKey = "rack"
)

// tagValues are the values of each key. Some differ in case alone, some are
// prefixes of others, some are what wildcards with inner stars stumble over.
var tagValues = map[string][]string{
	"host": {"web01", "web02", "Web03", "db-01", "db-02", "DB-01", "a", "ab", "ba", "xbxaxb"},
	"dc":   {"lga", "sjc", "LGA", "ams1"},
	"task": {"a", "web01", "cron.d", "b_b"},
}

// AbsentValue is a tag value that has a UID but no series.
const AbsentValue = "absent"

// nastyBytes are line ends, regular expressions' own characters, the two that
// end a quotation in Java's, and the limits of signed and unsigned bytes.
var nastyBytes = []byte{0x00, 0x01, '\n', '\r', 'Q', 'E', '\\', '.', '(', '[', '*', 0x7F, 0x80, 0xFF}

// names gives every name a UID.
type names struct {
	schema   encoding.Schema
	mappings []encoding.UIDMapping
	uids     map[encoding.UIDKind]map[string]encoding.UID
}

// newNames gives all metrics, tag keys and tag values UIDs, AbsentKey and AbsentValue too.
func newNames(r *rand.Rand, schema encoding.Schema) *names {
	n := &names{schema: schema, uids: map[encoding.UIDKind]map[string]encoding.UID{}}
	for _, m := range metricKinds {
		n.assign(r, encoding.UIDMetric, m.name)
	}
	for _, k := range append(slices.Clone(TagKeys), AbsentKey) {
		n.assign(r, encoding.UIDTagK, k)
	}
	n.assign(r, encoding.UIDTagV, AbsentValue)
	for _, k := range TagKeys {
		for _, v := range tagValues[k] {
			n.assign(r, encoding.UIDTagV, v)
		}
	}
	return n
}

// assign draws UIDs until it meets a free one.
func (n *names) assign(r *rand.Rand, kind encoding.UIDKind, name string) {
	if n.uids[kind] == nil {
		n.uids[kind] = map[string]encoding.UID{}
	}
	if n.uids[kind][name] != nil { // some tag keys have a value in common
		return
	}
	for {
		uid := make(encoding.UID, n.schema.UIDWidth(kind))
		for i := range uid {
			uid[i] = nastyBytes[r.IntN(len(nastyBytes))]
			if r.IntN(3) == 0 {
				uid[i] = byte(r.IntN(256))
			}
		}
		// A metric UID of zeros is that of annotations of no series.
		if encoding.UIDNumber(uid) != 0 && !n.taken(kind, uid) && !misquoted(uid) {
			n.uids[kind][name] = uid
			n.mappings = append(n.mappings, encoding.UIDMapping{Kind: kind, Name: name, UID: uid})
			return
		}
	}
}

// misquoted reports whether row keys with a UID may hold the bytes \EE, 5C 45 45, inside of it
// or where it meets another UID. OpenTSDB quotes the second E once too often and finds no such
// row. Source: QueryUtil.addId.
func misquoted(uid encoding.UID) bool {
	return bytes.Contains(uid, []byte(`\EE`)) || bytes.HasPrefix(uid, []byte("EE")) ||
		bytes.HasSuffix(uid, []byte(`\E`))
}

func (n *names) taken(kind encoding.UIDKind, uid encoding.UID) bool {
	for _, other := range n.uids[kind] {
		if string(other) == string(uid) {
			return true
		}
	}
	return false
}

// tags is the tag part of a row key.
func (n *names) tags(tags map[string]string) []byte {
	var pairs []encoding.TagPair
	for k, v := range tags {
		pairs = append(pairs, encoding.TagPair{K: n.uids[encoding.UIDTagK][k], V: n.uids[encoding.UIDTagV][v]})
	}
	return n.schema.AppendTags(nil, pairs)
}

// tsuid is the hex of a series' TSUID.
func (n *names) tsuid(metric string, tags map[string]string) string {
	return fmt.Sprintf("%X%X", []byte(n.uids[encoding.UIDMetric][metric]), n.tags(tags))
}

// cells are the rows of the UID table: each name both ways, and the counters.
func (n *names) cells() (cells []Cell) {
	last := map[encoding.UIDKind]uint64{}
	for _, m := range n.mappings {
		forward, err1 := m.Forward()
		reverse, err2 := m.Reverse()
		if err1 != nil || err2 != nil {
			panic(fmt.Sprint(err1, err2)) // the names above are ISO-8859-1
		}
		cells = append(cells, Cell{Cell: forward, Timestamp: firstWrite}, Cell{Cell: reverse, Timestamp: firstWrite})
		last[m.Kind] = max(last[m.Kind], encoding.UIDNumber(m.UID))
	}
	for _, kind := range slices.Sorted(maps.Keys(last)) {
		cells = append(cells, Cell{Timestamp: firstWrite, Cell: encoding.Cell{
			Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: kind.Qualifier(),
			Value: encoding.AppendCounter(nil, int64(last[kind])),
		}})
	}
	return cells
}
