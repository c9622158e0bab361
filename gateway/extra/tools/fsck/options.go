package fsck

import "strings"

// Options say what may be repaired. The zero value repairs nothing. Without Fix the
// others have no effect but LastWriteWins. Source: FsckOptions.
type Options struct {
	Fix                  bool // repair what loses nothing, and what the others allow
	Compact              bool // make one cell of all points of a row
	DeleteBadRows        bool // rows whose key is impossible
	DeleteOrphans        bool // rows of UIDs that have no name
	DeleteUnknownColumns bool
	DeleteBadCompacts    bool // compacted cells and ends of append columns that cannot be read
	DeleteBadValues      bool
	ResolveDuplicates    bool // keep one of several values of one time
	LastWriteWins        bool // keep the newest of them, not the oldest
}

// All sets everything but LastWriteWins, as --fix-all does.
func (o *Options) All() {
	*o = Options{Fix: true, Compact: true, DeleteBadRows: true, DeleteOrphans: true, DeleteUnknownColumns: true,
		DeleteBadCompacts: true, DeleteBadValues: true, ResolveDuplicates: true, LastWriteWins: o.LastWriteWins}
}

// permission is what a repair needs to be allowed.
type permission uint8

const (
	never permission = iota // nothing repairs it
	byFix
	byCompact
	byDeleteBadRows
	byDeleteOrphans
	byDeleteUnknownColumns
	byDeleteBadCompacts
	byDeleteBadValues
	byResolveDuplicates
)

// flags returns the flags that give a permission, as a user types them.
func (p permission) flags() string {
	if p == never {
		return ""
	}
	extra := [...]string{
		byCompact:              "--compact",
		byDeleteBadRows:        "--delete-bad-rows",
		byDeleteOrphans:        "--delete-orphans",
		byDeleteUnknownColumns: "--delete-unknown-columns",
		byDeleteBadCompacts:    "--delete-bad-compacts",
		byDeleteBadValues:      "--delete-bad-values",
		byResolveDuplicates:    "--resolve-duplicates",
	}
	return strings.TrimSpace("--fix " + extra[p])
}

// allows reports whether the options give a permission.
func (o *Options) allows(p permission) bool {
	given := [...]bool{
		byFix:                  true,
		byCompact:              o.Compact,
		byDeleteBadRows:        o.DeleteBadRows,
		byDeleteOrphans:        o.DeleteOrphans,
		byDeleteUnknownColumns: o.DeleteUnknownColumns,
		byDeleteBadCompacts:    o.DeleteBadCompacts,
		byDeleteBadValues:      o.DeleteBadValues,
		byResolveDuplicates:    o.ResolveDuplicates,
	}
	return o.Fix && given[p]
}
