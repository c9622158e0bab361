package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Name is a name of a series, with the custom fields of its UIDMeta; these are needed only
// if a tree's rules read them.
type Name struct {
	Text   string
	Custom map[string]string
}

// Tag is a tag of a series.
type Tag struct{ Key, Value Name }

// Series is what rules read of a series.
type Series struct {
	TSUID  string // hex, in upper case
	Metric Name
	Tags   []Tag // in the order of the TSUID
}

// Placement says where a tree puts a series.
type Placement struct {
	// Path are the names of the branches below the root, Leaf is the name of the leaf of
	// the last one. A series with a leaf and no path has one name only and no place.
	Path []string
	Leaf string
	// NotMatched are the rules whose levels yielded no name, joined by blanks.
	NotMatched string
	// Refused says which bound the series is beyond; empty for none.
	Refused string
	// Work is what the expressions have cost, in steps times bytes.
	Work int
	// Messages are the steps, as /api/tree/test shows them; nil unless requested.
	Messages []string
	// named is set if the rules yielded two names: branch and leaf.
	named bool
}

// Stored reports whether a tree keeps a series that has this placement.
func (p *Placement) Stored(strict bool) bool {
	return p.named && p.Refused == "" && !(strict && p.NotMatched != "")
}

// Missing is why a series is not kept, as the tree table has it: the rules whose levels
// yielded no name, and the bound.
func (p *Placement) Missing() string {
	if p.Refused == "" {
		return p.NotMatched
	}
	return strings.TrimPrefix(p.NotMatched+" "+p.Refused, " ")
}

// walk applies a tree's rules to one series.
type walk struct {
	series  *Series
	rule    *rule    // the one being applied
	name    string   // what it has yielded, empty for nothing
	parts   []string // what a separator has made, and the next one; nil between values
	next    int
	refused string
	work    int // of regular expressions, in steps times bytes
	most    int // of that
	size    int // of what levels have yielded, see MaxNames
	explain bool
	out     []string // messages
	told    int      // their size, see MaxMessages
}

// Place applies the rules to a series. work bounds what their expressions may cost, in steps
// times bytes, see MaxWork. explain asks for messages. Source: TreeBuilder.processRuleset.
func (c *Compiled) Place(s *Series, work int, explain bool) Placement {
	w := &walk{series: s, most: work, explain: explain}
	names, notMatched := w.names(c.levels)
	p := Placement{NotMatched: strings.Join(notMatched, " "), Refused: w.refused, Work: w.work}
	if w.refused == "" {
		p.Path, p.Leaf, p.named = w.join(names, fmt.Sprintf("ID: [%04X] Name: [%s]", c.ID, Root))
		p.Refused = beyond(p.Path, p.Leaf)
	}

	w.told = 0 // what became of the series is reported in any case
	switch {
	case p.Refused != "":
		w.say("TSUID is left out, it has %s: %s", p.Refused, s.TSUID)
	case c.StrictMatch && p.NotMatched != "":
		w.say("TSUID failed to match one or more rule levels, will not add: %s", s.TSUID)
	}
	p.Messages = w.out
	return p
}

// beyond returns which bound a path is beyond, or "".
func beyond(path []string, leaf string) string {
	bytes := len(leaf)
	for _, name := range path {
		bytes += len(name)
	}
	switch {
	case len(path) > MaxDepth:
		return fmt.Sprintf("more than %d branches", MaxDepth)
	case bytes > MaxPath:
		return fmt.Sprintf("names of more than %d bytes", MaxPath)
	}
	return ""
}

// say adds a message; of those beyond MaxMessages one that says "…".
func (w *walk) say(format string, args ...any) {
	if !w.explain || w.told > MaxMessages {
		return
	}
	m := fmt.Sprintf(format, args...)
	if w.told += nameBytes + len(m); w.told > MaxMessages {
		m = "…"
	}
	w.out = append(w.out, m)
}

// names returns one name for each branch, empty where a level yielded none, and of each such
// level the rule that was tried last. A level is applied once more for each further part that
// a separator has made.
func (w *walk) names(levels [][]rule) (names, notMatched []string) {
	for at := 0; at < len(levels) && w.refused == ""; {
		w.name = ""
		for i := range levels[at] {
			w.rule = &levels[at][i]
			w.say("Processing rule: %s", w.rule)
			if w.apply(); w.name != "" || w.refused != "" {
				break
			}
		}

		names = append(names, w.name)
		w.size += nameBytes + len(w.name)
		if w.name == "" {
			notMatched = append(notMatched, w.rule.String())
			w.size += nameBytes + len(notMatched[len(notMatched)-1])
		}
		if w.size > MaxNames && w.refused == "" {
			w.refused = fmt.Sprintf("names of more than %d bytes in all its levels", MaxNames)
		}
		if w.parts == nil || w.next >= len(w.parts) {
			w.parts, w.next = nil, 0
			at++
		}
	}
	return names, notMatched
}

// apply lets the rule read its value of the series.
func (w *walk) apply() {
	switch w.rule.Type {
	case Metric:
		w.value(w.series.Metric.Text)
	case MetricCustom:
		w.custom(w.series.Metric)
	case TagK:
		i := slices.IndexFunc(w.series.Tags, func(t Tag) bool { return t.Key.Text == w.rule.Field })
		if i < 0 || w.series.Tags[i].Value.Text == "" {
			w.say("No match on tagk [%s] for rule: %s", w.rule.Field, w.rule)
			return
		}
		w.say("Matched tagk [%s] for rule: %s", w.rule.Field, w.rule)
		w.value(w.series.Tags[i].Value.Text)
	case TagKCustom:
		w.tagCustom("tagk", func(t Tag) Name { return t.Key })
	case TagVCustom:
		w.tagCustom("tagv", func(t Tag) Name { return t.Value })
	}
}

// tagCustom reads a custom field of the tag key, or tag value, that the rule names.
func (w *walk) tagCustom(kind string, of func(Tag) Name) {
	i := slices.IndexFunc(w.series.Tags, func(t Tag) bool { return of(t).Text == w.rule.Field })
	if i < 0 {
		w.say("No match on %s [%s] for rule: %s", kind, w.rule.Field, w.rule)
		return
	}
	w.say("Matched %s [%s] for rule: %s", kind, w.rule.Field, w.rule)
	w.custom(of(w.series.Tags[i]))
}

// custom lets the rule read its custom field of a name.
func (w *walk) custom(n Name) {
	value, ok := n.Custom[w.rule.CustomField]
	if !ok {
		w.say("No match on custom tag [%s] for rule: %s", w.rule.CustomField, w.rule)
		return
	}
	w.value(value) // in OpenTSDB, too, its messages come before that of the match
	w.say("Matched custom tag [%s] for rule: %s", w.rule.CustomField, w.rule)
}

// value makes the name of a value: by the regex, by the separator, or whole.
func (w *walk) value(v string) {
	work := w.rule.steps * len(v)
	// Only the first part searches the value: again from each place where the separator was
	// found, which counts as 16 searches.
	if w.rule.separator != nil && w.parts == nil {
		work *= 16
	}
	// Without an expression only the name that results is bounded, see setName.
	if w.rule.steps > 0 && len(v) > MaxValue {
		w.refused = fmt.Sprintf("a value of more than %d bytes", MaxValue)
		return
	}
	if w.work+work > w.most {
		w.refused = "rules whose expressions take too long"
		return
	}

	w.work += work
	switch {
	case w.rule.regex != nil:
		w.extract(v)
	case w.rule.separator != nil:
		w.cut(v)
	default:
		w.setName(v, v)
	}
}

// extract makes the name of a group of the regex. Source: TreeBuilder.processRegexRule.
func (w *walk) extract(v string) {
	found := w.rule.regex.FindStringSubmatchIndex(v)
	if found == nil {
		return
	}

	// RegexGroupIdx counts from 0, while group 0 of an expression is all that it matched.
	groups, i := len(found)/2-1, w.rule.RegexGroupIdx+1
	switch {
	case i > groups:
		w.say("Regex group index [%d] for rule %s was out of bounds [%d]", w.rule.RegexGroupIdx, w.rule, groups)
	case found[2*i] == found[2*i+1]: // also a group that took no part
		w.say("Extracted value for rule %s was null or empty", w.rule)
	default:
		w.setName(v, v[found[2*i]:found[2*i+1]])
	}
}

// cut makes the name of the next part of a value. Source: TreeBuilder.processSplit.
func (w *walk) cut(v string) {
	if w.parts == nil {
		// A custom field may be empty; it has no part that could be a name.
		if v == "" {
			return
		}
		if w.split(v); w.refused != "" {
			return
		}
		if len(w.parts) == 0 {
			w.say("Separator did not match, created an empty list on rule: %s", w.rule)
		}
	}
	// Another rule of the level may have taken the last part.
	if w.next < len(w.parts) {
		w.setName(v, w.parts[w.next])
		w.next++
	}
}

// split cuts a value as Java does: an empty part at the beginning counts, empty parts at the
// end do not. Source: String.split (Java).
func (w *walk) split(v string) {
	cuts := w.rule.separator.FindAllStringIndex(v, MaxParts)
	if len(cuts) == MaxParts {
		w.refused = fmt.Sprintf("more than %d parts", MaxParts)
		return
	}

	w.parts = make([]string, 0, len(cuts)+1)
	from := 0
	for _, c := range cuts {
		w.parts = append(w.parts, v[from:c[0]])
		from = c[1]
	}
	w.parts = append(w.parts, v[from:])

	for len(w.parts) > 0 && w.parts[len(w.parts)-1] == "" {
		w.parts = w.parts[:len(w.parts)-1]
	}
}

// setName makes the name by the display format. Source: TreeBuilder.setCurrentName.
func (w *walk) setName(original, value string) {
	if w.name = value; w.rule.DisplayFormat != "" {
		w.name = w.rule.DisplayFormat
		// In OpenTSDB's order: a later mark is also replaced in what an earlier one stands for.
		w.fill("{ovalue}", original)
		w.fill("{value}", value)
		w.fill("{tsuid}", w.series.TSUID)
		w.fill("{tag_name}", w.tagName())
	}
	if len(w.name) > MaxPath {
		w.refused, w.name = fmt.Sprintf("names of more than %d bytes", MaxPath), ""
	}
}

// fill replaces a mark in the name. If the name would become too long, it stays as it is and
// the series is refused.
func (w *walk) fill(mark, by string) {
	n := strings.Count(w.name, mark)
	if len(w.name)+n*(len(by)-len(mark)) > MaxPath {
		w.refused = fmt.Sprintf("names of more than %d bytes", MaxPath)
		return
	}
	w.name = strings.ReplaceAll(w.name, mark, by)
}

// tagName is what {tag_name} stands for: nothing in a rule that names no tag or field.
func (w *walk) tagName() string {
	switch {
	case w.rule.Type == TagK:
		return w.rule.Field
	case w.rule.Type.custom():
		return w.rule.CustomField
	}
	if strings.Contains(w.name, "{tag_name}") {
		w.say("Display rule %s was of the wrong type to match on {tag_name}", w.rule)
	}
	return ""
}

// join makes a path and a leaf of the names, from the last to the first as OpenTSDB does,
// whose messages come in that order. Names that are empty are skipped, and a branch that is
// named as its parent is one with it. named is set if there were two names. root is how
// messages show the root.
// Source: TreeBuilder.processRuleset, behind its call of itself.
func (w *walk) join(names []string, root string) (path []string, leaf string, named bool) {
	last := len(names) - 1
	for last >= 0 && names[last] == "" {
		last--
	}
	if last < 0 {
		return nil, "", false
	}
	leaf = names[last]

	// The branch before the leaf is the next one that has a name. OpenTSDB's step for names[i]
	// is i+2, and the fate of names[at] is in the step after it: at+3.
	at := last - 1
	for at >= 0 && names[at] == "" {
		w.say("Depth [%d] Parent branch was empty, rolling back", at+3)
		at--
	}
	if at < 0 {
		w.say("Depth [2] Adding leaf [name: %s tsuid: %s] to parent branch [%s]", leaf, w.series.TSUID, root)
		return nil, leaf, false
	}
	w.say("Depth [%d] Adding leaf [name: %s tsuid: %s] to parent branch [Name: [%s]]", at+3, leaf, w.series.TSUID,
		names[at])

	current := names[at]
	path = []string{current}
	for at--; at >= 0; at-- {
		switch parent := names[at]; {
		case parent == "":
			w.say("Depth [%d] Skipping a non-matched branch, returning: Name: [%s]", at+3, current)
		case parent == current:
			w.say("Depth [%d] Current was the same as previous", at+3)
		default:
			w.say("Depth [%d] Adding branch: Name: [%s] to parent: Name: [%s]", at+3, current, parent)
			current = parent
			path = append(path, current)
		}
	}
	slices.Reverse(path)

	// A first branch that is named as the root is one with it, too, as its key shows.
	// Source: Branch.compileBranchId.
	if path[0] == Root {
		path = path[1:]
	}
	return path, leaf, true
}
