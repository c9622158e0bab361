package scanplan

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// HexBytes are bytes that are lower-case hex in JSON and text.
type HexBytes []byte

// MarshalText writes hex.
func (b HexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText reads hex.
func (b *HexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(nil, text)
	return err
}

// String is the bytes in hex.
func (b HexBytes) String() string { return hex.EncodeToString(b) }

// Part is a plan and an interval of its keys: the unit of execution, of retries, and
// of merging, which takes each part exactly once. A part is an interval of keys and
// not a region: a row is atomic, so disjoint intervals give each row once, whichever
// regions split or move.
type Part struct {
	Plan  Plan
	Range KeyRange
	// Mode is the form of the part's answer. A server that does not know the field
	// refuses the ticket.
	Mode Mode `json:",omitempty"`
}

// Mode is what a part computes from its rows.
type Mode string

const (
	// PerSeries parts answer with the columns of each series. The gateway
	// aggregates them in the order of spans, as OpenTSDB does. In the wire form it
	// is the empty mode.
	PerSeries Mode = ""
	// PartialAggregation parts answer with a partial aggregate for each group and
	// bucket. They are whole hours of a plan whose buckets divide the hour. Parts of
	// histograms answer with sums, and need not be whole hours.
	PartialAggregation Mode = "partial"
	// PartialWithoutNames is PartialAggregation of a part that is all of its plan, for an answer that names no series:
	// of the members of a group it lists those alone whose tags say something new. Servers of 0.1.0 refuse it.
	PartialWithoutNames Mode = "partial without names"
	// Aligned parts answer with the finished aggregates of each group whose series have
	// points at the same times, or say that they do not. They are whole hours of the only
	// salt bucket of a plan without buckets.
	Aligned Mode = "aligned"
)

// IsPartial reports whether parts answer with partial aggregates.
func (m Mode) IsPartial() bool { return m == PartialAggregation || m == PartialWithoutNames }

// String is the mode as explain shows it and as the query parameter mode names it.
func (m Mode) String() string {
	switch m {
	case PerSeries:
		return "strict"
	case PartialWithoutNames:
		return string(PartialAggregation)
	}
	return string(m)
}

// Starts reports whether the part begins where a range of the plan begins: the plan
// has no row before it in its salt bucket.
func (p *Part) Starts() bool {
	for _, r := range p.Plan.Ranges {
		if bytes.Equal(r.Start, p.Range.Start) {
			return true
		}
	}
	return false
}

// Ends reports whether the part ends where a range of the plan ends: the plan has no
// row after it in its salt bucket.
func (p *Part) Ends() bool {
	for _, r := range p.Plan.Ranges {
		if bytes.Equal(r.Stop, p.Range.Stop) {
			return true
		}
	}
	return false
}

// MarshalTicket returns the part's wire form: JSON, UTF-8.
func (p *Part) MarshalTicket() ([]byte, error) { return json.Marshal(p) }

// ParseTicket reads and validates a part. It fails for unknown fields and versions: a
// field that is not understood could change the answer.
func ParseTicket(b []byte) (*Part, error) {
	// The version is checked first, so that a plan of another version is refused for its version
	// and not for one of its fields.
	var version struct{ Plan struct{ Version int } }
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, fmt.Errorf("scanplan: ticket of %d bytes: %w", len(b), err)
	}
	if version.Plan.Version != Version {
		return nil, fmt.Errorf("scanplan: version %d, want %d", version.Plan.Version, Version)
	}

	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	p := new(Part)
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("scanplan: ticket of %d bytes: %w", len(b), err)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}

	return p, nil
}

// Validate checks the plan, and that the part is inside one of its ranges: rows
// elsewhere belong to other metrics or to another salt bucket.
func (p *Part) Validate() error {
	if err := p.Plan.Validate(); err != nil {
		return err
	}
	if p.Range.empty() {
		return fmt.Errorf("scanplan: part from %s to %s is empty", p.Range.Start, p.Range.Stop)
	}
	if err := p.validateMode(); err != nil {
		return err
	}

	for _, r := range p.Plan.Ranges {
		if r.covers(p.Range) {
			return nil
		}
	}

	return fmt.Errorf("scanplan: part from %s to %s is in none of the plan's ranges", p.Range.Start, p.Range.Stop)
}

// validateMode checks what partial aggregation demands: a bucket must be known
// completely where it is aggregated.
func (p *Part) validateMode() error {
	switch p.Mode {
	case PerSeries:
		return nil
	case Aligned:
		return p.validateAligned()
	case PartialAggregation:
	case PartialWithoutNames:
		if len(p.Plan.Ranges) != 1 || !p.Range.covers(p.Plan.Ranges[0]) {
			return fmt.Errorf("scanplan: mode %q of the part from %s to %s, want it of all the plan", string(p.Mode),
				p.Range.Start, p.Range.Stop)
		}
	default:
		return fmt.Errorf("scanplan: mode %q, want none, %q or %q", string(p.Mode), string(PartialAggregation),
			string(Aligned))
	}

	// Sums of histograms add up however the rows are cut: any part will do.
	if p.Plan.Histograms != nil {
		if d := p.Plan.Downsample; d != nil && d.Calendar {
			return fmt.Errorf(
				"scanplan: mode partial of histograms in calendar buckets, whose place depends on each series")
		}
		return nil
	}

	// A rate needs the value before it, which another part may have.
	if !p.Plan.Downsample.DividesHour() || p.Plan.Rate != nil || p.Plan.Rollup != nil {
		return fmt.Errorf("scanplan: mode partial without buckets that divide the hour, or with a rate or a rollup")
	}
	if _, ok := p.Plan.WholeHours(p.Range); !ok {
		return fmt.Errorf("scanplan: mode partial from %s to %s, want whole hours of one salt bucket", p.Range.Start,
			p.Range.Stop)
	}

	return nil
}

// validateAligned checks what aligned aggregation demands: that each time has the rows of all
// series in one part.
func (p *Part) validateAligned() error {
	if p.Plan.Histograms != nil || p.Plan.Downsample != nil || p.Plan.Window != nil || p.Plan.Rollup != nil ||
		p.Plan.Fix != 0 || len(p.Plan.Ranges) != 1 {
		return fmt.Errorf(
			"scanplan: mode aligned of histograms, or with a downsample, a window, a rollup, corrections, or %d ranges",
			len(p.Plan.Ranges))
	}
	if _, ok := p.Plan.WholeHours(p.Range); !ok {
		return fmt.Errorf("scanplan: mode aligned from %s to %s, want whole hours", p.Range.Start, p.Range.Stop)
	}
	return nil
}
