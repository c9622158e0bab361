package extra_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store/hbase/hbasefake"
)

// ofRetention returns a file of rules.
func ofRetention(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A gateway does not start under rules that are wrong, and says which line is, what it has and what
// is wanted.
func TestRetention_wrong(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"30", "got \"30\", want off, an age such as 400d, or the path of a file of rules"},
		{"10m", "got \"10m\", want off"},
		{"/nonesuch/rules", "no such file"},
		{ofRetention(t, "^sys 4d\n^a\n"), "rules.txt: line 2: got \"^a\", want PATTERN AGE"},
		{ofRetention(t, "^sys 4d 1h=5d\n"), "line 1: got \"1h=5d\", want rollups=AGE"},
		{ofRetention(t, "\n"), "no lines"},
	} {
		cfg := config(0)
		gateway.SettingsOf[retention.Settings](cfg).Retention = c.value
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_RETENTION: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.value, err, c.want)
		}
	}
	for _, value := range []string{"", "off", "400d", ofRetention(t, "# c\n^sys 4d\n")} {
		cfg := config(0)
		gateway.SettingsOf[retention.Settings](cfg).Retention = value
		if err := cfg.Validate(); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// At retainTime the hour of 2013-01-01 00:00 is older than a day, and a second before it is not.
const (
	retainTime  = 1356998400 + 3600 + 86_400
	retainQuery = "/api/query?start=1356998400&end=1357084800&m=sum:1h-count:"
	allRetained = `{"1356998400":2.0,"1357002000":2.0,"1357005600":2.0}`
)

// putRetained puts the first and the last point of each of three hours of some metrics.
func putRetained(b *bench, metrics ...string) {
	b.Helper()
	var lines []string
	for _, metric := range metrics {
		for hour := range 3 {
			for _, second := range []int{0, 3599} {
				lines = append(lines, fmt.Sprintf("%s %d 1 host=a", metric, 1356998400+3600*hour+second))
			}
		}
	}
	b.Put(lines...)
}

// A gateway deletes at its start what is past, exactly to the hour. Another one on the same store, which
// remembers the answer, no longer gives it, and no query fails in the meantime.
func TestRetention_background(t *testing.T) {
	for _, on := range []string{"embedded", "hbase"} {
		t.Run(on, func(t *testing.T) {
			cfg := config(0)
			var st gateway.Store
			if on == "hbase" {
				cluster := hbasefake.For(t, hbasefake.Options{})
				cfg, st = gatewaytest.HBase(t, cluster.Address())
				cluster.CreateTable("tsdb", []string{"t"})
				cluster.CreateTable("tsdb-uid", []string{"id", "name"})
			} else {
				st = memoryStore(t, cfg)
			}
			cfg.ResultCache = "1048576"
			b := serve(t, cfg, st)
			putRetained(b, "m", "kept")
			for _, c := range []struct {
				now  int64
				want string
			}{{retainTime - 1, allRetained}, {retainTime, `{"1357002000":2.0,"1357005600":2.0}`}} {
				putRetained(b, "sign") // which is deleted behind the rows of m
				for range 4 {          // remembered
					if a := b.Get(retainQuery + "m"); !strings.Contains(a.Body, allRetained) {
						t.Fatalf("%d %s", a.Status, a.Body)
					}
				}
				with := *cfg
				with.Extras = everything()
				gateway.SettingsOf[retention.Settings](&with).Retention = ofRetention(t,
					fmt.Sprintf("^m$ 1d\n^sign$ 1h\n^none%d$ 9d\n", c.now))
				with.Now = func() time.Time { return time.Unix(c.now, 0) }
				other := serve(t, &with, st)
				eventually(t, "the rows of sign are gone", func() bool {
					a := b.Get(retainQuery + "m")
					if a.Status != 200 || !strings.Contains(a.Body, allRetained) && !strings.Contains(a.Body, c.want) {
						t.Fatalf("in between: %d %s", a.Status, a.Body)
					}
					a = other.Get(retainQuery + "sign")
					return a.Status == 200 && !strings.Contains(a.Body, "1357005600")
				})
				for name, ask := range map[string]*bench{"the one that deletes": other, "the other one": b} {
					if a := ask.Get(retainQuery + "m"); !strings.Contains(a.Body, c.want) {
						t.Errorf("at %d %s answers %s, want %s", c.now, name, a.Body, c.want)
					}
				}
				if err := other.Gateway.Close(); err != nil {
					t.Error(err)
				}
			}
			if a := b.Get(retainQuery + "kept"); !strings.Contains(a.Body, allRetained) {
				t.Errorf("a metric that is kept: %d %s", a.Status, a.Body)
			}
		})
	}
}

// In mode ro a gateway deletes nothing, and neither does one with a wrong pattern, which logs the
// command that would.
func TestRetention_nothing(t *testing.T) {
	cfg := config(0)
	st := memoryStore(t, cfg)
	b := serve(t, cfg, st)
	putRetained(b, "m")
	for _, mode := range []string{"ro", "rw"} {
		with := *cfg
		with.Extras = everything()
		gateway.SettingsOf[retention.Settings](&with).Retention, with.Mode = "1d", mode
		with.Now = func() time.Time { return time.Unix(retainTime+90*86_400, 0) }
		other := serve(t, &with, st)
		logged := func() bool { return strings.Contains(other.Get("/logs").Body, "retention") }
		if mode == "rw" {
			eventually(t, "the log tells of the rows that are past", logged)
			line := other.LogLine("retention")
			for _, want := range []string{
				"of table tsdb 3 rows are past and only 0 are not", "gateway retention run -yes-delete 3",
			} {
				if !strings.Contains(line, want) {
					t.Errorf("the log says %s, want %s", line, want)
				}
			}
		}
		if err := other.Gateway.Close(); err != nil {
			t.Error(err)
		}
		if a := b.Get(retainQuery + "m"); !strings.Contains(a.Body, allRetained) {
			t.Errorf("mode %s: %d %s", mode, a.Status, a.Body)
		}
	}
}
