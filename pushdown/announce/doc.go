// Package announce lets gateways find pushdown servers, by rows in Downpour's own table.
//
//	record.go     the row of an announcement
//	announcer.go  a pushdown server announces itself
//	watcher.go    a gateway finds the servers that do
//
// # The row
//
// Each process has a row of its own:
//
//	pushdown/rs1:4280/5d41…  s:announcement  {"address":"rs1:4280",…,"instance":"5d41…","sequence":7}⏎9f86… 60af…
//
// The first line is the announcement, the second its signatures, one for each admin token of the server, see package
// proof. The server writes the row each second with the next sequence, and deletes it when it ends. Other servers
// delete that of a process that was killed, minutes later. The sequence is also the timestamp of the cell, so that a
// write counts although the clock of a region server was set back, and although the row of a process that stood still
// was deleted.
//
// # Who counts
//
// No clock is compared with that of another machine. A watcher counts a server once it has seen its sequence advance,
// and until it has not advanced for goneAfter by the watcher's own clock. A row that nobody writes again never counts:
// that of a server that is gone, or one that somebody has written back. A sequence only rises; an earlier one is
// ignored.
//
// Time in which the table cannot be read counts for nobody: the servers that were known stay. Whether one answers is
// found by health checks, as with a list of servers.
//
// # What a writer of the table can do
//
// It can delete rows, and then queries are executed in the gateways. It cannot add a server: an announcement counts if
// one of its signatures is by an admin token that the gateway knows, and if the server then proves the same on each
// connection, before anything else is sent to it. Only where gateways have no admin token, but mutual TLS, does an
// announcement count unsigned: a gateway then dials what the table says, and talks to none that has no certificate of
// its authority.
//
// What is announced of a server is for people: where its parts come from, which tables it reads, and its version are
// taken from its answer to a health check.
package announce
