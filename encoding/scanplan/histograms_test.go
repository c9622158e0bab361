package scanplan

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// A plan of histograms is the same after it was a ticket, is refused with anything that is for
// points alone, and its parts need not begin at whole hours.
func TestTicket_histograms(t *testing.T) {
	part := func() *Part {
		p := examplePart()
		p.Plan.Rate, p.Plan.Downsample.Function = nil, "sum"
		p.Plan.Histograms = &Histograms{Codec: 42, Percentiles: []float32{0, 50, 50, 100}, Buckets: true}
		p.Mode, p.Range.Start = PartialAggregation, append(p.Range.Start, 7)
		return p
	}
	ticket, err := part().MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	want := `"Histograms":{"Codec":42,"Percentiles":[0,50,50,100],"Buckets":true}`
	if !strings.Contains(string(ticket), want) {
		t.Errorf("%s, want it to have %s", ticket, want)
	}
	got, err := ParseTicket(ticket)
	if diff := cmp.Diff(part(), got); err != nil || diff != "" {
		t.Errorf("%v, want -, got +: %s", err, diff)
	}

	for _, codec := range []int{NoCodec, encoding.MaxHistogramCodec} {
		p := part()
		p.Plan.Histograms.Codec = codec
		if err := p.Validate(); err != nil {
			t.Errorf("codec %d: %v, want no error", codec, err)
		}
	}

	f := func(want string, change func(*Part)) {
		t.Helper()
		p := part()
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	f("histogram codec 128, want -1 to 127", func(p *Part) { p.Plan.Histograms.Codec = 128 })
	f("histogram codec -2", func(p *Part) { p.Plan.Histograms.Codec = -2 })
	f(`aggregator "avg", want sum or none`, func(p *Part) { p.Plan.Aggregator = "avg" })
	f(`downsample function "avg", want sum`, func(p *Part) { p.Plan.Downsample.Function = "avg" })
	f("with a rate", func(p *Part) { p.Plan.Rate = &Rate{} })
	f("fixes of points", func(p *Part) { p.Plan.Fix = FixGaps })
	f("want them ascending from 0 to 100", func(p *Part) { p.Plan.Histograms.Percentiles[0] = 51 })
	f("want them ascending from 0 to 100", func(p *Part) { p.Plan.Histograms.Percentiles[3] = 101 })
	f("want them ascending from 0 to 100", func(p *Part) { p.Plan.Histograms.Percentiles[0] = -1 })
	f("want them ascending from 0 to 100",
		func(p *Part) { p.Plan.Histograms.Percentiles = []float32{float32(math.NaN())} })
	f("in calendar buckets", func(p *Part) { p.Plan.Downsample.Calendar = true })
}
