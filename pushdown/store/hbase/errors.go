package hbase

import (
	"errors"

	"downpour/pushdown/store/hbase/calls"
)

// The errors of a fault are wrapped in store.ErrUnavailable, store.ErrNoTable and so on
// before a caller sees them; regions.Retrier translates. Each error has its
// calls.RetryClass, unless that is the default (ClassUnknown).

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
	// errWritePending is returned when a region is sent nothing because the reply to a write whose
	// caller has left is still pending (ClassRetry).
	errWritePending = calls.NewFault(calls.ClassRetry, "an earlier write is not answered yet")
)
