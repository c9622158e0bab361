package hbase

import (
	"errors"
	"strings"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// A right to read that is lacking is told before anything is read, and with the family that it is about. Where
// nobody checks rights, nothing is lacking; what cannot be asked is told as that.
func TestCheckReadable(t *testing.T) {
	all := []store.Families{{Table: "t", Names: []string{"t"}}, {Table: "gone", Names: []string{"t"}}, {Table: "ns:uid", Names: []string{"id", "name"}}}
	for name, tc := range map[string]struct {
		version   string
		denied    []string // nil: nobody checks rights
		refuse    bool     // the question
		elsewhere bool     // rights are granted
		want      []string // of the error
		unknown   string
	}{
		"nobody checks":             {},
		"all rights":                {denied: []string{}},
		"others' families":          {denied: []string{"t:x", "other:t", "uid:id"}},
		"one family":                {denied: []string{"ns:uid:name"}, want: []string{"lacks the right READ (in grant of hbase shell: 'R')", `families ["name"] of table "ns:uid"`}},
		"two":                       {denied: []string{"t:t", "ns:uid:id"}, want: []string{`families ["t"] of table "t"`, `families ["id"] of table "ns:uid"`}},
		"a table that is not there": {denied: []string{"gone:t"}},
		"rights elsewhere":          {denied: []string{"t:t"}, elsewhere: true},
		"not told":                  {denied: []string{"t:t"}, refuse: true, unknown: "cannot ask the master for our rights"},
		"HBase 2.1":                 {version: "2.1.0", denied: []string{"t:t"}, unknown: "UnsupportedOperationException"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, hbasefake.Options{Version: tc.version})
			c.CreateTable("t", []string{"t"})
			c.CreateTable("ns:uid", []string{"id", "name"})
			c.st.cfg.RightsElsewhere = tc.elsewhere
			if tc.denied != nil {
				c.Deny(tc.denied...)
			}
			if tc.refuse {
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					if call.Method == "HasUserPermissions" {
						return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: accessDenied}
					}
					return hbasefake.Fault{}
				})
			}

			told := ""
			err := store.CheckReadable(c.ctx, c.st, all, func(unknown error) { told = unknown.Error() })
			if denied := errors.Is(err, store.ErrDenied); denied != (tc.want != nil) || (err != nil) != denied {
				t.Fatalf("got %v, want a refusal %v", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if (told != "") != (tc.unknown != "") || !strings.Contains(told, tc.unknown) {
				t.Errorf("told %q, want %q in it", told, tc.unknown)
			}
		})
	}
}

// An answer that says nothing of a family is none.
func TestReadAnswer(t *testing.T) {
	of := []store.Families{{Table: "t", Names: []string{"a", "b"}}}
	for name, reply := range map[string][]byte{"none": nil, "one": {8, 1}, "three": {8, 1, 8, 1, 8, 1}, "damaged": {8}} {
		if _, err := readAnswer(of, reply); err == nil || errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "cannot ask") {
			t.Errorf("%s: got %v, want that it cannot be asked", name, err)
		}
	}
	if lacking, err := readAnswer(of, []byte{8, 1, 8, 1}); err != nil || lacking != nil {
		t.Errorf("got %v, %v, want nothing", lacking, err)
	}
}
