package queryroutes

import (
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
)

// noting is a writer that records when it was flushed.
type noting struct {
	*httptest.ResponseRecorder
	began time.Time
	sent  []time.Duration
}

func (n *noting) Flush() { n.sent = append(n.sent, time.Since(n.began)) }

// Rows of groups that take long to merge are sent before their batch is full; those of quick groups
// share one. A fault is returned with whether rows were sent before it.
func TestArrow_sentWhileMerging(t *testing.T) {
	send := func(took time.Duration, fail error) (n *noting, sent bool, err error) {
		n = &noting{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
		groups := make([]batch.ResultGroup, 10)
		s := &arrowSender{w: n}
		out := batch.NewResultWriter(s, groups, batch.ResultOptions{})
		err = sendGroups(out, s, groups, func(i int) (p encoding.Points, err error) {
			time.Sleep(took)
			p.Append(int64(i), encoding.IntValue(1))
			if i == len(groups)-1 {
				err = fail
			}
			return p, err
		}, func() {}, func(int) {})
		return n, s.sent, err
	}
	synctest.Test(t, func(t *testing.T) {
		n, _, err := send(100*time.Millisecond, nil)
		want := []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond}
		if d := cmp.Diff(want, n.sent); d != "" || err != nil {
			t.Errorf("%v; times of flushes, want -, got +: %s", err, d)
		}
		if n, _, err = send(time.Millisecond, nil); len(n.sent) > 0 || err != nil || n.Body.Len() == 0 {
			t.Errorf("quick groups were sent one by one: %v, %v", n.sent, err)
		}
		fault := errors.New("a fault")
		if _, sent, err := send(100*time.Millisecond, fault); !sent || err != fault {
			t.Errorf("slow groups: got sent %v, %v, want true and the fault", sent, err)
		}
		if n, sent, err := send(time.Millisecond, fault); sent || err != fault || n.Body.Len() > 0 ||
			n.Header().Get("Content-Type") != "" {
			t.Errorf(
				"quick groups, of which the last fails: got sent %v, %v, want false, the fault, and nothing written",
				sent, err)
		}
	})
}
