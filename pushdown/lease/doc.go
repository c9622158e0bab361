// Package lease gives a job to one worker at a time, and keeps its progress, in Downpour's own
// table.
//
//	keeper.go  takes leases that are free, or whose holders are dead
//	look.go    reads many leases in one call, and takes none
//	lease.go   a lease that is held: it is renewed, has a state, is lost or released
//	record.go  the cell of a lease
//	table.go   the table
//
// # The cell
//
// A lease is one cell: a line of JSON, and after it the state that the last holder saved.
//
//	lease/compact/tsdb/000001  s:lease  {"holder":"web1:4711:9f3c2a1b","turn":"5d41…","beat":7}⏎{"done":…}
//
// Each write is a CompareAndPut of the store against the value that was read. No two values are
// equal: each time that the lease is taken it gets a turn, a random number, and each write within a
// turn its own beat number. So a late write, after others have written, changes nothing.
//
// # Who holds it
//
// A holder writes the next heartbeat every Keeper.Heartbeat. No clock is compared with that of another
// machine: a waiter takes the lease once its value has not changed for Keeper.DeadAfter by the waiter's
// own monotonic clock, and then only if the value is still the one that it saw.
//
// A holder counts the time from before its last write that is known to have succeeded. The context
// of the lease ends one heartbeat before anybody could take it, and immediately when the holder finds
// another's turn in the cell. So as long as the process runs, nobody else has the lease while its
// context is alive. After a stopped process or a sleeping machine resumes, work may continue for a
// moment, until its timers have run; the lease does not stop writes to the store in that moment.
// The next write to the lease, at the latest one heartbeat later, ends the context.
//
// A lease alone therefore never makes work safe: work under it must be safe if two do it
// concurrently. The lease only avoids doing it twice.
//
// # A write that may have happened
//
// After an error the cell is read. It holds the new value; or another value of the same turn, which
// came late and which the next write replaces; or another turn's, and the lease is lost; or still
// the old value: then the outcome is unknown, because the write may still come, and the error is
// returned. The lease is not lost by that, and the next heartbeat finds the outcome.
package lease
