// Package replay asks gateways in this process the drawn questions that a real OpenTSDB has answered, and compares
// with its recorded answers: on the embedded store, and on HBase's protocol as hbasefake speaks it. It needs no
// server, so the oracle speaks in every run of the tests.
//
// Package differential makes rows and questions from the seed again; a recording of package conformance has the
// answers. TestDifferential of package integration asks the real OpenTSDB the same: with the flag -update it writes the
// recordings, without it it compares them.
package replay
