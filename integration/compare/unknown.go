package compare

import (
	"net/http"
	"regexp"
)

// OneOfUnknownNames is the name of a rule: OpenTSDB looks names up side by side, so of
// several unknown names it reports the one that it misses first. Such answers are
// equal if the same question is answered equally without either name, which shows that
// each server knows neither. Because that takes two questions more, it is no Rule: who
// asks applies it, with UnknownNames.
const OneOfUnknownNames = "one of several unknown names"

// UnknownName is a name without a UID.
type UnknownName struct {
	Kind string // metrics, tagk or tagv
	Name string
}

var unknownName = regexp.MustCompile(`^No such name for '(metrics|tagk|tagv)': '(.*)'$`)

// UnknownNames returns the names that two answers miss. ok reports that either misses
// one, and that these differ.
func UnknownNames(want, got Answer) (theirs, ours UnknownName, ok bool) {
	theirs, ok1 := missing(want)
	ours, ok2 := missing(got)
	return theirs, ours, ok1 && ok2 && theirs != ours
}

func missing(a Answer) (UnknownName, bool) {
	m := unknownName.FindStringSubmatch(ErrorMessage(a.Body))
	if m == nil || a.Status != http.StatusBadRequest {
		return UnknownName{}, false
	}
	return UnknownName{Kind: m[1], Name: m[2]}, true
}
