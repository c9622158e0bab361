// Package integration holds the tests that need more than Go: real HBase and
// OpenTSDB servers, Chromium, pyarrow, our own programs as processes. They
// stand behind the build tag "integration" and run with
//
//	make test
//
// which first installs what is missing. Without the tag only the house rules
// (house_test.go) are tests of this package.
//
// The real OpenTSDB is the oracle: what it stores and answers is right, and
// every permitted difference stands in a table of compare with its reason.
package integration
