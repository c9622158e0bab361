package query

import "regexp"

// CompileJava compiles a regular expression of Java for other uses than filters, by RE2
// alone, with a filter's bounds, and returns how many steps it has. Its error is an
// *UnsupportedError for what Java would take.
func CompileJava(text string) (re *regexp.Regexp, steps int, err error) {
	r, err := newLinearRegexp(text)
	if err != nil {
		return nil, 0, err
	}
	return r.re, r.steps, nil
}
