package hbase

import (
	"downpour/pushdown/store/hbase/calls"
	"errors"
	"fmt"
)

// The errors of a fault are wrapped in store.ErrUnavailable, store.ErrNoTable and
// so on before a caller sees them; retry.go translates. Each error says which
// calls.RetryClass it has, where that is not the default (ClassUnknown).

// ErrExpiring is returned when rows may change without being written: cells of a
// family with a TTL expire by themselves, and a coprocessor may do anything.
var ErrExpiring = errors.New("rows may change without being written")

// Errors of finding regions and servers; retry after looking up again
// (ClassRelocate).
var (
	// errZooKeeper is returned when a look-up in ZooKeeper has failed.
	errZooKeeper = calls.NewFault(calls.ClassRelocate, "ZooKeeper")
	// errZooKeeperSASL is returned when ZooKeeper closes our sessions since they are not
	// authenticated.
	errZooKeeperSASL = errors.New("it wants sessions to be authenticated with SASL (sessionRequireClientSASLAuth or enforce.auth.enabled), and ours never are: " +
		"name bootstrap nodes in its place, DOWNPOUR_STORE=hbase+rpc://HOST:PORT[,HOST:PORT…] with masters or region servers")
	// errNodes is returned when no bootstrap node has told where a server is.
	errNodes = calls.NewFault(calls.ClassRelocate, "bootstrap nodes")
	// errMeta is returned when an answer of hbase:meta cannot be used at the
	// moment: a region without a server, a hole between regions, the parent of a
	// split.
	errMeta = calls.NewFault(calls.ClassRelocate, "hbase:meta")
	// errMoved is returned when a region is not where the region cache says.
	errMoved = fmt.Errorf("%w: region is not as cached", errMeta)
)

// Errors of replies.
var (
	// errReply is returned when a reply contradicts its request or itself.
	errReply = errors.New("malformed reply")
	// errLeftOut is returned when a reply lacks the outcome of an action; the
	// action may have been executed or not.
	errLeftOut = errors.New("outcomes are left out")
)

// Errors of writes.
var (
	// errUnknownOutcome is returned when an operation may have been executed and
	// must not be sent again.
	errUnknownOutcome = errors.New("the change may have been made")
	// errWritePending is returned when a region is sent nothing because a write
	// whose caller has left is not answered yet (ClassRetry).
	errWritePending = calls.NewFault(calls.ClassRetry, "an earlier write is not answered yet")
	// errRegionBusy is returned when a region is sent nothing because it has just
	// refused writes (ClassRetry).
	errRegionBusy = calls.NewFault(calls.ClassRetry, "the region has lately refused writes")
)

// Errors of version tokens. They do not mean that the rows cannot be read.
var (
	// errNoReadPoint is returned when a server sends no MVCC read point: it is
	// older than HBase 1.3, or not HBase's.
	errNoReadPoint = errors.New("the server sends no MVCC read point")
	// errNoState is returned when hbase:meta does not say whether a region is open: HBase is older
	// than 2.0.
	errNoState = fmt.Errorf("%w: no state of the region", errMeta)
	// errReopened is returned when a region was opened again while its state was
	// read.
	errReopened = errors.New("regions are being opened again")
	// errMetaSilent is returned for a while after the server of hbase:meta has let
	// a request for a version token time out.
	errMetaSilent = errors.New("the server of hbase:meta did not answer in time")
	// errDearProof is returned when looking for changes of a range takes as long as
	// reading it may.
	errDearProof = errors.New("looking for changes takes too long")
	// errClocks is returned when it is not known that a server's clock is right.
	errClocks = errors.New("timestamps prove nothing")
	// errReplicated is returned when cells may have timestamps of another cluster.
	errReplicated = errors.New("timestamps prove nothing beside replication")
)
