package uid

import (
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

// ConflictError tells that two names lead to one UID, or one name to two: points
// of different series would become one. Nothing is read or written under such a
// name until the UID table is repaired.
type ConflictError struct {
	Kind encoding.UIDKind
	UID  encoding.UID
	// Name leads to UID, which is the UID of Owner.
	Name, Owner string
}

// Error names the UID and both names.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("uid: %s %q leads to UID %s, which is that of %q: the UID table needs repair", e.Kind, e.Name, e.UID, e.Owner)
}

// FullError tells that no UID is left for new names of a kind; known names go
// on. Source: UniqueId, IllegalStateException.
type FullError struct {
	Kind  encoding.UIDKind
	Width int // bytes of a UID
}

// Error is OpenTSDB's text.
func (e *FullError) Error() string {
	return fmt.Sprintf("All Unique IDs for %s on %d bytes are already assigned!", e.Kind, e.Width)
}

// NameTooLongError is the refusal of a name that would get a UID. OpenTSDB takes
// names of any length; HBase refuses those beyond MostName.
type NameTooLongError struct {
	Kind       encoding.UIDKind
	Got, Limit int // bytes
}

// Error names the kind, not the name: that is long.
func (e *NameTooLongError) Error() string {
	return fmt.Sprintf("Name of %d bytes for '%s', at most %d are allowed for a new one (DOWNPOUR_LIMIT_NAME)", e.Got, e.Kind, e.Limit)
}
