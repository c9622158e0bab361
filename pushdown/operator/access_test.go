package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
)

// narrow is a schema with short keys: UIDs of one byte, but values of two.
var narrow = encoding.Schema{SaltBuckets: 1, MetricWidth: 1, TagKWidth: 1, TagVWidth: 2, MaxTags: 8}

// narrowPart is a part of some hours of metric 1, whose rows are all of full hours.
func narrowPart(hours int64, tags ...scanplan.TagPredicate) *scanplan.Part {
	p := operatortest.Plan(narrow, encoding.UID{1}, base, base+hours*3600)
	p.Tags, p.SplitOffHour = tags, true
	return whole(p)
}

// in is a predicate that admits n values of a tag, from first on.
func in(k byte, first, n int) scanplan.TagPredicate {
	t := scanplan.TagPredicate{TagK: encoding.UID{k}, Op: scanplan.In}
	for v := first; v < first+n; v++ {
		t.Values = append(t.Values, encoding.UID{byte(v >> 8), byte(v)})
	}
	return t
}

// cutTo is a part between two keys of a part, which are in hex; the hours are called A, B and C. "" leaves the end
// open.
func cutTo(part *scanplan.Part, start, stop string) *scanplan.Part {
	key := func(s string) (k scanplan.HexBytes) {
		for name, hour := range map[string]uint32{"A": base, "B": base + 3600, "C": base + 7200} {
			s = strings.ReplaceAll(s, name, fmt.Sprintf("01%08x", hour))
		}
		fmt.Sscanf(s, "%x", &k)
		return k
	}
	part.Range = scanplan.KeyRange{Start: key(start), Stop: key(stop)}
	return part
}

// withTSUIDs adds series of a metric to the plan of a part: n, each with the tag that is given, and those after
// the first with another tag, too.
func withTSUIDs(part *scanplan.Part, metric, k byte, n int) *scanplan.Part {
	for v := range n {
		tags := []byte{k, byte(v >> 8), byte(v)}
		if v > 0 {
			tags = append(tags, k+1, 0, 9)
		}
		part.Plan.TSUIDs = append(part.Plan.TSUIDs, slices.Concat([]byte{metric}, tags))
	}
	return part
}

// describePath is an access path as text. Of more than four ranges it is their number.
func describePath(a operator.Access) string {
	var s strings.Builder
	s.WriteString(a.Reason)
	if n := len(a.Filter.Ranges); n > 4 {
		fmt.Fprintf(&s, "; ranges: %d", n)
	} else {
		for _, r := range a.Filter.Ranges {
			fmt.Fprintf(&s, "; %x-%x", r.Start, r.Stop)
		}
	}
	if p := a.Filter.Pattern; p != nil {
		fmt.Fprintf(&s, "; pattern %d %d %d", p.Head, p.NameLen, p.ValueLen)
		for _, w := range p.Wants {
			if len(w.Values) > 4 {
				fmt.Fprintf(&s, " %x=%d values", w.Name, len(w.Values))
			} else {
				fmt.Fprintf(&s, " %x=%x", w.Name, w.Values)
			}
		}
		if p.Exact {
			s.WriteString(" exact")
		}
	}
	if a.Nothing {
		s.WriteString("; nothing")
	}
	if a.Few {
		s.WriteString("; few")
	}
	if a.ProbedRanges > 0 {
		fmt.Fprintf(&s, "; probed %d", a.ProbedRanges)
	}
	return strings.NewReplacer("0150e22700", "A", "0150e23510", "B", "0150e24320", "C").Replace(s.String())
}

// path is a part, what is known of its key prefixes, and its access path.
type path struct {
	part  *scanplan.Part
	cache *access.PrefixCache
	want  string
}

// checkPaths checks access paths, those of whole scans with filter.
func checkPaths(t *testing.T, filter bool, paths []path) {
	t.Helper()
	for i, c := range paths {
		a := operator.ChooseFilter(c.part)
		if !filter {
			a = operator.ChooseAccess(c.part, c.cache)
		}
		if got := describePath(a); got != c.want {
			t.Errorf("path %d, of %s to %s:\n got %s\nwant %s", i, c.part.Range.Start, c.part.Range.Stop, got, c.want)
		}
	}
}

func offHour(p *scanplan.Part) *scanplan.Part { p.Plan.SplitOffHour = false; return p }

// Each shape of a plan has its access path: which ranges it seeks to, and which pattern the store applies. Beyond the
// bounds it is the next cheaper one.
func TestChooseAccess_paths(t *testing.T) {
	present := func(k byte) scanplan.TagPredicate { return scanplan.TagPredicate{TagK: encoding.UID{k}} }
	exact := func(p *scanplan.Part) *scanplan.Part { p.Plan.Exact = true; return p }
	checkPaths(t, true, []path{
		{narrowPart(2), nil, "all rows: no tag is restricted to some values"},
		{narrowPart(2, in(2, 1, 0), in(3, 1, 1)), nil, "no tag value is admitted; nothing"},
		{narrowPart(2, in(1, 5, 1)), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; B010005-B010006; few"},
		{narrowPart(2, in(1, 5, 2)), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010005-A010007; B010005-B010007; few"},
		{narrowPart(2, in(1, 5, 1), present(3)), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; B010005-B010006; few"},
		{exact(narrowPart(2, in(3, 5, 1))), nil,
			"2 ranges of hour and tag 03: no other tag can come before it; A030005-A03000500; " +
				"B030005-B03000500; few"},
		{exact(narrowPart(1, in(2, 5, 1), present(3))), nil,
			"1 ranges of hour and tag 02: no other tag can come before it; A020005-A020006; " +
				"pattern 5 1 2 02=[0005] 03=[] exact; few"},
		{exact(narrowPart(1, present(2), in(3, 5, 1))), nil,
			"2 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 2 tags and 1 values; " +
				"A-A03; A030005-A030006; pattern 5 1 2 02=[] 03=[0005] exact"},
		{narrowPart(20_000, in(1, 5, 1)), nil,
			"20000 ranges of hour and tag 01: its UID is the smallest; ranges: 20000; few"},
		{narrowPart(20_001, in(1, 5, 1)), nil, "key pattern of 1 tags and 1 values; pattern 5 1 2 01=[0005]"},
		{narrowPart(2, in(3, 5, 1)), nil,
			"4 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 1 tags and 1 values; " +
				"A-A03; A030005-A030006; B-B03; B030005-B030006; pattern 5 1 2 03=[0005]"},
		{narrowPart(1, in(2, 5, 1), in(3, 5, 1)), nil,
			"2 ranges that can hold the wanted tags, known prefixes: 2; key pattern of 2 tags and 2 values; " +
				"A-A02; A020005-A020006; pattern 5 1 2 02=[0005] 03=[0005]"},
		{narrowPart(10, in(3, 1, 4096)), nil, "key pattern of 1 tags and 4096 values; pattern 5 1 2 03=4096 values"},
		{narrowPart(10, in(3, 1, 4097)), nil, "all rows: 4097 tag values are too many for a pattern (at most 4096)"},

		{withTSUIDs(withTSUIDs(narrowPart(1), 1, 5, 2), 2, 5, 1), nil,
			"2 rows by key: TSUIDs are given; A050000-A05000000; A050001060009-A05000106000900; few"},
		{withTSUIDs(narrowPart(1), 2, 5, 1), nil, "no TSUID is of the plan's metric; nothing"},
		{withTSUIDs(narrowPart(10), 1, 5, 2000), nil, "20000 rows by key: TSUIDs are given; ranges: 20000"},
		{withTSUIDs(narrowPart(10), 1, 5, 2001), nil,
			"20010 rows are too many to name by key (at most 20000); key pattern of 1 tags and 2001 values; " +
				"pattern 5 1 2 05=2001 values"},
		{withTSUIDs(narrowPart(10, in(5, 1, 1), in(6, 1, 1)), 1, 5, 2001), nil,
			"20010 rows are too many to name by key (at most 20000); key pattern of 1 tags and 2001 values; " +
				"pattern 5 1 2 05=2001 values"},
		{withTSUIDs(narrowPart(1), 1, 5, 512), nil, "512 rows by key: TSUIDs are given; ranges: 512; few"},
		{withTSUIDs(narrowPart(1), 1, 5, 513), nil, "513 rows by key: TSUIDs are given; ranges: 513"},
	})
}

// A part that is cut inside an hour, or has no end, seeks to those keys of its plan that are in it.
func TestChooseAccess_cut(t *testing.T) {
	checkPaths(t, true, []path{
		{cutTo(narrowPart(2, in(1, 5, 1)), "A010006", "B010006"), nil,
			"1 ranges of hour and tag 01: its UID is the smallest; B010005-B010006; few"},
		{cutTo(narrowPart(2, in(1, 5, 2)), "A010006", "B010006"), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010006-A010007; B010005-B010006; few"},
		{cutTo(narrowPart(2, in(1, 5, 1)), "A", "B"), nil,
			"1 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; few"},
		{cutTo(narrowPart(2, in(1, 5, 1)), "A", ""), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; B010005-B010006; few"},
		{cutTo(narrowPart(2, in(1, 5, 1)), "A", "02"), nil,
			"2 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; B010005-B010006; few"},
		{cutTo(narrowPart(2, in(3, 5, 1)), "A", ""), nil,
			"4 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 1 tags and 1 values; " +
				"A-A03; A030005-A030006; B-B03; B030005-B030006; pattern 5 1 2 03=[0005]"},
		{cutTo(narrowPart(2, in(1, 5, 1)), "A010006", "A010007"), nil, "no wanted key is in the part; nothing; few"},
		{cutTo(narrowPart(2, in(2, 5, 1), in(3, 5, 1)), "A04", "A05"), nil, "no wanted key is in the part; nothing"},
		{cutTo(offHour(narrowPart(2, in(1, 5, 1))), "A010006", "A010007"), nil,
			"no wanted key is in the part; nothing; few"},
		{cutTo(offHour(narrowPart(2, in(1, 5, 1))), "A010006", ""), nil,
			"1 ranges of hour and tag 01: its UID is the smallest; 0150e22701-B; B010005-B010006; " +
				"0150e23511-C; few"},
		{withTSUIDs(cutTo(narrowPart(1), "A", ""), 1, 5, 1), nil,
			"1 rows by key: TSUIDs are given; A050000-A05000000; few"},
		{withTSUIDs(cutTo(narrowPart(30_000), "A", "01552cc900"), 1, 5, 1), nil,
			"20000 rows by key: TSUIDs are given; ranges: 20000"},
		{withTSUIDs(cutTo(narrowPart(30_000), "A", "01552cc901"), 1, 5, 1), nil,
			"20001 rows are too many to name by key (at most 20000); key pattern of 1 tags and 1 values; " +
				"pattern 5 1 2 05=[0000]"},
		{withTSUIDs(cutTo(narrowPart(30_000), "A", "01552cc90005"), 1, 5, 1), nil,
			"20001 rows are too many to name by key (at most 20000); key pattern of 1 tags and 1 values; " +
				"pattern 5 1 2 05=[0000]"},
	})
}

// What is known of key prefixes is used if it makes few enough ranges, and the pattern is left out only if no row is
// between known prefixes.
func TestChooseAccess_known(t *testing.T) {
	known := func(part *scanplan.Part, prefixes ...int) *access.PrefixCache {
		cache := access.NewPrefixCache()
		var all []*access.Prefixes
		for i, tag := range access.Wanted(&part.Plan) {
			p := access.NewPrefixes(narrow, tag.TagK)
			for v := range prefixes[i] {
				p.Add([]byte{1, byte(v >> 8), byte(v)})
			}
			all = append(all, p)
		}
		cache.EndLearning(access.CacheKey(part), all, nil)
		return cache
	}
	read := func(part *scanplan.Part, rows int64) *access.PrefixCache {
		cache := access.NewPrefixCache()
		cache.Record(access.CacheKey(part), access.ScanCost{From: base, To: base + 3600, Scanned: rows, Wanted: rows})
		return cache
	}
	first, second := narrowPart(1, in(1, 5, 1)), narrowPart(1, in(2, 5, 1))
	both, exact := narrowPart(1, in(2, 5, 1), in(3, 5, 1)), narrowPart(1, in(2, 5, 1), in(3, 5, 1))
	exact.Plan.Exact = true
	many, values := narrowPart(60, in(2, 5, 1)), narrowPart(60, in(2, 5, 1), in(3, 5, 400))
	checkPaths(t, false, []path{
		{first, read(first, 32), "1 ranges of hour and tag 01: its UID is the smallest; A010005-A010006; few"},
		{first, read(first, 33), "1 ranges of hour and tag 01: its UID is the smallest; A010005-A010006"},
		{second, read(second, 32),
			"2 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 1 tags and 1 values; " +
				"A-A02; A020005-A020006; pattern 5 1 2 02=[0005]; few"},
		{second, read(second, 33),
			"2 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 1 tags and 1 values; " +
				"A-A02; A020005-A020006; pattern 5 1 2 02=[0005]"},
		{second, known(second, 1),
			"4 ranges that can hold the wanted tags, known prefixes: 2; no row lay elsewhere; A-A01000002; " +
				"A010000020005-A010000020006; A010001-A02; A020005-A020006"},
		{both, known(both, 1, 1),
			"4 ranges that can hold the wanted tags, known prefixes: 4; no row lay elsewhere; A-A01000002; " +
				"A010000020005-A010000020006; A010001-A02; A020005-A020006"},
		{exact, known(exact, 1, 1),
			"4 ranges that can hold the wanted tags, known prefixes: 4; key pattern of 2 tags and 2 values; " +
				"A-A01000002; A010000020005-A010000020006; A010001-A02; A020005-A020006; " +
				"pattern 5 1 2 02=[0005] 03=[0005] exact"},
		{many, known(many, 165),
			"19920 ranges that can hold the wanted tags, known prefixes: 166; no row lay elsewhere; " +
				"ranges: 19920"},
		{many, known(many, 166),
			"120 ranges that can hold the wanted tags, known prefixes: 1; key pattern of 1 tags and 1 values; " +
				"ranges: 120; pattern 5 1 2 02=[0005]"},
		{values, known(values, 1, 1),
			"240 ranges that can hold the wanted tags, known prefixes: 2; " +
				"key pattern of 2 tags and 401 values; ranges: 240; pattern 5 1 2 02=[0005] 03=400 values"},
	})
}

// Where a part has many hours a probe decides, unless an hour alone has too many ranges.
func TestChooseAccess_probed(t *testing.T) {
	checkPaths(t, false, []path{
		{narrowPart(2048, in(1, 5, 1)), nil,
			"2048 ranges of hour and tag 01: its UID is the smallest; ranges: 2048; few"},
		{narrowPart(2049, in(1, 5, 1)), nil,
			"1 ranges an hour where hours have many rows, else key pattern of 1 tags and 1 values; " +
				"pattern 5 1 2 01=[0005]; probed 1"},
		{narrowPart(2049, in(2, 5, 3), in(3, 5, 1)), nil,
			"6 ranges an hour where hours have many rows, else key pattern of 2 tags and 4 values; " +
				"pattern 5 1 2 02=[0005 0006 0007] 03=[0005]; probed 6"},
		{narrowPart(2049, in(2, 5, 0), in(3, 5, 1)), nil, "no tag value is admitted; nothing"},
		{withTSUIDs(narrowPart(2049), 1, 5, 2), nil,
			"2 ranges an hour where hours have many rows, else key pattern of 1 tags and 2 values; " +
				"pattern 5 1 2 05=[0000 0001]; probed 2"},
		{withTSUIDs(narrowPart(2049), 2, 5, 2), nil, "no TSUID is of the plan's metric; nothing"},
		{withTSUIDs(narrowPart(64), 1, 5, 19_999), nil,
			"19999 ranges an hour where hours have many rows, else all rows: 19999 tag values are too many for " +
				"a pattern (at most 4096); probed 19999"},
		{withTSUIDs(narrowPart(64), 1, 5, 20_000), nil,
			"1280000 rows are too many to name by key (at most 20000); " +
				"all rows: 20000 tag values are too many for a pattern (at most 4096)"},
		{cutTo(narrowPart(2049, in(1, 5, 1)), "A", ""), nil,
			"2049 ranges of hour and tag 01: its UID is the smallest; ranges: 2049; few"},
	})
}
