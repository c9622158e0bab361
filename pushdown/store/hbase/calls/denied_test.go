package calls

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
)

// A refusal of access control says first which right is lacking, however long the server's message
// is, and is not tried again. The messages are those of a 2.5.11.
func TestDenied(t *testing.T) {
	many := strings.Repeat("t:qualifier|", 100)
	for _, tc := range []struct{ message, want string }{
		{"Insufficient permissions (user=us@EXAMPLE.COM, scope=default, " +
			"params=[namespace=default,table=default:tsdb-uid,family=id|name],action=CREATE)",
			"us@EXAMPLE.COM lacks the right CREATE (in grant of hbase shell: 'C'): Insufficient permissions (user=us"},
		{"Insufficient permissions for user 'us' (table=tsdb, action=READ)",
			"us lacks the right READ (in grant of hbase shell: 'R'): "},
		{"Insufficient permissions (user=us, scope=tsdb, family=" + many + ", params=[table=tsdb],action=WRITE)",
			"us lacks the right WRITE (in grant of hbase shell: 'W'): "},
		{"Insufficient permissions (user=us, scope=hbase:acl, params=[table=hbase:acl],action=EXEC)",
			"us lacks the right EXEC (in grant of hbase shell: 'X'): "},
		{"no words that are known" + many, "AccessDeniedException: no words that are known"},
	} {
		err := WithoutStack(fmt.Errorf("%s%s: %s: %s\n\tat org.apache.hadoop.hbase.X", javaPrefix, accessDenied,
			accessDenied, tc.message))
		if !errors.Is(err, store.ErrDenied) || Classify(err) != ClassFatal {
			t.Errorf("%v: got class %d, want a final store.ErrDenied", err, Classify(err))
		}
		if !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
			t.Errorf("got %v, want %q and at most 400 bytes", err, tc.want)
		}
	}

	other := WithoutStack(errors.New(javaPrefix +
		"org.apache.hadoop.hbase.DoNotRetryIOException: org.apache.hadoop.hbase.DoNotRetryIOException: action=READ"))
	if errors.Is(other, store.ErrDenied) || !errors.Is(other, store.ErrRefused) {
		t.Errorf("%v: want a store.ErrRefused that is no store.ErrDenied", other)
	}
}
