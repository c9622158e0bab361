package hbase

import (
	"context"
	"errors"
	"fmt"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/unchanged"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
)

// What servers may lack, and the alternative. This is only for the log, except that appends want their
// result of HBase 1: each call checks for itself, because region servers of several versions may serve
// one table.
const (
	lacksReadPoint = "read points of regions (1.3): nothing is cached of rows, each query reads HBase"
	lacksState     = "states of regions in hbase:meta (2.0): nothing is cached of rows, each query reads HBase, " +
		"and a disabled table is known by its silence alone"
	lacksConditions = "conditions on changes of rows (2.4): names of new series are put one by one, " +
		"and no rows are compacted"
	lacksTrial = "a trial: nothing before 1.1 was ever tried, so nothing is known of its answers, " +
		"and none should be relied on"
	lacksNodes = "region servers that are bootstrap nodes (2.5): only masters answer as such"
)

// fieldStatusOption is GetClusterStatusRequest.options, which gohbase's schema lacks: 0 requests
// only the version. Before 2.0 the master returns everything.
const fieldStatusOption = 1

// Inspect is described by store.Features. Read points and states are tested in one region of the
// table. Whether a server checks conditions shows only in a change, so that is derived from the
// master's version.
func (st *Store) Inspect(ctx context.Context, table, family string) (store.Inspection, error) {
	if err := st.life.Begin(); err != nil {
		return store.Inspection{}, err
	}
	defer st.life.Done()

	version, err := st.masterVersion(ctx)
	if err != nil {
		return store.Inspection{}, fmt.Errorf("cannot ask the master for its version: %w", err)
	}
	r, err := parseRelease(version)
	if r.before(2, 0) { // also if the version is not a number: the server may be as old
		st.appendResults.Store(true) // known even if the rest cannot be found out
	}
	found := store.Inspection{Version: version}
	if err != nil {
		return found, err
	}
	if err := st.awaitTokens(ctx, table, family); errors.Is(err, unchanged.ErrNoReadPoint) {
		found.Lacks = append(found.Lacks, lacksReadPoint)
	} else if errors.Is(err, unchanged.ErrNoState) {
		found.Lacks = append(found.Lacks, lacksState)
	} else if err != nil {
		return found, fmt.Errorf("HBase %s: cannot find out whether it proves that rows have not changed: %w", version,
			err)
	}

	if r.before(2, 4) {
		found.Lacks = append(found.Lacks, lacksConditions)
	}
	if r.before(1, 1) {
		found.Lacks = append(found.Lacks, lacksTrial)
	}
	if r.before(2, 5) && st.router.ByNodes() {
		found.Lacks = append(found.Lacks, lacksNodes)
	}
	return found, nil
}

// masterVersion gets the master's version.
func (st *Store) masterVersion(ctx context.Context) (string, error) {
	request, response := &pb.GetClusterStatusRequest{}, &pb.GetClusterStatusResponse{}
	request.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, fieldStatusOption,
		protowire.VarintType), 0))
	err := st.router.CallMaster(ctx, "", "GetClusterStatus", request, response)
	return response.GetClusterStatus().GetHbaseVersion().GetVersion(), err
}

// awaitTokens returns an error if the table's first region gives no version token. Short faults,
// such as a move of the region, are retried.
func (st *Store) awaitTokens(ctx context.Context, table, family string) error {
	retry := st.router.NewRetrier(ctx, table)
	for {
		err := st.prover.TryTokens(ctx, table, family)
		if err == nil || errors.Is(err, unchanged.ErrNoReadPoint) || errors.Is(err, unchanged.ErrNoState) {
			return err
		}
		if err := retry.AfterFailure(err); err != nil {
			return err
		}
	}
}

// release is the comparable part of a version.
type release struct{ major, minor int }

// parseRelease parses "MAJOR.MINOR…", as of "2.1.0-cdh6.3.4".
func parseRelease(version string) (r release, err error) {
	if _, err := fmt.Sscanf(version, "%d.%d", &r.major, &r.minor); err != nil {
		return r, fmt.Errorf("version of HBase: got %q, want MAJOR.MINOR…", version)
	}
	return r, nil
}

// before reports whether a release came before another.
func (r release) before(major, minor int) bool {
	return r.major < major || r.major == major && r.minor < minor
}
