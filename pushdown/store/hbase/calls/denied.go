package calls

import (
	"fmt"
	"regexp"

	"downpour/pushdown/store"
)

// accessDenied is the exception of a server whose access control (AccessController) refuses
// a call.
const accessDenied = "org.apache.hadoop.hbase.security.AccessDeniedException"

// Is makes every exception a store.ErrRefused, and one of access control a store.ErrDenied.
func (e *JavaError) Is(target error) bool {
	return target == store.ErrRefused || target == store.ErrDenied && e.Class == accessDenied
}

// lackedRight finds who lacks what in the message of an AccessDeniedException:
//
//	Insufficient permissions (user=us@EXAMPLE.COM, scope=tsdb, family=t:, params=[table=tsdb,family=t:],action=READ)
//	Insufficient permissions for user 'us',action: put, tableName:tsdb, family:t, column: 0380, action=WRITE
//
// The right comes after the qualifiers, which may be many.
var lackedRight = regexp.MustCompile(`(?s)user(?:=| ')([^,']+).*[ ,(]action=(READ|WRITE|EXEC|CREATE|ADMIN)\b`)

// deniedMessage returns a server's message with the right in front, in the words of grant in
// HBase's shell.
func deniedMessage(message string) string {
	found := lackedRight.FindStringSubmatch(message)
	if found == nil {
		return cut(message)
	}
	user, right := found[1], found[2]
	return fmt.Sprintf("%s lacks the right %s (in grant of hbase shell: '%s'): %s",
		user, right, shellLetter(right), cut(message))
}

// shellLetter is the first letter of a right; EXEC has its second.
func shellLetter(right string) string {
	if right == "EXEC" {
		return "X"
	}
	return right[:1]
}
