package putroutes

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/jackson"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// numbered gives every name a number as its UID, except two that fail.
type numbered struct {
	mu  sync.Mutex
	ids map[string]uint64
}

// Generation and Hold say that names never change.
func (n *numbered) Generation() uint64 { return 0 }

// Prepare does nothing: Assign does it all.
func (n *numbered) Prepare(context.Context, encoding.UIDKind, []string) {}

// Cached reports that nothing is new.
func (n *numbered) Cached(encoding.UIDKind, string) bool { return true }

func (n *numbered) Hold() (uint64, func() error) { return 0, func() error { return nil } }

func (n *numbered) Resolve(_ context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	if name == "unknown" {
		return nil, &uid.NoSuchNameError{Kind: kind, Name: name}
	}
	if name == "unreachable" {
		return nil, store.ErrUnavailable
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids[kind.String()+name] == 0 {
		n.ids[kind.String()+name] = uint64(len(n.ids) + 1)
	}
	return encoding.AppendUID(nil, n.ids[kind.String()+name], 3)
}

func (n *numbered) Assign(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	return n.Resolve(ctx, kind, name)
}

// written keeps the mutations that a store was given, as text.
type written struct {
	mu    sync.Mutex
	cells []string
	fail  error
}

func (w *written) Apply(_ context.Context, _ string, mutations []store.Mutation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range mutations {
		w.cells = append(w.cells, fmt.Sprintf("% X %X=%X", m.Row, m.Qualifier, m.Value))
	}
	return w.fail
}

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) Puts(int, int) {}

// storedBy reads a body with read, stores it twice in one process, and returns the answers and the
// cells.
func storedBy(t *testing.T, requestBatchFrom int, body string, fail error,
	read func(context.Context, []byte) (*pointList, error)) (results, cells []string) {
	t.Helper()
	w := &written{fail: fail}
	schema := encoding.DefaultSchema()
	series := write.NewSeries(write.SeriesConfig{Schema: schema, Names: &numbered{ids: map[string]uint64{}}})
	writer := write.New(write.Config{Schema: schema, Table: "tsdb", RequestBatchFrom: requestBatchFrom}, w, series)
	h := &Handlers{Writer: writer, Count: uncounted{}}
	for range 2 { // the second time the series are in the cache
		points, err := read(t.Context(), []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		r := h.store(t.Context(), points)
		results = append(results,
			fmt.Sprintf("%d stored, %d failed, invalid %t, late %d, storage %v: %+v", r.Success, r.Failed, r.invalid,
				r.late, r.storage, r.errors))
	}
	writer.Close()
	return results, w.cells
}

// A body that is scanned and gets request batches has the same answer, and leaves the same cells,
// as one that is decoded and goes to the shards.
func TestStore_scannedIsDecoded(t *testing.T) {
	f := func(points string, fail error) {
		t.Helper()
		body := "[" + points + "]"
		got, gotCells := storedBy(t, 1, body, fail, func(_ context.Context, b []byte) (*pointList, error) {
			l, err := readPoints(t.Context(), b)
			if l.scanned == nil {
				t.Errorf("%s: left to the decoder", body)
			}
			return l, err
		})
		want, wantCells := storedBy(t, 0, body, fail, func(_ context.Context, b []byte) (*pointList, error) {
			decoded, err := decodePoints[dataPoint](b)
			return &pointList{decoded: decoded}, err
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -decoded +scanned\n%s", body, d)
		}
		if d := cmp.Diff(wantCells, gotCells); d != "" {
			t.Errorf("%s: -decoded +scanned\n%s", body, d)
		}
	}
	point := func(metric, at, value, tags string) string {
		return fmt.Sprintf(`{"metric":%q,"timestamp":%s,"value":%s,"tags":{%s}}`, metric, at, value, tags)
	}
	tag := `"host":"a"`
	all := ""
	for _, p := range []string{
		point("m", "1356998400", "1", tag), point("m", "1356998401", "1.5", tag),
		point("m", "1356998402250", `"-7"`, tag), point("m", `"1356998403.9"`, "1e3", tag),
		point("m", "0", "1", tag), point("m", "-1", "1", tag), point("m", `"soon"`, "1", tag),
		point("m", "99999999999999", "1", tag), point("m", "1e20", "1", tag), point("m", "1.3569984e9", "1", tag),
		point("m", "0", `"x"`, tag), point("m", "1356998405", `""`, tag), point("m", "1356998405", `"x"`, tag),
		point("m", "1356998405", "9223372036854775808", tag), point("m", "1356998405", "1e999", tag),
		point("", "1356998406", "1", tag), point("m m", "1356998406", "1", tag), point("m", "1356998406", "1", ""),
		point("m", "1356998406", "1", `"host":""`), point("m", "1356998406", "1", `"":"a"`),
		point("m", "1356998407", "1", `"host":"b","host":"a"`), point("m", "1356998408", "1", `"b":"1","a":2`),
		point("m", "1356998409", "1", `"a":"2","b":1`),
		point("unknown", "1356998410", "1", tag), point("unknown", "0", "1", tag),
		point("unreachable", "1356998410", "1", tag),
		point("m", "1356998411", "1", `"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","h":"1","i":"1"`),
	} {
		f(p, nil)
		f(p, store.ErrUnavailable)
		all += p + ","
	}
	f(all[:len(all)-1], nil)
	f(all[:len(all)-1], store.ErrUnavailable)
}

// Each point of a lost batch is listed with the store's error; the invalid point between them keeps
// its own.
func TestStore_lostPoints(t *testing.T) {
	point := func(at, value string) string {
		return fmt.Sprintf(`{"metric":"m","timestamp":%s,"value":%s,"tags":{"a":"b"}}`, at, value)
	}
	body := "[" + point("1356998400", "1") + "," + point("1356998401", "2") + "," + point("1356998402", `"x"`) + "," +
		point("1356998403", "4") + "]"
	lost := func(at int64, value, why string) pointError {
		return pointError{echo{"m", timestamp{jackson.Integer, strconv.FormatInt(at, 10)}, value,
			map[string]string{"a": "b"}}, why}
	}
	const why = "Storage exception: store unavailable"
	want := fmt.Sprintf("0 stored, 4 failed, invalid true, late 0, storage store unavailable: %+v", []pointError{
		lost(1356998402, "x", write.ErrValue.Error()), lost(1356998400, "1", why), lost(1356998401, "2", why),
		lost(1356998403, "4", why)})
	for _, requestBatchFrom := range []int{0, 1} {
		got, _ := storedBy(t, requestBatchFrom, body, store.ErrUnavailable, readPoints)
		if d := cmp.Diff([]string{want, want}, got); d != "" {
			t.Errorf("request batches from %d: -want +got\n%s", requestBatchFrom, d)
		}
	}
}
