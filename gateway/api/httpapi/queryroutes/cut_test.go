package queryroutes

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

var errCut = errors.New("the client is gone")

// cutWriter takes so many bytes and then fails.
type cutWriter struct {
	httptest.ResponseRecorder
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		return 0, errCut
	}
	c.left -= len(p)
	return c.ResponseRecorder.Write(p)
}

func someResults(n int) []engine.Result {
	r := engine.Result{}
	r.Metric = "m"
	for i := range n {
		r.Points.Append(int64(1356998400000+i*1000), encoding.FloatValue(float64(i)))
	}
	return []engine.Result{r}
}

// Writing an answer that is cut returns errCut, which aborts the connection, and a cut Arrow stream
// has no end mark.
func TestAnswer_cut(t *testing.T) {
	end := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}
	forms := map[string]func(http.ResponseWriter) error{
		"json": func(w http.ResponseWriter) error {
			return writeAnswer(w, httptest.NewRequest("GET", "/", nil), &query.Query{},
				newWorkTime(t.Context(), time.Minute), someResults(20_000), engine.Stats{}, nil)
		},
		"arrow": func(w http.ResponseWriter) error {
			f := &filler{
				answer: &engine.Answer{Results: someResults(20_000)},
				ctx:    t.Context(),
				left:   time.Hour,
				check:  func(int) error { return nil },
			}
			_, err := writeArrow(w, f, batch.ResultOptions{})
			return err
		},
	}
	for name, write := range forms {
		whole := &cutWriter{ResponseRecorder: *httptest.NewRecorder(), left: 1 << 30}
		if err := write(whole); err != nil {
			t.Fatal(err)
		}
		size := whole.Body.Len()
		if name == "arrow" && !bytes.HasSuffix(whole.Body.Bytes(), end) {
			t.Error("the whole stream has no end mark")
		}
		for _, left := range []int{0, 1, size / 2, size - 1} {
			w := &cutWriter{ResponseRecorder: *httptest.NewRecorder(), left: left}
			if err := write(w); !errors.Is(err, errCut) {
				t.Errorf("%s cut at %d of %d: %v", name, left, size, err)
			}
			if bytes.HasSuffix(w.Body.Bytes(), end) || w.Body.Len() == size {
				t.Errorf("%s cut at %d of %d: it ends as a whole answer does", name, left, size)
			}
			if v := panicOf(func() { Abort(errCut) }); v != http.ErrAbortHandler {
				t.Errorf("abort panics with %v, want http.ErrAbortHandler", v)
			}
		}
	}
}

func panicOf(do func()) (v any) {
	defer func() { v = recover() }()
	do()
	return nil
}
