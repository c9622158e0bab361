package hbase

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// A missing right to read is reported before anything is read, with its family. Without a check of
// rights nothing is missing; a failed check is reported as such.
func TestCheckReadable(t *testing.T) {
	all := []store.Families{{Table: "t", Names: []string{"t"}}, {Table: "gone", Names: []string{"t"}},
		{Table: "ns:uid", Names: []string{"id", "name"}}}
	for name, tc := range map[string]struct {
		version   string
		denied    []string // nil: nobody checks rights
		refuse    bool     // the question
		elsewhere bool     // rights are granted
		want      []string // of the error
		unknown   string
	}{
		"nobody checks":    {},
		"all rights":       {denied: []string{}},
		"others' families": {denied: []string{"t:x", "other:t", "uid:id"}},
		"one family": {
			denied: []string{"ns:uid:name"},
			want: []string{"lacks the right READ (in grant of hbase shell: 'R')",
				`families ["name"] of table "ns:uid"`},
		},
		"two": {
			denied: []string{"t:t", "ns:uid:id"},
			want:   []string{`families ["t"] of table "t"`, `families ["id"] of table "ns:uid"`},
		},
		"a table that is not there": {denied: []string{"gone:t"}},
		"rights elsewhere":          {denied: []string{"t:t"}, elsewhere: true},
		"not told": {
			denied:  []string{"t:t"},
			refuse:  true,
			unknown: "cannot ask the master for our rights",
		},
		"HBase 2.1": {version: "2.1.0", denied: []string{"t:t"}, unknown: "UnsupportedOperationException"},
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
						return hbasefake.Fault{
							Kind:      hbasefake.Refuse,
							Exception: "org.apache.hadoop.hbase.security.AccessDeniedException",
						}
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
			if n := c.Calls("HasUserPermissions"); (n > 0) != (tc.denied != nil && !tc.elsewhere) {
				t.Errorf("%d questions of a cluster that checks rights: %t", n, tc.denied != nil)
			}
			if (told != "") != (tc.unknown != "") || !strings.Contains(told, tc.unknown) {
				t.Errorf("told %q, want %q in it", told, tc.unknown)
			}
		})
	}
}

// A server that has not learnt its rights at start keeps asking, less and less often, until it does: then
// it is quiet, or must end as it would have at the start. A master that does not know the question is asked
// once.
func TestReadCheck(t *testing.T) {
	const away, line = 20 * time.Minute, "all tables may be read"
	of := []store.Families{{Table: "t", Names: []string{"t"}}}
	for name, tc := range map[string]struct {
		version   string
		denied    []string // once the master answers
		never     bool     // the master answers
		stop      time.Duration
		want      error
		log       []string // in this order
		questions int      // at most; each asks several times while the master is away
	}{
		"granted": {
			denied:    []string{},
			log:       []string{"not known", `"asked again"=true`, line},
			questions: 25,
		},
		"nobody checks": {log: []string{"not known", line}, questions: 25},
		"denied": {
			denied:    []string{"t:t"},
			want:      store.ErrDenied,
			log:       []string{"not known"},
			questions: 25,
		},
		"HBase 2.1": {
			version:   "2.1.0",
			denied:    []string{"t:t"},
			log:       []string{"not known", "not known", "UnsupportedOperationException", `"asked again"=false`},
			questions: 25,
		},
		"the process ends": {stop: 10 * time.Minute, log: []string{"not known"}, questions: 15},
		"away for five hours": {
			never:     true,
			stop:      5 * time.Hour,
			log:       strings.Fields(strings.Repeat("known ", 5)),
			questions: 310,
		},
	} {
		t.Run(name, func(t *testing.T) {
			slowlyOn(t, hbasefake.Options{Version: tc.version}, func(c *cluster) {
				began := time.Now()
				if tc.denied != nil {
					c.Deny(tc.denied...)
				}
				hold := hbasefake.Fault{Kind: hbasefake.Refuse, Exception: pleaseHold}
				c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
					if call.Method == "getSecurityCapabilities" && (tc.never || time.Since(began) < away) {
						return hold
					}
					return hbasefake.Fault{}
				})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if tc.stop > 0 {
					defer time.AfterFunc(tc.stop, cancel).Stop()
				}

				var log bytes.Buffer
				questions := &questions{Store: c.st}
				check := &store.ReadCheck{Store: questions, Of: of, Log: slog.New(slog.NewTextHandler(&log, nil))}
				if err := check.AtStart(ctx); err != nil || time.Since(began) > 6*time.Second {
					t.Fatalf("start: %v after %v, want none within 5 s", err, time.Since(began))
				}
				if err := check.Await(ctx); !errors.Is(err, tc.want) ||
					tc.want != nil && !strings.Contains(err.Error(), "lacks the right READ") {
					t.Errorf("got %v, want %v", err, tc.want)
				}

				if end := max(tc.stop, away); tc.stop == 0 && time.Since(began) > end+2*time.Minute ||
					tc.stop > 0 && time.Since(began) != tc.stop {
					t.Errorf("ended after %v, want %v and not much more", time.Since(began), end)
				}
				wantInOrder(t, log.String(), tc.log)
				if strings.Count(log.String(), "\n") > len(tc.log) || questions.n > tc.questions || questions.n < 2 {
					t.Errorf("%d questions, want 2 to %d; the log:\n%s", questions.n, tc.questions, &log)
				}
			})
		})
	}
}

// pleaseHold is what a master says until it has started.
const pleaseHold = "org.apache.hadoop.hbase.PleaseHoldException"

// wantInOrder wants texts in a log, each behind the one before.
func wantInOrder(t *testing.T, log string, texts []string) {
	t.Helper()
	rest := log
	for _, want := range texts {
		_, behind, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("no %q at its place in the log:\n%s", want, log)
		}
		rest = behind
	}
}

// An answer at start is final.
func TestReadCheck_told(t *testing.T) {
	for name, opts := range map[string]hbasefake.Options{"granted": {}, "HBase 2.1": {Version: "2.1.0"}} {
		t.Run(name, func(t *testing.T) {
			slowlyOn(t, opts, func(c *cluster) {
				c.Deny("t:other")
				questions := &questions{Store: c.st}
				check := &store.ReadCheck{
					Store: questions,
					Of:    []store.Families{{Table: "t", Names: []string{"t"}}},
					Log:   slog.New(slog.DiscardHandler),
				}
				if err := errors.Join(check.AtStart(c.ctx), check.Await(c.ctx)); err != nil || questions.n != 1 {
					t.Errorf("%d questions, %v, want one and no error", questions.n, err)
				}
			})
		})
	}
}

// questions counts those for rights.
type questions struct {
	*Store
	n int
}

func (q *questions) Features() store.Features {
	f := q.Store.Features()
	f.CheckReadable = q.CheckReadable
	return f
}

func (q *questions) CheckReadable(ctx context.Context, of []store.Families) error {
	q.n++
	return q.Store.CheckReadable(ctx, of)
}

// An answer that says nothing of a family is none.
func TestReadAnswer(t *testing.T) {
	of := []store.Families{{Table: "t", Names: []string{"a", "b"}}}
	for name, reply := range map[string][]byte{"none": nil, "one": {8, 1}, "three": {8, 1, 8, 1, 8, 1},
		"damaged": {8}, "damaged behind": {8, 1, 8, 1, 8}} {
		if _, err := readAnswer(of, reply); err == nil || errors.Is(err, store.ErrDenied) ||
			!strings.Contains(err.Error(), "cannot ask") {
			t.Errorf("%s: got %v, want that it cannot be asked", name, err)
		}
	}
	if lacking, err := readAnswer(of, []byte{8, 1, 8, 1}); err != nil || lacking != nil {
		t.Errorf("got %v, %v, want nothing", lacking, err)
	}
}
