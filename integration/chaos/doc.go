// Package chaos asks a running installation the recorded questions without
// pause while it harms the servers below, and keeps account: every answer must
// be the recorded one, or say that it is none.
//
//	Site       one recording in tables of its own, a gateway on them, and a
//	           pushdown server beside each region server
//	Fault      one kind of harm: done, healed, and whether queries must hardly
//	           notice it
//	Run        clients asking, faults in an order that the seed decides
//	Report     what was answered, and how long until all was whole again
//
// "Whole again" is strict: every question of a fixed set is answered well,
// nothing asked before the healing still waits, and every part is placed at the
// pushdown server beside its region.
//
// pushdown/docs/faults.md lists the faults that Downpour is built for, with what was seen
// and the test that covers each.
package chaos
