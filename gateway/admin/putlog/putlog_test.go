package putlog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines returns a log and a function that returns the lines written since it was last called,
// without time and level.
func lines() (*Log, func() []string) {
	var out strings.Builder
	var mu sync.Mutex
	w := writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(b)
	})
	l := New(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})))
	return l, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer out.Reset()
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var errUnknown = errors.New("No such name for 'metrics': 'm'")

func refusal(client string, points int, example string) Refusal {
	return Refusal{
		Client:  client,
		Via:     "put",
		Reason:  "unknown name",
		Points:  points,
		Err:     errUnknown,
		Example: func() string { return example },
	}
}

func check(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if len(want) == 0 {
		want = []string{""}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: want -, got +: %s", when, diff)
	}
}

// The first refusal is logged at once, the others of a second in one line with their number and
// the first of them. After a silent second a client's next refusal is logged at once again.
func TestLog_oneLineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got := lines()
		line := func(points int, example string) string {
			return fmt.Sprintf(`msg="points were refused" client=10.0.0.1 via=put reason="unknown name" `+
				`points=%d err="No such name for 'metrics': 'm'" example=%q`, points, example)
		}

		l.Refused(refusal("10.0.0.1:1000", 1, "put m 1"))
		check(t, "first", got(), line(1, "put m 1"))
		for i := range 1000 {
			l.Refused(refusal(fmt.Sprint("10.0.0.1:", 1001+i), 2, fmt.Sprint("put m ", 2+i)))
		}
		check(t, "within the second", got())
		time.Sleep(Every)
		synctest.Wait()
		check(t, "after the second", got(), line(2000, "put m 2"))

		// The next second begins with that line.
		l.Refused(refusal("10.0.0.1:7", 1, "put m 3"))
		check(t, "in the second one", got())
		time.Sleep(Every)
		synctest.Wait()
		check(t, "after the second one", got(), line(1, "put m 3"))
		time.Sleep(Every)
		synctest.Wait()
		check(t, "silent", got())
		l.Refused(refusal("10.0.0.1:7", 5, "put m 4"))
		check(t, "again", got(), line(5, "put m 4"))

		// What is held at the end is not lost.
		l.Refused(refusal("10.0.0.1:7", 3, "put m 5"))
		l.Close()
		check(t, "closed", got(), line(3, "put m 5"))
		time.Sleep(2 * Every)
		synctest.Wait()
		check(t, "after the end", got())
	})
}

// Each client, command or route and reason has lines of its own; clients beyond the bound share theirs.
func TestLog_kinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got := lines()
		r := refusal("[::1]:1", 1, "")
		l.Refused(r)
		r.Via = "/api/put"
		l.Refused(r)
		r.Reason, r.Points = "no JSON", 0
		l.Refused(r)
		check(t, "three kinds", got(),
			`msg="points were refused" client=::1 via=put reason="unknown name" points=1 err="No such name for `+
				`'metrics': 'm'"`,
			`msg="points were refused" client=::1 via=/api/put reason="unknown name" points=1 err="No such name `+
				`for 'metrics': 'm'"`,
			`msg="a request to put points was refused" client=::1 via=/api/put reason="no JSON" err="No such `+
				`name for 'metrics': 'm'"`)

		const clients = 100_000
		for i := range clients {
			l.Refused(refusal(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&0xff, i&0xff), 1, ""))
		}
		kinds := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.held)
		}
		all := got()
		if len(all) != maxKinds-2 || kinds() != maxKinds+1 || !strings.Contains(all[len(all)-1], "client=others") {
			t.Errorf("%d clients wrote %d lines and hold %d kinds, the last %s; want %d, with one of all others",
				clients, len(all), kinds(), all[len(all)-1], maxKinds-2)
		}
		time.Sleep(Every)
		synctest.Wait()
		check(t, "others", got(), fmt.Sprintf(`msg="points were refused" client=others via=put reason="unknown `+
			`name" points=%d err="No such name for 'metrics': 'm'"`, clients-(maxKinds-3)-1))
		time.Sleep(Every)
		synctest.Wait()
		if n := kinds(); n != 0 {
			t.Errorf("%d kinds are held after a silent second, want 0", n)
		}
	})
}

// An example and an error are cut to their bound.
func TestLog_long(t *testing.T) {
	l, got := lines()
	long := strings.Repeat("ü", 1<<20)
	r := refusal("c", 1, long)
	r.Err = errors.New(long)
	l.Refused(r)
	l.Close()
	if line := got()[0]; len(line) > 3*maxExample || strings.Count(line, "…") != 2 {
		t.Errorf("the line has %d bytes: %.400s", len(line), line)
	}
	var none *Log
	none.Refused(r)
	none.Close()
}
