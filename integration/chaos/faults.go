package chaos

import (
	"context"
	"slices"
)

// fault is one kind of harm. do harms, lasts as long as it has to, heals, and
// returns when it is healed: the harmed process runs, or HBase has every region
// online again. An error says that HBase would not do it.
type fault struct {
	name string
	mild bool // queries must hardly notice it
	do   func(ctx context.Context, w *world) (detail string, err error)
}

// faults are all kinds.
var faults = []fault{
	{"region split", true, split},
	{"regions merged", true, merge},
	{"region moved", true, move},
	{"hbase:meta moved", true, moveMeta},
	{"pushdown killed", true, killPushdown},
	{"pushdown hung", true, hangPushdown},
	{"pushdown drained", true, drainPushdown},
	{"all pushdown killed", true, killAllPushdown},
	{"master killed", true, killMaster},
	{"region server paused", false, pauseRegionServer},
	{"region server hung", false, hangRegionServer},
	{"region server killed", false, killRegionServer},
	{"machine lost", false, loseMachine},
	{"ZooKeeper paused", false, pauseZooKeeper},
	{"ZooKeeper killed", false, killZooKeeper},
}

// faultNamed is the fault of a name; a region server starts after one has been
// killed.
func faultNamed(name string) *fault {
	if name == started {
		name = "region server killed"
	}
	return &faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
}

// started is the fault under which the return of a region server is entered.
const started = "region server started"
