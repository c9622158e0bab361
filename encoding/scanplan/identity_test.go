package scanplan

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"downpour/encoding"
)

// fullPart sets every field of a part, also those that no plan has together.
func fullPart() *Part {
	p := examplePart()
	p.Mode = Aligned
	p.Plan.Histograms = &Histograms{Codec: 42, Percentiles: []float32{50, 99}, Buckets: true}
	p.Plan.Downsample = &Downsample{
		All:      true,
		Interval: 60_000,
		Count:    1,
		Unit:     "m",
		Calendar: true,
		Zone:     "UTC",
		Function: "avg",
		Fill:     FillNaN,
	}
	p.Plan.Rollup = &Rollup{
		Layout: encoding.RollupLayout{Interval: 60, Span: encoding.RowSpan{Count: 1, Unit: "h"}},
		Column: encoding.RollupColumn{ID: 1, Name: "sum"}, Count: &encoding.RollupColumn{ID: 2, Name: "count"},
	}
	p.Plan.Window = &Window{Function: "rate", Range: 300_000, First: 1356998400_000, Last: 1356998460_000, Step: 60_000,
		Groups: &WindowGroups{Function: "max", Keys: []encoding.UID{{0, 0, 1}}, Without: true}}
	p.Plan.Fix = FixGaps
	return p
}

// No field can be left out: a part that differs in any one of them has another identity. A field
// that is added to a plan and not to its identity fails here.
//
//fault:identity-without-the-zone .text(d.Zone) =>
func TestIdentity_everyField(t *testing.T) {
	whole := fullPart()
	usual := whole.AppendIdentity(nil)
	if again := fullPart().AppendIdentity([]byte{7}); !bytes.Equal(again, append([]byte{7}, usual...)) {
		t.Error("equal parts have different identities")
	}

	fields := 0
	walk(reflect.ValueOf(whole).Elem(), "Part", func(path string, v reflect.Value, changed reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(changed)
		defer v.Set(old)
		fields++
		if bytes.Equal(whole.AppendIdentity(nil), usual) {
			t.Errorf("%s = %v: the identity does not change", path, changed)
		}
	})
	if fields < 60 {
		t.Errorf("%d fields were changed, want at least 60: does the part have them all?", fields)
	}
}

// walk calls f with each field of v, and of what v holds, and with other values for it.
func walk(v reflect.Value, path string, f func(path string, v, changed reflect.Value)) {
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
		return
	case reflect.Pointer:
		if v.IsNil() {
			f(path+" is not set in the test", v, other)
			return
		}
		walk(v.Elem(), path, f)
		f(path, v, other) // nil
		return
	case reflect.Slice:
		if v.Len() > 0 {
			f(path, v, other) // nil
			f(path, v, v.Slice(0, v.Len()-1))
		}
		f(path, v, reflect.Append(v.Slice(0, v.Len()), reflect.Zero(v.Type().Elem())))
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
		return
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		other.SetInt(v.Int() + 1)
	case reflect.Uint8:
		other.SetUint(v.Uint() ^ 1)
	case reflect.Float32:
		other.SetFloat(v.Float() + 1)
	case reflect.String:
		other.SetString(v.String() + "x")
	default:
		panic(path + " is of a kind that the test cannot change: " + v.Kind().String())
	}
	f(path, v, other)
}

// The end of one field is never read as the start of the next.
func TestIdentity_fieldsStayApart(t *testing.T) {
	of := func(change func(*Plan)) string {
		p := fullPart().Plan
		change(&p)
		return string(p.AppendIdentity(nil))
	}
	for name, pair := range map[string][2]func(*Plan){
		"texts": {
			func(p *Plan) { p.Downsample.Zone, p.Downsample.Function = "ab", "c" },
			func(p *Plan) { p.Downsample.Zone, p.Downsample.Function = "a", "bc" },
		},
		"UIDs": {
			func(p *Plan) { p.GroupBy = []encoding.UID{{1, 2}, {3}} },
			func(p *Plan) { p.GroupBy = []encoding.UID{{1}, {2, 3}} },
		},
		"lists": {
			func(p *Plan) { p.Tags[0].Values, p.Tags[1].Values = []encoding.UID{{1}}, nil },
			func(p *Plan) { p.Tags[0].Values, p.Tags[1].Values = nil, []encoding.UID{{1}} },
		},
		"an empty UID of another list": {
			func(p *Plan) { *p = Plan{TSUIDs: []encoding.UID{{}}} },
			func(p *Plan) { *p = Plan{GroupBy: []encoding.UID{{}}} },
		},
		"a range and a tag": {
			func(p *Plan) { *p = Plan{Ranges: []KeyRange{{Start: HexBytes{0}}}} },
			func(p *Plan) { *p = Plan{Tags: []TagPredicate{{}}} },
		},
		"ranges": {
			func(p *Plan) { p.Ranges = []KeyRange{{Start: HexBytes{1}, Stop: HexBytes{2}}} },
			func(p *Plan) { p.Ranges = []KeyRange{{Start: HexBytes{1, 2}}} },
		},
	} {
		if of(pair[0]) == of(pair[1]) {
			t.Errorf("%s: two plans, one identity", name)
		}
	}
}

func BenchmarkIdentity(b *testing.B) {
	p := examplePart()
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = p.AppendIdentity(text[:0])
	}
}

func BenchmarkTicket(b *testing.B) {
	p := examplePart()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.MarshalTicket(); err != nil {
			b.Fatal(err)
		}
	}
}
