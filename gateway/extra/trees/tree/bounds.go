package tree

import "fmt"

// Bounds of trees. OpenTSDB has none; what is beyond them is refused or, for a series, left
// out of the tree.
const (
	// MaxID is the largest id of a tree: ids have two bytes.
	MaxID = 65535
	// MaxRules bounds the rules of a tree.
	MaxRules = 256
	// MaxText and MaxNotes bound texts in bytes: those that rules work with and names of
	// trees, and descriptions and notes.
	MaxText  = 1 << 10
	MaxNotes = 16 << 10
	// MaxDepth bounds the branches between the root and a leaf.
	MaxDepth = 64
	// MaxPath bounds the bytes of all names of a path, its leaf included.
	MaxPath = 8 << 10
	// MaxNames bounds what all levels yield for one series, where names that are empty or
	// equal their parent's are no part of the path: the bytes of names, and of the rules
	// of levels without one, and nameBytes for each.
	MaxNames = 64 << 10
	// MaxMessages bounds the bytes of messages about the rules for one series.
	MaxMessages = 1 << 20
	// MaxValue bounds the bytes of a name or custom field that a rule cuts.
	MaxValue = 2 << 10
	// MaxParts bounds the parts into which a separator cuts a value.
	MaxParts = 128
	// MaxSteps bounds the steps of all regular expressions of a tree, which bound the time
	// that a series takes. A separator may have MaxSeparatorSteps of them: it is looked for
	// again and again.
	MaxSteps          = 10_000
	MaxSeparatorSteps = 100
	// MaxWork bounds what applying the rules of all trees to one series costs, in steps of
	// regular expressions times bytes: some tenths of a second.
	MaxWork = 1 << 26
)

// nameBytes is what a name or message takes on top of its bytes.
const nameBytes = 16

// checkLength returns an error for a text that is too long.
func checkLength(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("The %s has %d bytes, want at most %d", field, len(text), most)
	}
	return nil
}
