package backtrack

import "math"

// kind is that of a node.
type kind int

const (
	nodeSequence  kind = iota // of subs; none is the empty expression
	nodeChoice                // of subs
	nodeSet                   // one character of set
	nodeRepeat                // subs[0], min to max times
	nodeCapture               // subs[0], as the group n
	nodeAtomic                // subs[0]; only its first way of matching counts
	nodeLook                  // subs[0] must be found here, or must not, ahead or behind
	nodeReference             // what the group n has found
	nodeBegin                 // the start of the name
	nodeEnd                   // its end
	nodeBorder                // the border of a word
	nodeNoBorder
)

// node is a part of an expression.
type node struct {
	kind     kind
	subs     []*node
	set      *set
	n        int
	min, max int // of a repetition
	lazy     bool
	optional bool // a repetition by a question mark
	behind   bool // of a look
	negative bool
}

// endless is the maximum of a repetition without one.
const endless = math.MaxInt32

// length returns how many characters a part of a look-behind has. ok is false where Java sees no maximum.
// Source: the study methods of Pattern's nodes.
func (n *node) length() (least, most int, ok bool) {
	switch n.kind {
	case nodeSet:
		return 1, 1, true
	case nodeReference:
		return 0, 0, false
	case nodeSequence, nodeCapture, nodeAtomic:
		for _, sub := range n.subs {
			l, m, ok := sub.length()
			if !ok {
				return 0, 0, false
			}
			least, most = least+l, most+m
		}
		return least, most, true
	case nodeChoice:
		least = endless
		for _, sub := range n.subs {
			l, m, ok := sub.length()
			if !ok {
				return 0, 0, false
			}
			least, most = min(least, l), max(most, m)
		}
		return least, most, true
	case nodeRepeat:
		l, m, ok := n.subs[0].length()
		if !ok || n.max == endless || !n.optional && !n.subs[0].certain() {
			return 0, 0, false
		}
		return l * n.min, m * n.max, true
	}
	return 0, 0, true // a look or a place
}

// least returns a lower bound of the characters that a part takes. Above 0, each iteration of a
// loop gets further.
func (n *node) least() (least int) {
	switch n.kind {
	case nodeSet:
		return 1
	case nodeSequence, nodeCapture, nodeAtomic:
		for _, sub := range n.subs {
			least = min(least+sub.least(), endless)
		}
	case nodeChoice:
		least = endless
		for _, sub := range n.subs {
			least = min(least, sub.least())
		}
	case nodeRepeat:
		if n.min > 0 {
			return n.subs[0].least()
		}
	}
	return least
}

// certain reports whether a part has no choice and no inner repetition of varying length. Java computes the
// length of a repetition only of such parts.
func (n *node) certain() bool {
	if n.kind == nodeChoice || n.kind == nodeRepeat && (n.optional || n.min != n.max) {
		return false
	}
	for _, sub := range n.subs {
		if n.kind != nodeLook && !sub.certain() {
			return false
		}
	}
	return true
}

// beginsAtStart reports whether an expression can be found at the start of a name only.
func beginsAtStart(n *node) bool {
	for n.kind == nodeSequence && len(n.subs) > 0 {
		n = n.subs[0]
	}
	return n.kind == nodeBegin
}

// prefixOf returns the characters that follow the start of the name, "" for none.
func prefixOf(n *node) (prefix string) {
	if n.kind != nodeSequence || len(n.subs) == 0 || n.subs[0].kind != nodeBegin {
		return ""
	}
	for _, sub := range n.subs[1:] {
		c, ok := sub.single()
		if !ok {
			break
		}
		prefix += string(c)
	}
	return prefix
}

// single returns the one character that a node is.
func (n *node) single() (rune, bool) {
	if n.kind != nodeSet || n.set.negative || len(n.set.items) != 1 {
		return 0, false
	}
	one := n.set.items[0]
	return one.low, one.table == nil && one.within == nil && one.low == one.high
}
