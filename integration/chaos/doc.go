// Package chaos sends the recorded queries to a running installation without pause while it damages
// the servers below, and checks that every answer is the recorded one, or an error.
//
//	Site       one recording in tables of its own, a gateway on them, and a
//	           pushdown server next to each region server, listed or found
//	Fault      one kind of harm: done, healed, and whether queries must hardly
//	           notice it
//	Run        clients that query, faults in an order that the seed decides
//	Report     the answers, and how long until all was whole again
//
// "Whole again" is strict: every query of a fixed set is answered well, no query from before the
// healing still waits, and every part is placed at the pushdown server next to its region.
//
// pushdown/docs/faults.md lists the faults that Downpour is built for, with what was seen
// and the test that covers each.
package chaos
