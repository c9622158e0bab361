package uidcheck

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/uid"
)

// Policy says what becomes of names that share a UID. Their points are stored as those of
// one name and cannot be distinguished any more.
type Policy string

// The policies.
const (
	// Leave reports them and changes nothing.
	Leave Policy = ""
	// Owner lets the name keep the UID to which the UID leads back. The others lose it,
	// and get a new one with their next point.
	Owner Policy = "owner"
	// Merge gives the UID to a new name, fsck.NAME1.NAME2, as OpenTSDB does. All names
	// lose it.
	Merge Policy = "merge"
)

// Finding is one thing that is wrong in the UID table.
type Finding struct {
	// Of is what it is about: a kind of names, or a row.
	Of string
	// Warning is set for what does no harm to any name.
	Warning bool
	// Text says what is wrong. Repair says what the repair does, empty if there is none.
	Text, Repair string

	collision bool
	steps     []step
}

// step changes one cell from the value that was read to another; old is nil for no cell,
// value nil to delete it. Where both are equal the cell only has to be as it was.
type step struct {
	row, family, qualifier string
	old, value             []byte
	// whatever is set if the cell is deleted, no matter what it holds.
	whatever bool
	// add is what a counter is raised by, instead of all that. An increment is right next to
	// others, while HBase may hide a put behind increments, whose times run ahead of the clock.
	add int64
}

// forward returns a step of the cell that maps a name to a UID.
func forward(kind encoding.UIDKind, name string, old, value []byte) step {
	return step{row: name, family: encoding.FamilyID, qualifier: kind.String(), old: old, value: value}
}

// reverse returns a step of the cell that maps a UID to a name.
func reverse(kind encoding.UIDKind, u string, old, value []byte) step {
	return step{row: u, family: encoding.FamilyName, qualifier: kind.String(), old: old, value: value}
}

// claim is what the table says of a UID to which names lead.
type claim struct {
	kind  encoding.UIDKind
	uid   string
	names []string // that lead to it, ascending
	back  []byte   // the name to which it leads back, nil for none
	other []byte   // the UID to which that name leads, nil for none
}

// judgeClaim returns what is wrong with the names of a UID; ok is false if nothing is.
// Source: UidManager.fsck.
func judgeClaim(c claim, p Policy) (f Finding, ok bool) {
	f.Of = c.kind.String()
	switch {
	case len(c.names) == 0 || len(c.names) == 1 && string(c.back) == c.names[0] && c.back != nil:
		return f, false
	case len(c.names) > 1:
		return judgeCollision(c, p), true
	}

	name := c.names[0]
	f.Text = fmt.Sprintf("%q has UID %s, which leads back to no name", shown(name), encoding.UID(c.uid))
	f.steps = []step{forward(c.kind, name, []byte(c.uid), []byte(c.uid)), reverse(c.kind, c.uid, c.back, []byte(name))}
	f.Repair = fmt.Sprintf("%s leads back to %q", encoding.UID(c.uid), shown(name))
	if c.back == nil {
		return f, true
	}

	f.Text = fmt.Sprintf("%q has UID %s, which leads back to %q, which has none", shown(name), encoding.UID(c.uid),
		shown(string(c.back)))
	if c.other != nil {
		f.Text = fmt.Sprintf("%q has UID %s, which leads back to %q, which has UID %s", shown(name),
			encoding.UID(c.uid), shown(string(c.back)), encoding.UID(c.other))
	}
	// The UID will not lead back to that name any more, so what that name itself leads to must
	// still be as it was read: otherwise it may share this UID by now.
	if usable(string(c.back)) {
		f.steps = append([]step{forward(c.kind, string(c.back), c.other, c.other)}, f.steps...)
	}
	return f, true
}

// judgeCollision returns the finding for names that share a UID.
func judgeCollision(c claim, p Policy) Finding {
	f := Finding{Of: c.kind.String(), collision: true}
	quoted := make([]string, len(c.names))
	for i, name := range c.names {
		quoted[i] = fmt.Sprintf("%q", shown(name))
	}
	leads := "no name"
	if c.back != nil {
		leads = fmt.Sprintf("%q", shown(string(c.back)))
	}
	f.Text = fmt.Sprintf("COLLISION: %s have the same UID %s, which leads back to %s; points of all are stored "+
		"as one name's",
		strings.Join(quoted, ", "), encoding.UID(c.uid), leads)

	owner := string(c.back)
	switch merged := "fsck." + strings.Join(c.names, "."); {
	case p == Owner && c.back != nil && slices.Contains(c.names, owner):
		// The others lose the UID only while both mappings of the owner are as they were.
		f.Repair = fmt.Sprintf("%s is the UID of %q alone", encoding.UID(c.uid), shown(owner))
		f.steps = append(f.steps, reverse(c.kind, c.uid, c.back, c.back),
			forward(c.kind, owner, []byte(c.uid), []byte(c.uid)))
	case p == Merge && len(merged) <= uid.MostName:
		// The UID has a name at every moment: the old ones go last.
		owner = merged
		f.Repair = fmt.Sprintf("%s is the UID of %q, and of no other name", encoding.UID(c.uid), shown(merged))
		f.steps = append(f.steps, forward(c.kind, merged, nil, []byte(c.uid)),
			reverse(c.kind, c.uid, c.back, []byte(merged)))
	default: // they are to be left, or the UID leads back to none of them, or one name of all would be too long
		return f
	}

	for _, name := range c.names {
		if name != owner {
			f.steps = append(f.steps, forward(c.kind, name, []byte(c.uid), nil))
		}
	}
	return f
}

// stray is a name to which UIDs lead that are not the name's, and to which no name leads.
type stray struct {
	kind encoding.UIDKind
	name string
	uids []string // ascending
	own  []byte   // the UID of the name, nil for none
	back []byte   // the name to which that UID leads back, nil for none
}

// judgeStray returns the findings for UIDs that nothing leads to, one for each. used are the
// rows of points that have one of them, by UID; nil if nobody has looked, which a check
// without repairs need not. width is that of the kind's UIDs.
//
// If the name has no UID it gets one back: that of rows, otherwise the largest, which was
// assigned last. OpenTSDB removes the reverse mapping instead, and then queries of rows with
// the UID fail.
func judgeStray(s stray, used map[string][]byte, width int) []Finding {
	own, uids := s.own, s.uids
	var found []Finding
	switch {
	case own != nil && len(own) != width:
		// What is to be done depends on which width is right. That of the name's UID was reported
		// when the name was read, see addForward.
		return nil
	case own == nil && usable(s.name):
		winner := uids[len(uids)-1]
		for _, u := range uids {
			if used[u] != nil {
				winner = u
			}
		}
		found = append(found, Finding{
			Of:      s.kind.String(),
			Warning: true,
			Text:    fmt.Sprintf("UID %s leads to %q, which has no UID", encoding.UID(winner), shown(s.name)),
			Repair:  fmt.Sprintf("%q has UID %s", shown(s.name), encoding.UID(winner)),
			steps: []step{
				reverse(s.kind, winner, []byte(s.name), []byte(s.name)),
				forward(s.kind, s.name, nil, []byte(winner)),
			},
		})
		own, s.back = []byte(winner), []byte(s.name)
	}

	for _, u := range uids {
		if !bytes.Equal(own, []byte(u)) {
			found = append(found, leftover(s, u, own, used[u]))
		}
	}
	return found
}

// leftover returns the finding for a UID that leads to a name of another UID, or to what
// cannot be a name. It stays where rows have it, because queries show the name, and while
// the other UID does not lead back to the name, because then either may be the right one.
func leftover(s stray, u string, own, row []byte) Finding {
	f := Finding{
		Of:      s.kind.String(),
		Warning: true,
		Text:    fmt.Sprintf("UID %s leads to %q, which has UID %s", encoding.UID(u), shown(s.name), encoding.UID(own)),
	}
	if own == nil {
		f.Text = fmt.Sprintf("UID %s leads to %q, which cannot be a name", encoding.UID(u), shown(s.name))
	}
	switch {
	case row != nil:
		f.Text += fmt.Sprintf("; it stays, because row %x and perhaps others have it", row)
		return f
	case own != nil && string(s.back) != s.name:
		f.Text += "; it stays, because that is not the name's alone"
		return f
	}

	f.Repair = "UID " + encoding.UID(u).String() + " leads to nothing"
	// Only while the name keeps its own UID is this one nobody's.
	if own != nil {
		f.steps = append(f.steps, forward(s.kind, s.name, own, own))
	}
	// Its UIDMeta then describes no name, and goes whatever it holds.
	f.steps = append(f.steps, reverse(s.kind, u, []byte(s.name), nil),
		step{row: u, family: encoding.FamilyName, qualifier: string(s.kind.MetaQualifier()), whatever: true})
	return f
}

// sparse reports whether UIDs were not counted but drawn: the largest is far beyond their
// number. Source: tsd.core.uid.random_metrics.
func sparse(largest uint64, names int64) bool { return largest > 16*uint64(names)+65536 }

// judgeCounter returns what is wrong with the counter of a kind; ok is false if nothing is.
// counter is nil for no cell; names is how many names have UIDs, and largest is the largest UID.
func judgeCounter(kind encoding.UIDKind, counter []byte, largest uint64, names int64) (f Finding, ok bool) {
	f.Of = kind.String()
	n, err := encoding.ParseCounter(counter)
	switch {
	case counter == nil && largest == 0, err == nil && uint64(n) >= largest && n >= 0:
		return f, false
	case counter != nil && err != nil:
		f.Text = fmt.Sprintf("the counter is %x of %d bytes, want %d bytes: no name can be assigned", counter,
			len(counter), encoding.CounterWidth)
	default:
		f.Text = fmt.Sprintf("the counter is %d, but UIDs up to %d are in use: new names would get them first", n,
			largest)
	}

	// Where UIDs were drawn at random, nothing shows what the counter should be, and only one
	// that cannot be read does harm.
	if sparse(largest, names) {
		f.Warning = counter == nil || err == nil
		f.Text += "; they do not look counted (tsd.core.uid.random_metrics?), so the counter stays"
		return f, true
	}
	f.Repair = fmt.Sprintf("the counter is %d", largest)
	s := step{
		row:       string(encoding.CounterRow),
		family:    encoding.FamilyID,
		qualifier: kind.String(),
		add:       int64(largest) - n,
	}
	// A value of another length cannot be incremented.
	if err != nil && counter != nil {
		s.add, s.old, s.value = 0, counter, encoding.AppendCounter(nil, int64(largest))
	}
	f.steps = []step{s}
	return f, true
}

// shown is a name as text, cut where it is very long.
func shown(name string) string {
	text := encoding.ParseName([]byte(name[:min(len(name), maxShown)]))
	if len(name) > maxShown {
		text += "…"
	}
	return text
}

// maxShown is the number of bytes of a name that a line shows.
const maxShown = 300

// usable reports whether bytes can be the row of a name.
func usable(name string) bool {
	return name != "" && len(name) <= uid.MostName && name != string(encoding.CounterRow)
}
