// Package list reads the lists of settings. Blanks around an entry do not count, and an entry
// that cannot be used does not keep a program from using the others.
package list

import (
	"fmt"
	"log/slog"
	"strings"
)

// Split returns the entries of a text that has commas between them.
func Split(text string) []string { return Trim(strings.Split(text, ",")) }

// Trim returns entries without the blanks around them, and leaves empty ones out.
func Trim(entries []string) (out []string) {
	for _, e := range entries {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// Usable returns what parse makes of the entries, and the errors of those that it refuses. It is an
// error if there are entries and parse refuses them all.
func Usable[T any](entries []string, parse func(string) (T, error)) (usable []T, unusable []error, err error) {
	for _, e := range Trim(entries) {
		v, err := parse(e)
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		usable = append(usable, v)
	}
	if len(usable) > 0 {
		return usable, unusable, nil
	}
	for _, each := range unusable {
		if err == nil {
			err = each
		} else {
			err = fmt.Errorf("%w; %w", err, each)
		}
	}
	return nil, unusable, err
}

// Warn logs the error of each entry that is skipped in the list of a variable.
func Warn(log *slog.Logger, variable string, unusable []error) {
	for _, err := range unusable {
		log.Warn("ignoring an unusable entry of a list", "variable", variable, "err", err)
	}
}
