package hbase

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tsuna/gohbase/pb"
)

// ErrExpiring is returned for rows that may change without being written: cells
// of a family with a TTL go by themselves, and a coprocessor may do anything.
var ErrExpiring = errors.New("rows may change by themselves")

// mostSeen bounds the regions that a store remembers the state of.
const mostSeen = 10_000

// epochs numbers the sightings of all stores of the process.
var epochs atomic.Uint64

// regionHistory remembers the last state of each region, by family and name, and whether
// the table's description was read while it lasted. A table that is altered
// opens its regions anew, with other states: so what was read holds for as long
// as the state does.
type regionHistory struct {
	mu      sync.Mutex
	regions map[string]observation
}

// observation is a state that was not the one before. Its era has no other.
type observation struct {
	state    regionState
	epoch    uint64
	noExpiry bool
}

// observe returns the mark of some states: their eras. An equal mark was given
// before if all of them were the last ones already; ask tells that there is one
// among those of which nobody knows yet that it is lasting. A mark that nothing
// can be equal to needs no proof: so the master is asked once for a region that
// stays as it is, and never for one that changes all the time.
func (s *regionHistory) observe(family string, states []regionState) (mark string, ask bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.regions == nil || len(s.regions) > mostSeen {
		s.regions = map[string]observation{}
	}
	var b []byte
	for _, state := range states {
		key := family + ":" + state.region
		at := s.regions[key]
		switch {
		case at.state != state:
			at = observation{state: state, epoch: epochs.Add(1)}
			s.regions[key] = at
		case !at.noExpiry:
			ask = true
		}
		b = binary.AppendUvarint(b, at.epoch)
	}
	return string(b), ask
}

// confirmNoExpiry notes that states are lasting, those that still are the last ones.
func (s *regionHistory) confirmNoExpiry(family string, states []regionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range states {
		key := family + ":" + state.region
		if at := s.regions[key]; at.state == state {
			at.noExpiry = true
			s.regions[key] = at
		}
	}
}

// checkNoExpiry returns ErrExpiring if what is visible in the table may change with
// time.
func (st *Store) checkNoExpiry(ctx context.Context, table, family string) error {
	response := &pb.GetTableDescriptorsResponse{}
	request := &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{tableName(table)}}
	if err := st.askMaster(ctx, table, "GetTableDescriptors", request, response); err != nil {
		return fmt.Errorf("description of table %q: %w", table, err)
	}
	if n := len(response.TableSchema); n != 1 {
		return fmt.Errorf("%d descriptions of table %q, want 1", n, table)
	}
	return expiring(table, family, response.TableSchema[0])
}

// expiring returns an error if a table's description says that a family's cells
// have a time to live, or that a coprocessor looks at what is read.
func expiring(table, family string, schema *pb.TableSchema) error {
	for _, a := range schema.GetAttributes() {
		if strings.HasPrefix(strings.ToLower(string(a.First)), "coprocessor$") {
			return fmt.Errorf("%w: table %q has a coprocessor", ErrExpiring, table)
		}
	}
	attributes := familyAttributes(schema, []byte(family))
	if attributes == nil {
		return fmt.Errorf("table %q has no family %q", table, family)
	}
	if ttl := attributes["TTL"]; ttl != "" && ttl != forever && !strings.EqualFold(ttl, "FOREVER") {
		return fmt.Errorf("%w: family %q of table %q has a TTL of %s s", ErrExpiring, family, table, ttl)
	}
	return nil
}
