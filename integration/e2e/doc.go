// Package e2e starts, watches and ends real processes for tests and
// benchmarks: a distributed HBase, HDFS under it, a Kerberos KDC, OpenTSDB, our own programs,
// Python, Node.
//
// Everything listens on 127.0.0.1 at ports found free at the moment of the
// start, lives in a directory of its own, and is ended by process id. A child
// dies with the process that started it, also when that one is killed. Nothing
// here waits by sleeping for a fixed time: a start polls the thing that its
// user needs (a live region server, an answered request) until it holds or the
// context ends, and an error carries the end of the process's log.
//
// What must be installed first is the business of integration/setup; a missing
// piece is an error that says so.
//
// The package imports only encoding and the standard library, so tests of any
// package and the bench program may use it.
package e2e
