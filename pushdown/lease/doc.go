// Package lease gives a piece of work to one worker at a time, and keeps how far it is, in
// the table of our own.
//
//	keeper.go  takes leases: of those that are free, and of holders that are dead
//	look.go    many leases at once, of which none is taken
//	lease.go   a lease that is held: it is renewed, carries a state, is lost or released
//	record.go  the cell of a lease
//	table.go   the table
//
// # The cell
//
// A lease is one cell: a line of JSON, and behind it the state that the last holder saved.
//
//	lease/compact/tsdb/000001  s:lease  {"holder":"web1:4711:9f3c2a1b","turn":"5d41…","beat":7}⏎{"done":…}
//
// Whoever writes it compares it with what was read: a CompareAndPut of the store. No two
// values are equal: each time that the lease is taken has a turn, a number drawn at random,
// and each write within a turn its own beat. So a write that comes late, after others have
// written, changes nothing.
//
// # Who holds it
//
// A holder writes the next beat every Keeper.Beat. No clock is compared with that of another
// machine: who waits takes the lease once its value has not changed for Keeper.Dead by the
// waiter's own monotonic clock, and then still only if the value is the one that it saw.
//
// A holder counts the time from before its last write that is known to have succeeded. The
// context of the lease ends one beat before anybody could take it; at once when the holder
// finds another's turn in the cell. So as long as the process runs, nobody else has the lease
// while its context is alive. A process that is stopped, or a machine that sleeps, may go on
// for a moment when it wakes, until its timers are seen to; what is written through the store
// by then is not stopped by the lease. The first write to the lease, at the latest one beat
// later, ends the context.
//
// A lease alone therefore never makes work safe: what is done under it must be safe if two do
// it at once. It saves the work of two.
//
// # A write that may have happened
//
// After an error the cell is read. It holds what was to be written; or another value of the
// same turn, which came late and from which the next write goes on; or another turn's, and the
// lease is lost; or still the old value: then nothing is known, because the write may still
// come, and the error is returned. The lease is not lost by that, and the next beat learns
// what has become of it.
package lease
