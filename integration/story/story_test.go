package story_test

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"downpour/integration/story"
)

var update = flag.Bool("update", false, "write what commands print in the first of its places into each story")

// dawn is when stories begin.
var dawn = time.Date(2013, 1, 1, 1, 0, 0, 0, time.UTC)

// Each story of testdata prints the same on both stores, whether parts of queries run in the gateway or on a pushdown
// server.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d stories, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s, err := story.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			rewrite := *update
			for _, where := range []string{story.Embedded, story.HBase} {
				if !s.On(where) {
					continue
				}
				for _, how := range []string{"in process", "pushdown"} {
					t.Run(where+" "+how, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							time.Sleep(time.Until(dawn))
							place := newStage(t, where, how == "pushdown", s.Faulty())
							s.Play(t, place, rewrite)
							if place.pushdown && !place.all[0].anyParts && queries(s) {
								t.Error("the pushdown server has served no part of a query")
							}
						})
					})
					if rewrite {
						if err := s.Write(); err != nil {
							t.Fatal(err)
						}
					}
					rewrite = false
				}
			}
		})
	}
}

// queries reports whether a story reads points.
func queries(s *story.Script) bool {
	return slices.ContainsFunc(s.Steps, func(step *story.Step) bool {
		path, _, _ := strings.Cut(step.Args, "?")
		return path == "/api/query" && !strings.HasPrefix(step.Want, "4")
	})
}
