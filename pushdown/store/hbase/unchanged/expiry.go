package unchanged

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
)

// maxHistory bounds the regions whose last state is kept.
const maxHistory = 10_000

// epochs counts the observed states of all stores of the process, so that no number is used for two
// states.
var epochs atomic.Uint64

// regionHistory keeps the last observed state of each region and family, and whether cells expire,
// if the table's description was read since then. Altering a table reopens its regions, and so
// changes their states: the description is valid as long as the state.
type regionHistory struct {
	mu      sync.Mutex
	regions map[string]observation // by family, then region name
}

// observation is a newly observed state of a region, with an epoch of its own.
type observation struct {
	state    regionState
	epoch    uint64
	checked  bool  // the table's description was read, see checkNoExpiry
	expiring error // with checked: an ErrExpiring, nil if nothing expires
}

// observe returns the version token of some states, which consists of their epochs. It
// equals an earlier token only if none of the regions was observed in another state in
// between. needsCheck is set if an equal token may have been returned before and it is
// still unknown whether cells of a region expire. The error is an ErrExpiring if it is
// known that they do.
//
// A token that equals no earlier one proves nothing, so it needs no check. So the master is called
// once for a region that does not change, and never for one that changes all the time.
func (h *regionHistory) observe(family string, states []regionState) (token string, needsCheck bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	// A dropped region gets a new epoch, so no token equals an earlier one.
	if h.regions == nil || len(h.regions) > maxHistory {
		h.regions = map[string]observation{}
	}

	var b []byte
	for _, state := range states {
		key := family + ":" + state.region
		last := h.regions[key]
		switch {
		case last.state != state:
			last = observation{state: state, epoch: epochs.Add(1)}
			h.regions[key] = last
		case !last.checked:
			needsCheck = true
		case last.expiring != nil:
			return "", false, last.expiring
		}
		b = binary.AppendUvarint(b, last.epoch)
	}
	return string(b), needsCheck, nil
}

// lastToken returns the token that observe would return for some states, if they are the last
// observed ones and need no check. It records nothing, so it may be called for unproven states.
func (h *regionHistory) lastToken(family string, states []regionState) (token string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var b []byte
	for _, state := range states {
		last := h.regions[family+":"+state.region]
		if last.state != state || !last.checked || last.expiring != nil {
			return "", false
		}
		b = binary.AppendUvarint(b, last.epoch)
	}
	return string(b), true
}

// noteChecked notes the result of checkNoExpiry for some states: expiring is an ErrExpiring, nil if
// nothing expires. It skips regions that were observed in another state since.
func (h *regionHistory) noteChecked(family string, states []regionState, expiring error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, state := range states {
		key := family + ":" + state.region
		if last := h.regions[key]; last.state == state {
			last.checked, last.expiring = true, expiring
			h.regions[key] = last
		}
	}
}

// checkNoExpiry reads the table's description from the master. It returns ErrExpiring
// if what is visible of the family may change without a write, or without a new timestamp if
// timestamps are the proof.
func (p *Prover) checkNoExpiry(ctx context.Context, table, family string) error {
	schema, err := p.router.Describe(ctx, table)
	if err != nil {
		return err
	}
	// Some stores that are not the usual ones, as StripeStoreEngine, drop delete markers in compactions
	// of some of their files.
	if engine := regions.StoreEngine(schema, family); engine != "" && p.cfg.Proof == ProofTimestamps {
		return fmt.Errorf("%w: table %q has the store engine %s", ErrExpiring, table, engine)
	}
	return checkSchemaNoExpiry(table, family, schema)
}

// forever is the number that HBase's shell sends for TTL => 'FOREVER'.
const forever = "2147483647"

// checkSchemaNoExpiry returns ErrExpiring if the family's cells have a time to
// live, or a coprocessor of the table may change what is read.
func checkSchemaNoExpiry(table, family string, schema *pb.TableSchema) error {
	for _, a := range schema.GetAttributes() {
		if strings.HasPrefix(strings.ToLower(string(a.First)), "coprocessor$") {
			return fmt.Errorf("%w: table %q has a coprocessor", ErrExpiring, table)
		}
	}

	attributes := regions.FamilyAttributes(schema, []byte(family))
	if attributes == nil {
		return fmt.Errorf("table %q has no family %q", table, family)
	}
	if ttl := attributes["TTL"]; ttl != "" && ttl != forever && !strings.EqualFold(ttl, "FOREVER") {
		return fmt.Errorf("%w: family %q of table %q has a TTL of %s s", ErrExpiring, family, table, ttl)
	}
	return nil
}
