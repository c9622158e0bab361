package regions

import (
	"errors"
	"fmt"

	"downpour/pushdown/store/hbase/calls"
)

// Errors of finding regions and servers; retry after looking up again
// (ClassRelocate).
var (
	// errZooKeeper is returned when a look-up in ZooKeeper has failed.
	errZooKeeper = calls.NewFault(calls.ClassRelocate, "ZooKeeper")
	// errZooKeeperSASL is returned when ZooKeeper closes our sessions since they are not
	// authenticated.
	errZooKeeperSASL = errors.New(
		"it wants sessions to be authenticated with SASL (sessionRequireClientSASLAuth or enforce.auth.enabled), " +
			"and ours never are: " +
			"name bootstrap nodes in its place, DOWNPOUR_STORE=hbase+rpc://HOST:PORT[,HOST:PORT…] with masters or " +
			"region servers")
	// errNodes is returned when no bootstrap node knows where a server is.
	errNodes = calls.NewFault(calls.ClassRelocate, "bootstrap nodes")
	// ErrMeta is returned when an answer of hbase:meta cannot be used at the
	// moment: a region without a server, a hole between regions, the parent of a
	// split.
	ErrMeta = calls.NewFault(calls.ClassRelocate, "hbase:meta")
	// ErrMoved is returned when a region is not where the region cache says.
	ErrMoved = fmt.Errorf("%w: region is not as cached", ErrMeta)
)

// Errors of operations on rows.
var (
	// errUnknownOutcome is returned when an operation may have been executed and
	// must not be sent again.
	errUnknownOutcome = errors.New("the change may have been made")
	// ErrRegionBusy is returned when a region is sent nothing because it has just
	// refused writes (ClassRetry).
	ErrRegionBusy = calls.NewFault(calls.ClassRetry, "the region has lately refused writes")
)
