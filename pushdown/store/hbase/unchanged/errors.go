package unchanged

import (
	"errors"
	"fmt"

	"downpour/pushdown/store/hbase/regions"
)

// ErrExpiring is returned when rows may change without being written: cells of a family with a TTL
// expire, and a coprocessor may do anything.
var ErrExpiring = errors.New("rows may change without being written")

// Errors of version tokens. They do not mean that the rows cannot be read.
var (
	// ErrNoReadPoint is returned when a server sends no MVCC read point: it is
	// older than HBase 1.3, or not HBase's.
	ErrNoReadPoint = errors.New("the server sends no MVCC read point")
	// ErrNoState is returned when hbase:meta lacks whether a region is open: HBase is
	// older than 2.0.
	ErrNoState = fmt.Errorf("%w: no state of the region", regions.ErrMeta)
	// errReopened is returned when a region was opened again while its state was
	// read.
	errReopened = errors.New("regions are being opened again")
	// errMetaSilent is returned for a while after the server of hbase:meta has let
	// a request for a version token time out.
	errMetaSilent = errors.New("the server of hbase:meta did not answer in time")
	// errSlowProof is returned when looking for changes of a range takes as long as
	// reading it may.
	errSlowProof = errors.New("looking for changes takes too long")
	// errClocks is returned when it is not known that a server's clock is right.
	errClocks = errors.New("timestamps prove nothing")
	// errReplicated is returned when cells may have timestamps of another cluster.
	errReplicated = errors.New("timestamps prove nothing about a table that is replicated")
)
