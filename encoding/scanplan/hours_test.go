package scanplan

import (
	"testing"

	"downpour/encoding"
)

// The plans of two ranges of hours have the ranges of the whole plan, cut at the hour
// between them in each salt bucket. A range that is not of whole hours cannot be cut.
func TestPlan_Between(t *testing.T) {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 2
	const hour = 1_356_998_400 // 50E22700
	p := Plan{
		Version:    Version,
		Schema:     s,
		Table:      "tsdb",
		Metric:     encoding.UID{0, 0, 1},
		From:       hour,
		To:         hour + 4*3600,
		Start:      hour*1000 + 1,
		End:        hour*1000 + 2,
		Aggregator: "sum",
	}
	for bucket := range s.Buckets() {
		p.Ranges = append(p.Ranges,
			KeyRange{
				Start: s.AppendRangeKey(nil, bucket, p.Metric, hour),
				Stop:  s.AppendRangeKey(nil, bucket, p.Metric, hour+4*3600),
			})
	}

	if h, ok := p.WholeHours(p.Ranges[1]); !ok || h != (Hours{Salt: "\x01", From: p.From, To: p.To}) {
		t.Errorf("got hours %+v of %v, want those of the plan in bucket 1", h, p.Ranges[1])
	}
	if h, ok := p.WholeHours(KeyRange{Start: p.Ranges[1].Start, Stop: p.Ranges[1].Start}); ok {
		t.Errorf("got hours %+v of no keys", h)
	}

	before, ok := p.Between(p.From, hour+3*3600)
	after, ok2 := p.Between(hour+3*3600, p.To)
	if !ok || !ok2 {
		t.Fatal("the plan of whole hours cannot be cut")
	}
	if before.From != p.From || before.To != hour+3*3600 || after.From != before.To || after.To != p.To {
		t.Errorf("hours [%d, %d) and [%d, %d), want those of [%d, %d) cut at %d", before.From, before.To, after.From,
			after.To, p.From, p.To, hour+3*3600)
	}
	for _, cut := range []*Plan{&before, &after} {
		if err := cut.Validate(); err != nil || cut.Start != cut.From*1000 || cut.End != cut.To*1000-1 {
			t.Errorf("%s: %v, want a valid and untrimmed plan", cut, err)
		}
	}
	for i, r := range p.Ranges {
		border := s.AppendRangeKey(nil, i, p.Metric, hour+3*3600)
		b, a := before.Ranges[i], after.Ranges[i]
		if b.Start.String() != r.Start.String() || string(b.Stop) != string(border) ||
			string(a.Start) != string(border) || a.Stop.String() != r.Stop.String() {
			t.Errorf("%v and %v, want %v cut at %x", b, a, r, border)
		}
	}

	p.From, p.To = 0, 3600 // 1970 has begun
	p.Start, p.End = 0, 1
	for i := range p.Ranges {
		p.Ranges[i].Start = s.AppendRangeKey(nil, i, p.Metric, 0)
		p.Ranges[i].Stop = s.AppendRangeKey(nil, i, p.Metric, 3600)
	}
	if err := p.Validate(); err != nil {
		t.Errorf("the first hour of all: %v", err)
	}

	p.Ranges[1].Stop = append(p.Ranges[1].Stop, 0)
	if _, ok := p.Between(p.From, hour+3600); ok {
		t.Error("a range that ends inside an hour was cut")
	}
}
