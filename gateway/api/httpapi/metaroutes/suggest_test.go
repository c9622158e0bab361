package metaroutes

import (
	"net/http/httptest"
	"testing"
)

func TestReadSuggestion_max(t *testing.T) {
	f := func(max string, want int) {
		t.Helper()
		asked, err := readSuggestion(nil, httptest.NewRequest("GET", "/api/suggest?type=metrics&max="+max, nil))
		if got := asked.most; got != want || (err != nil) != (want == 0) {
			t.Errorf("max=%s: %d, %v, want %d", max, asked.most, err, want)
		}
	}
	f("", 25)
	f("7", 7)
	f("0", 25)
	f("-3", 25)
	f("2147483647", 1<<31-1)
	f("2147483648", 0)
	f("x", 0)
}

// More names than an answer may have are refused, not cut.
func TestCheckSuggestions(t *testing.T) {
	if err := checkSuggestions(maxSuggestions); err != nil {
		t.Error(err)
	}
	if err := checkSuggestions(maxSuggestions + 1); err == nil {
		t.Error("got no error for more names than one answer may have")
	}
}
