package query

import (
	"errors"
	"fmt"
	"testing"

	"downpour/encoding"
)

// An unknown name is recognised by its type, and answered as a 400 with its message in
// the details too.
func TestUnknownNameError(t *testing.T) {
	err := fmt.Errorf("compiling: %w", &UnknownNameError{Kind: encoding.UIDTagK, Name: "host"})
	const message = "No such name for 'tagk': 'host'"

	var unknown *UnknownNameError
	if !errors.As(err, &unknown) || unknown.Name != "host" || unknown.Error() != message {
		t.Errorf("%v is not recognised as an unknown name: %v", err, unknown)
	}
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != 400 || answer.Message != message || answer.Details != message {
		t.Errorf("the answer is %+v, want status 400 and twice %q", answer, message)
	}
}
