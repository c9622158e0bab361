package httpio

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"downpour/pushdown/store"
)

// What the store refuses is not the request's fault, wherever it was met.
func TestClassify_store(t *testing.T) {
	for fault, want := range map[error]int{
		store.ErrNoTable:     http.StatusFailedDependency,
		store.ErrDenied:      http.StatusFailedDependency,
		store.ErrRefused:     http.StatusFailedDependency,
		store.ErrUnavailable: http.StatusFailedDependency,
		store.ErrClosed:      http.StatusFailedDependency,
		store.ErrFull:        http.StatusServiceUnavailable,
		store.ErrStalled:     http.StatusServiceUnavailable,
		store.ErrDamaged:     http.StatusInternalServerError,
		errors.New("other"):  http.StatusBadRequest,
	} {
		if got := Classify(fmt.Errorf("uid: cannot read %q: %w", "sys.cpu", fault)).Code; got != want {
			t.Errorf("%v: got %d, want %d", fault, got, want)
		}
	}
}
