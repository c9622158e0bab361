// Package replay sends the drawn queries that a real OpenTSDB has answered to gateways in this
// process, and compares with its recorded answers: on the embedded store, and on HBase's protocol
// by hbasefake. It needs no server, so the oracle takes part in every run of the tests.
//
// Package differential makes rows and queries from the seed again; a recording of package
// conformance has the answers. TestDifferential of package integration sends them to the real
// OpenTSDB: with the flag -update it writes the recordings, without it it compares them.
package replay
