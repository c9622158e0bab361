package tree

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"downpour/encoding"
)

// The qualifiers of the tree table. The last three are beginnings, see the package comment.
const (
	DefinitionQualifier = "tree"
	BranchQualifier     = "branch"
	RulePrefix          = "tree_rule:"
	LeafPrefix          = "leaf:"
	CollisionPrefix     = "tree_collision:"
	NotMatchedPrefix    = "tree_not_matched:"
)

// Widths of what keys are made of, in bytes.
const (
	IDWidth   = 2
	HashWidth = 4
)

// Key returns the row of a tree's definition, which is also the key of its root: 00 01.
func Key(id int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(id)) }

// CollisionsKey returns the row of a tree's collisions: 00 01 01.
func CollisionsKey(id int) []byte { return append(Key(id), 1) }

// NotMatchedKey returns the row of the series that a tree has left out: 00 01 02.
func NotMatchedKey(id int) []byte { return append(Key(id), 2) }

// IDOf returns the tree of a key, which has two bytes at least.
func IDOf(key []byte) int { return int(binary.BigEndian.Uint16(key)) }

// IsBranchKey reports whether a key has the length of a branch's.
func IsBranchKey(key []byte) bool {
	return len(key) >= IDWidth && (len(key)-IDWidth)%HashWidth == 0
}

// AppendChild appends to a branch's key what makes it the key of its child of a name.
func AppendChild(key []byte, name string) []byte {
	return binary.BigEndian.AppendUint32(key, encoding.JavaHash(name))
}

// LeafQualifier returns the qualifier of a leaf: "leaf:" 00 00 00 61 for "a".
func LeafQualifier(name string) []byte {
	return binary.BigEndian.AppendUint32([]byte(LeafPrefix), encoding.JavaHash(name))
}

// RuleQualifier returns the qualifier of a rule: tree_rule:0:1.
func RuleQualifier(level, order int) []byte {
	return []byte(RulePrefix + strconv.Itoa(level) + ":" + strconv.Itoa(order))
}

// IsRule reports whether a qualifier is that of a rule.
func IsRule(qualifier []byte) bool {
	return len(qualifier) > len(RulePrefix) && strings.HasPrefix(string(qualifier), RulePrefix)
}

// CheckID returns OpenTSDB's error for an id that no tree can have.
func CheckID(id int) error {
	if id < 1 || id > MaxID {
		return errInvalidID
	}
	return nil
}

var errInvalidID = errors.New("Invalid Tree ID")
