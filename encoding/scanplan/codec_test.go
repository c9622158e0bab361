package scanplan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// examplePart is the second of two parts of a plan, one for each salt bucket. All fields that a
// plan of raw points may have are set, but Fix.
func examplePart() *Part {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 2
	metric := encoding.UID{0, 0, 1}
	const from, to = 1356998400, 1357005600
	var ranges []KeyRange
	for bucket := range 2 {
		ranges = append(ranges,
			KeyRange{s.AppendRangeKey(nil, bucket, metric, from), s.AppendRangeKey(nil, bucket, metric, to)})
	}
	return &Part{
		Plan: Plan{
			Version: Version, Schema: s, Table: "tsdb", Metric: metric,
			From: from, To: to, Start: from * 1000, End: to*1000 - 1,
			Ranges: ranges,
			Tags: []TagPredicate{
				{TagK: encoding.UID{0, 0, 1}, Op: In, Values: []encoding.UID{{0, 0, 1}, {0, 0, 3}}},
				{TagK: encoding.UID{0, 0, 2}, Op: Present},
				{TagK: encoding.UID{0, 0, 3}, Op: NotIn, Values: []encoding.UID{{0, 0, 0xFF}}},
			},
			Exact:      true,
			TSUIDs:     []encoding.UID{{0, 0, 1, 0, 0, 1, 0, 0, 1}},
			Downsample: &Downsample{Interval: 60_000, Count: 1, Unit: "m", Function: "avg", Fill: FillNone},
			Rate:       &Rate{Counter: true, CounterMax: 1<<63 - 1, ResetValue: 5, DropResets: true},
			Aggregator: "sum", GroupBy: []encoding.UID{{0, 0, 1}}, FixDuplicates: true, MaxBytes: 1 << 30,
		},
		Range: ranges[1],
	}
}

func TestTicket_roundTrip(t *testing.T) {
	want := examplePart()
	ticket, err := want.MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTicket(ticket)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The wire form of tickets of version 1 never changes. Another form needs a new version.
func TestTicket_isFrozen(t *testing.T) {
	got, err := examplePart().MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Plan":{"Version":1,"Schema":{"SaltWidth":1,"SaltBuckets":2,"MetricWidth":3,"TagKWidth":3,` +
		`"TagVWidth":3,"MaxTags":8},` +
		`"Table":"tsdb","Metric":"000001","From":1356998400,"To":1357005600,"Start":1356998400000,` +
		`"End":1357005599999,` +
		`"Ranges":[{"Start":"0000000150e22700","Stop":"0000000150e24320"},` +
		`{"Start":"0100000150e22700","Stop":"0100000150e24320"}],` +
		`"Tags":[{"TagK":"000001","Op":1,"Values":["000001","000003"]},{"TagK":"000002","Op":0,"Values":null},` +
		`{"TagK":"000003","Op":2,"Values":["0000FF"]}],` +
		`"Exact":true,"TSUIDs":["000001000001000001"],` +
		`"Downsample":{"All":false,"Interval":60000,"Count":1,"Unit":"m","Calendar":false,"Zone":"",` +
		`"Function":"avg","Fill":"none"},` +
		`"Rate":{"Counter":true,"CounterMax":9223372036854775807,"ResetValue":5,"DropResets":true},` +
		`"Aggregator":"sum","GroupBy":["000001"],"FixDuplicates":true,"MaxBytes":1073741824},` +
		`"Range":{"Start":"0100000150e22700","Stop":"0100000150e24320"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestParseTicket_refuses(t *testing.T) {
	f := func(wantInError string, change func(*Part)) {
		t.Helper()
		p := examplePart()
		change(p)
		ticket, err := p.MarshalTicket()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseTicket(ticket)
		if got != nil || err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%v, %v, want no part and an error with %q", got, err, wantInError)
		}
	}
	f("version 2, want 1", func(p *Part) { p.Plan.Version = 2 })
	f("salt buckets 0", func(p *Part) { p.Plan.Schema.SaltBuckets = 0 })
	f("metric 0001 has 2 bytes, want 3", func(p *Part) { p.Plan.Metric = encoding.UID{0, 1} })
	f("want ascending multiples of 3600", func(p *Part) { p.Plan.From++ })
	f("want ascending multiples of 3600", func(p *Part) { p.Plan.To = p.Plan.From })
	f("want ascending multiples of 3600", func(p *Part) { p.Plan.From = -3600 })
	f("no key ranges", func(p *Part) { p.Plan.Ranges = nil })
	f("key range 0 from 01 to 01 is empty", func(p *Part) { p.Plan.Ranges[0] = KeyRange{HexBytes{1}, HexBytes{1}} })
	f("begins before range 0 ends", func(p *Part) { p.Plan.Ranges[0].Stop = HexBytes{2} })
	f("begins before range 0 ends", func(p *Part) { p.Plan.Ranges[0].Stop = nil })
	f("tagk 0001 has 2 bytes", func(p *Part) { p.Plan.Tags[0].TagK = encoding.UID{0, 1} })
	f("tagk 000001 is out of order", func(p *Part) { p.Plan.Tags[1].TagK = encoding.UID{0, 0, 1} })
	f("operator TagOp(3) with 2 values", func(p *Part) { p.Plan.Tags[0].Op = 3 })
	f("operator present with 2 values", func(p *Part) { p.Plan.Tags[0].Op = Present })
	f("tagv 000001 of tagk 000001", func(p *Part) { p.Plan.Tags[0].Values[1] = encoding.UID{0, 0, 1} })
	f("TSUID 000001", func(p *Part) { p.Plan.TSUIDs[0] = p.Plan.TSUIDs[0][:3] })
	f("is out of order", func(p *Part) { p.Plan.TSUIDs = append(p.Plan.TSUIDs, p.Plan.TSUIDs[0]) })
	f("group-by tagk 01", func(p *Part) { p.Plan.GroupBy[0] = encoding.UID{1} })
	part := examplePart()
	if part.Plan.Version = 2; part.Validate() == nil {
		t.Error("a part of version 2 is valid")
	}
	f("downsample interval 0 ms", func(p *Part) { p.Plan.Downsample.Interval = 0 })
	f(`fill policy "scalar"`, func(p *Part) { p.Plan.Downsample.Fill = "scalar" })
	f("is empty", func(p *Part) { p.Range.Stop = p.Range.Start })
	f("is in none of the plan's ranges",
		func(p *Part) { p.Range = KeyRange{p.Plan.Ranges[0].Start, p.Plan.Ranges[1].Stop} })
	f("is in none of the plan's ranges", func(p *Part) { p.Range.Stop = nil })
	f(`mode "fast"`, func(p *Part) { p.Mode = "fast" })
	f("or with a rate", func(p *Part) { p.Mode = PartialAggregation })
	f("want whole hours", func(p *Part) {
		p.Mode, p.Plan.Rate, p.Range.Start = PartialAggregation, nil,
			append(p.Range.Start, 1)
	})
	f("is in none of the plan's ranges", func(p *Part) { p.Range.Start = HexBytes{0x00, 0xFF} })
}

func TestParseTicket_refusesText(t *testing.T) {
	good, err := examplePart().MarshalTicket()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                       "unexpected end",
		"null":                                   "version 0",
		string(good) + "{}":                      "after top-level value",
		string(good[:len(good)-1]) + `,"New":1}`: `unknown field "New"`,
		strings.Replace(string(good[:len(good)-1])+`,"New":1}`, `n":1`, `n":2`, 1): "version 2, want 1",
		strings.Replace(string(good), `"Exact"`, `"Exacter"`, 1):                   `unknown field "Exacter"`,
		strings.Replace(string(good), `"000001"`, `"00000x"`, 1):                   "invalid byte",
		strings.Replace(string(good), `"0100000150`, `"x100000150`, 1):             "invalid byte",
	} {
		if got, err := ParseTicket([]byte(text)); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error with %q", text, got, err, want)
		}
	}
}

// A plan's ticket and its text have its fixes, and a fix that is not known is refused. A ticket
// without fixes has no such field (see TestTicket_isFrozen), so that older servers take it.
func TestPlan_fix(t *testing.T) {
	p := examplePart()
	p.Plan.Fix = FixRateStart | FixIntegers
	ticket, err := p.MarshalTicket()
	if err != nil || !strings.Contains(string(ticket), `"Fix":5,`) ||
		!strings.Contains(p.Plan.String(), "\nfix rate-start integers\n") {
		t.Errorf("%v: ticket %s, want Fix 5 in it; text, want both fixes in it:\n%s", err, ticket, p.Plan.String())
	}
	got, err := ParseTicket(ticket)
	if diff := cmp.Diff(p, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := ParseTicket([]byte(strings.Replace(string(ticket), `"Fix":5`, `"Fix":17`, 1))); err == nil ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("an unknown fix: %v, want an error with \"not known\"", err)
	}
}

func TestPart_startsAndEnds(t *testing.T) {
	f := func(start, stop HexBytes, wantStarts, wantEnds bool) {
		t.Helper()
		p := examplePart()
		if start != nil {
			p.Range.Start = start
		}
		if stop != nil {
			p.Range.Stop = stop
		}
		if p.Starts() != wantStarts || p.Ends() != wantEnds {
			t.Errorf("part %v: starts %t, ends %t; at least one is wrong", p.Range, p.Starts(), p.Ends())
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	middle := HexBytes{1, 0, 0, 1, 0x50, 0xe2, 0x35, 0x10}
	f(nil, nil, true, true)
	f(nil, middle, true, false)
	f(middle, nil, false, true)
	f(middle, append(middle[:len(middle):len(middle)], 0), false, false)
}

func TestPlan_string(t *testing.T) {
	want := `scan tsdb metric 000001 rows [1356998400, 1357005600) query [1356998400000 ms, 1357005599999 ms]
range [0000000150e22700, 0000000150e24320)
range [0100000150e22700, 0100000150e24320)
tag 000001 in 000001 000003
tag 000002 present
tag 000003 not in 0000FF
tags exact
tsuid 000001000001000001
downsample 1m-avg-none
rate counter=true max=9223372036854775807 reset=5 drop=true
aggregate sum by 000001
`
	if diff := cmp.Diff(want, examplePart().Plan.String()); diff != "" {
		t.Error(diff)
	}
	p := examplePart().Plan
	p.Downsample = nil
	if diff := cmp.Diff(strings.Replace(want, "downsample 1m-avg-none\n", "", 1), p.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDownsample(t *testing.T) {
	f := func(d *Downsample, wantText string, wantDivides bool) {
		t.Helper()
		if d.DividesHour() != wantDivides || d != nil && d.String() != wantText {
			t.Errorf("%v divides the hour: %t; this or the text is wrong", d, d.DividesHour())
		}
	}
	f(nil, "", false)
	if err := (&Downsample{All: true, Function: "sum"}).validate(); err != nil {
		t.Errorf("one bucket, without an interval: %v", err)
	}
	f(&Downsample{All: true, Function: "sum", Fill: FillNone}, "0all-sum-none", false)
	f(&Downsample{Interval: 60_000, Count: 1, Unit: "m", Function: "avg", Fill: FillNaN}, "1m-avg-nan", true)
	f(&Downsample{Interval: 60_000, Function: "avg", Fill: FillZero}, "60000ms-avg-zero", true)
	f(&Downsample{Interval: 7 * 60_000, Count: 7, Unit: "m", Function: "max", Fill: FillNull}, "7m-max-null", false)
	f(&Downsample{Interval: 3600_000, Count: 1, Unit: "h", Function: "max", Fill: FillNone}, "1h-max-none", true)
	f(&Downsample{Interval: 7200_000, Count: 2, Unit: "h", Function: "max", Fill: FillNone}, "2h-max-none", false)
	f(&Downsample{Interval: 60_000, Count: 1, Unit: "m", Calendar: true, Zone: "UTC", Function: "max", Fill: FillNone},
		"1mc-max-none UTC", false)
}

// FuzzParseTicket: no bytes make parsing, String or Validate panic; a ticket
// that parses is written and read again as itself.
func FuzzParseTicket(f *testing.F) {
	f.Fuzz(func(t *testing.T, ticket []byte) {
		p := new(Part)
		if json.Unmarshal(ticket, p) == nil { // also a plan that is refused
			_ = p.Plan.String()
			_, _ = p.Starts(), p.Ends()
			_ = p.Validate()
		}
		p, err := ParseTicket(ticket)
		if err != nil {
			return
		}
		again, err := p.MarshalTicket()
		if err != nil {
			t.Fatal(err)
		}
		q, err := ParseTicket(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		twice, err := q.MarshalTicket()
		if diff := cmp.Diff(string(again), string(twice)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
