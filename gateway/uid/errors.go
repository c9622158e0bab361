package uid

import (
	"errors"
	"fmt"
	"strings"

	"downpour/encoding"
)

// NoSuchNameError is returned for a name that has no UID.
// Source: NoSuchUniqueName.
type NoSuchNameError struct {
	Kind encoding.UIDKind
	Name string
}

// Error is OpenTSDB's text.
func (e *NoSuchNameError) Error() string {
	return fmt.Sprintf("No such name for '%s': '%s'", e.Kind, e.Name)
}

// NoSuchIDError is returned for a UID that has no name.
// Source: NoSuchUniqueId.
type NoSuchIDError struct {
	Kind encoding.UIDKind
	UID  encoding.UID
}

// Error is OpenTSDB's text.
func (e *NoSuchIDError) Error() string {
	return fmt.Sprintf("No such unique ID for '%s': %s", e.Kind, signedBytes(e.UID))
}

// signedBytes writes bytes as Java prints an array of them: [0, 0, -1].
func signedBytes(b []byte) string {
	signed := make([]int8, len(b))
	for i, c := range b {
		signed[i] = int8(c)
	}
	return strings.ReplaceAll(fmt.Sprint(signed), " ", ", ")
}

// ConflictError is returned when two names lead to one UID, or one name to two:
// points of different series would become one. Nothing is read or written under
// such a name until the UID table is repaired.
type ConflictError struct {
	Kind encoding.UIDKind
	UID  encoding.UID
	// Name leads to UID, but UID leads back to Owner.
	Name, Owner string
}

// Error names the UID and both names.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("uid: %s %q leads to UID %s, which is that of %q: the UID table needs repair", e.Kind, e.Name,
		e.UID, e.Owner)
}

// FullError is returned when no UID is left for new names of a kind. Names that
// have one keep working. Source: UniqueId, IllegalStateException.
type FullError struct {
	Kind  encoding.UIDKind
	Width int // bytes of a UID
}

// Error is OpenTSDB's text.
func (e *FullError) Error() string {
	return fmt.Sprintf("All Unique IDs for %s on %d bytes are already assigned!", e.Kind, e.Width)
}

// NameTooLongError is returned when a name that has no UID is too long to get one.
// OpenTSDB takes names of any length; HBase refuses those longer than MostName.
type NameTooLongError struct {
	Kind       encoding.UIDKind
	Got, Limit int // bytes
}

// Error names the kind and not the name, which is long.
func (e *NameTooLongError) Error() string {
	return fmt.Sprintf("Name of %d bytes for '%s', at most %d are allowed for a new one (DOWNPOUR_LIMIT_NAME)", e.Got,
		e.Kind, e.Limit)
}

// BusyError is returned when this process is deleting or renaming a name: no row
// can be written with it until that is done.
type BusyError struct {
	Kind encoding.UIDKind
	Name string
	done <-chan struct{}
}

// Error names kind and name.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s %q is being deleted or renamed: send the point again", e.Kind, e.Name)
}

// RefusedError is returned when a rename is refused by the client's fault; its text
// is OpenTSDB's.
type RefusedError struct{ Text string }

// Error is the text.
func (e *RefusedError) Error() string { return e.Text }

var (
	// ErrLate is returned by a hold's release when another process has changed names
	// while the rows were written, so long ago that it may have looked for rows before
	// these were there. UIDs of the hold's generation must be resolved and written
	// again.
	ErrLate = errors.New("names have been changed by another process during a long write: send the points again")

	// ErrTooLong is returned when a list of names takes more than MaxListed.
	ErrTooLong = fmt.Errorf("uid: the names take more than %d MiB: ask for fewer", MaxListed>>20)

	// errLostRace is returned when another writer has given the name its UID, which
	// is then to be read.
	errLostRace = errors.New("uid: another writer has assigned the name")
)
