package httpio

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// The beginning of a body can be had before and after the body is read, and reading it
// then gives all bytes and the error behind them.
func TestBodyBeginning(t *testing.T) {
	broken := errors.New("broken")
	for _, k := range []struct {
		body string
		err  error
		want string
	}{
		{"", nil, ""}, {"ab", nil, "ab"}, {"abc", nil, "abc"}, {"abcd", nil, "abc"}, {"", broken, ""},
		{"ab", broken, "ab"}, {"abcd", broken, "abc"},
	} {
		var in io.Reader = strings.NewReader(k.body)
		if k.err != nil {
			in = io.MultiReader(in, iotest.ErrReader(k.err))
		}
		var asked *http.Request
		WithRequestID(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", iotest.OneByteReader(in)))
		if got := BodyBeginning(asked, 3); got != k.want {
			t.Errorf("%q: got %q before it is read, want %q", k.body, got, k.want)
		}

		body, err := ReadBody(httptest.NewRecorder(), asked)
		if k.err == nil && (err != nil || string(body) != k.body) ||
			k.err != nil && (err == nil || !strings.Contains(err.Error(), "broken")) {
			t.Errorf("%q with error %v: read %q, %v", k.body, k.err, body, err)
		}
		if k.err != nil {
			continue
		}
		if got := BodyBeginning(asked, 3); got != k.want {
			t.Errorf("%q: got %q after it is read, want %q", k.body, got, k.want)
		}
	}
	if got := BodyBeginning(&http.Request{}, 3); got != "" {
		t.Errorf("without a body: got %q", got)
	}
}
