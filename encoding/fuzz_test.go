package encoding

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
)

// fuzzSchemas are the layouts that every codec is tried under.
var fuzzSchemas = []Schema{
	DefaultSchema(),
	{SaltWidth: 1, SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3, MaxTags: 8},
	{SaltBuckets: 20, MetricWidth: 4, TagKWidth: 4, TagVWidth: 4, MaxTags: 8},
	{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8},
	{SaltWidth: 2, SaltBuckets: 1000, MetricWidth: 1, TagKWidth: 8, TagVWidth: 1, MaxTags: 8},
}

func schemaOf(n uint8) Schema { return fuzzSchemas[int(n)%len(fuzzSchemas)] }

// FuzzParseRowKey: no bytes make parsing panic, and the parts of a parsed key make up the key.
func FuzzParseRowKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, n uint8, key []byte) {
		s := schemaOf(n)
		k, err := s.ParseRowKey(key)
		s.DescribeRowKey(nil, key)
		if err != nil {
			return
		}
		again := append(append([]byte{}, k.Salt...), k.Metric...)
		again = append(append(again, byte(k.BaseTime>>24), byte(k.BaseTime>>16), byte(k.BaseTime>>8),
			byte(k.BaseTime)), k.Tags...)
		if !bytes.Equal(again, key) {
			t.Errorf("key % X parses to parts that make up % X", key, again)
		}
		salted := s.AppendRowKey(nil, k.Metric, k.BaseTime, k.Tags)
		if !bytes.Equal(salted[s.SaltWidth:], key[s.SaltWidth:]) {
			t.Errorf("the parts of key % X encode to % X", key, salted)
		}
		if bucket := s.Salt(k.Metric, k.Tags); bucket < 0 || bucket >= s.Buckets() {
			t.Errorf("salt %d of %d buckets", bucket, s.Buckets())
		}
		if got := s.AppendTSUID(nil, key); !bytes.Equal(got, s.SpanTSUID(s.AppendSpan(nil, key))) {
			t.Errorf("the key's TSUID % X is not the TSUID of its span", got)
		}
	})
}

// FuzzRowKeyOrder: keys compare as (salt, metric, base time, tag pairs) do.
func FuzzRowKeyOrder(f *testing.F) {
	f.Fuzz(func(t *testing.T, n uint8, metricA, metricB uint64, baseA, baseB uint32, tagsA, tagsB []byte) {
		s := schemaOf(n)
		a, b := fuzzKey(s, metricA, baseA, tagsA), fuzzKey(s, metricB, baseB, tagsB)
		want := cmp.Or(cmp.Compare(a.salt, b.salt), bytes.Compare(a.metric, b.metric), cmp.Compare(a.base, b.base),
			comparePairs(a.pairs, b.pairs))
		if got := bytes.Compare(a.key, b.key); got != want {
			t.Errorf("% X and % X compare as %d, want %d", a.key, b.key, got, want)
		}
	})
}

type keyParts struct {
	salt   int
	metric UID
	base   uint32
	pairs  []TagPair
	key    []byte
}

// fuzzKey makes a key of raw numbers cut to the schema's widths.
func fuzzKey(s Schema, metric uint64, base uint32, tags []byte) (k keyParts) {
	k.metric, _ = AppendUID(nil, metric&(1<<(8*s.MetricWidth)-1), s.MetricWidth)
	k.base = KeyTime(Hour(int64(base)))
	k.pairs = s.AppendPairs(nil, slices.Clone(tags))
	sorted := s.AppendTags(nil, k.pairs)
	k.salt = s.Salt(k.metric, sorted)
	k.key = s.AppendRowKey(nil, k.metric, k.base, sorted)
	return k
}

func comparePairs(a, b []TagPair) int {
	return slices.CompareFunc(a, b, func(x, y TagPair) int {
		return cmp.Or(bytes.Compare(x.K, y.K), bytes.Compare(x.V, y.V))
	})
}

// FuzzQualifier: a qualifier that parses is written as the same bytes, except for the two unused
// bits of the milliseconds form.
func FuzzQualifier(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		q, rest, err := ParseQualifier(b)
		if err != nil {
			return
		}
		want := slices.Clone(b[:len(b)-len(rest)])
		if q.Milli {
			want[3] &^= 0x30
		}
		if got := AppendQualifier(nil, q); !bytes.Equal(got, want) {
			t.Errorf("% X parses to %+v, which is % X", want, q, got)
		}
	})
}

// FuzzValue: an integer is written again as the same bytes on the same length, and as the same
// value on the shortest one; a float of 8 bytes is written again as the same bytes.
func FuzzValue(f *testing.F) {
	f.Fuzz(func(t *testing.T, float bool, said uint8, b []byte) {
		q := Qualifier{Float: float, Width: int(said%8) + 1}
		v, err := ParseValue(q, b)
		if err != nil {
			return
		}
		if v.Float != float || !float && v.Double() != float64(v.Int()) {
			t.Errorf("% X parses to %+v, want the type of the qualifier and an exact double", b, v)
		}
		if !float {
			if got := appendRaw(nil, v.Bits, len(b)); !bytes.Equal(got, b) {
				t.Errorf("% X parses to %d, which is written as % X", b, v.Int(), got)
			}
			checkShortest(t, v)
		}
		if float && len(b) == 8 && q.Width == 8 && !bytes.Equal(AppendDouble(nil, v.Double()), b) &&
			v.Double() == v.Double() {
			t.Errorf("% X parses to %v, which is written as % X", b, v, AppendDouble(nil, v.Double()))
		}
	})
}

func checkShortest(t *testing.T, v Value) {
	short := AppendInt(nil, v.Int())
	again, err := ParseValue(Qualifier{Width: len(short)}, short)
	if err != nil || again != v {
		t.Errorf("%v is written as % X, which parses to %v, %v", v, short, again, err)
	}
}

// FuzzRowDecoder: no cells make the decoder or Describe panic. The times of Finish are within the
// hour and ascend strictly.
func FuzzRowDecoder(f *testing.F) {
	f.Fuzz(func(t *testing.T, fix bool, q1, v1, q2, v2 []byte, newer bool) {
		s := DefaultSchema()
		stamp := int64(1)
		if newer {
			stamp = 2
		}
		d := RowDecoder{FixDuplicates: fix}
		d.Reset(1356998400)
		for i, c := range []Cell{{FamilyData, nil, q1, v1}, {FamilyData, nil, q2, v2}} {
			s.Describe(nil, TableData, c)
			if d.Add(c.Qualifier, c.Value, stamp*int64(i)) != nil {
				return
			}
		}
		var p Points
		if d.Finish(&p) != nil {
			return
		}
		for i := range p.Len() {
			offset := p.Time[i] - 1356998400_000
			if offset < 0 || offset > maxOffsetMS || i > 0 && p.Time[i] <= p.Time[i-1] {
				t.Errorf("the time of point %d of %v is outside the hour or not after the one before", i, p.Time)
			}
		}
	})
}

// FuzzAnnotation: an annotation that parses is written as valid JSON, and read again as itself.
func FuzzAnnotation(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAnnotation(text)
		if err != nil {
			return
		}
		b := AppendAnnotation(nil, a)
		if !json.Valid(b) || !utf8.Valid(b) {
			t.Fatalf("%+v is written as %s, want valid JSON in UTF-8", a, b)
		}
		again, err := ParseAnnotation(b)
		if diff := gocmp.Diff(a, again); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", b, err, diff)
		}
	})
}

// FuzzAnnotationColumn: every start that has a row key has a column that parses. Row and column
// together give the start.
func FuzzAnnotationColumn(f *testing.F) {
	f.Fuzz(func(t *testing.T, n uint8, start int64, column []byte) {
		s := schemaOf(n)
		ParseAnnotationQualifier(column)
		const maxMS = 1000 * int64(1<<32-1)
		key, err := s.AppendAnnotationKey(nil, nil, start)
		if err != nil || start > maxMS {
			return
		}
		ms, milli, err := ParseAnnotationQualifier(AppendAnnotationQualifier(nil, start))
		if err != nil {
			t.Fatal(err)
		}
		k, err := s.ParseRowKey(key)
		if err != nil {
			t.Fatal(err)
		}
		seconds := start < 1<<32
		if seconds && start%1000 == 0 {
			return // OpenTSDB takes it for milliseconds: its offset is wrong
		}
		if got := int64(k.BaseTime)*1000 + int64(ms); seconds && got != start*1000 || !seconds && got != start {
			t.Errorf("start %d has row %d and offset %d (ms form %t)", start, k.BaseTime, ms, milli)
		}
	})
}

// FuzzUIDMapping: a mapping that parses is written again as the same cell, and
// no cell makes Describe panic.
func FuzzUIDMapping(f *testing.F) {
	f.Fuzz(func(t *testing.T, n uint8, family string, row, qualifier, value []byte) {
		s := schemaOf(n)
		c := Cell{family, row, qualifier, value}
		s.Describe(nil, TableUID, c)
		s.Describe(nil, TableMeta, c)
		s.Describe(nil, TableData, c)
		m, err := s.ParseUIDMapping(c)
		if err != nil {
			return
		}
		again, err := m.Forward()
		if family == FamilyName {
			again, err = m.Reverse()
		}
		if diff := gocmp.Diff(c, again); err != nil || diff != "" {
			t.Errorf("%+v: %v\n%s", m, err, diff)
		}
	})
}

// FuzzName: any bytes are a name in Latin-1, which is written again as the same bytes. No name
// makes validation panic, and a valid one is UTF-8 and not empty.
func FuzzName(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		if got, err := AppendName(nil, ParseName(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("% X parses to %q, which is written as % X, %v", b, ParseName(b), got, err)
		}
		if ValidateName("metric name", name) != nil {
			return
		}
		if !utf8.ValidString(name) || name == "" {
			t.Errorf("%q is valid, want invalid UTF-8 and an empty name refused", name)
		}
		if enc, err := AppendName(nil, name); err == nil && ParseName(enc) != name {
			t.Errorf("%q is % X", name, enc)
		}
	})
}

// FuzzDumpLine: no line makes parsing panic, and a cell that was parsed can be written as a line
// and dumped.
func FuzzDumpLine(f *testing.F) {
	f.Fuzz(func(t *testing.T, line []byte) {
		table, c, err := ParseDumpLine(line)
		if err != nil {
			return
		}
		again, err := json.Marshal(DumpLine{table, UID(c.Row).String(), c.Family, UID(c.Qualifier).String(),
			UID(c.Value).String()})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := DefaultSchema().Dump(&out, bytes.NewReader(again)); err != nil || out.Len() == 0 {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// FuzzParseTSUID: a text that parses is the hex of the TSUID's bytes.
func FuzzParseTSUID(f *testing.F) {
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		tsuid, err := schemaOf(n).ParseTSUID(text)
		if err == nil && !bytes.EqualFold([]byte(UID(tsuid).String()), []byte(text)) {
			t.Errorf("%q is % X", text, tsuid)
		}
	})
}

// FuzzSealer: the value of an append column that can be sealed has the same entries then, and is read as before.
func FuzzSealer(f *testing.F) {
	f.Fuzz(func(t *testing.T, value []byte) {
		var s Sealer
		var u Unsealer
		sealed, ok := s.Seal(nil, value)
		if !ok {
			return
		}
		want, err := u.Unseal(nil, value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := u.Unseal(nil, sealed); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("% X has the entries % X, %v, want % X", sealed, got, err, want)
		}
		var points [2]Points
		for i, v := range [][]byte{sealed, want} {
			var d RowDecoder
			d.Reset(0)
			if err := d.Add(AppendColumn, v, 1); err != nil {
				t.Fatalf("% X: %v", v, err)
			}
			if err := d.Finish(&points[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !samePoints(points[0], points[1]) {
			t.Fatalf("% X is read as %v, want %v", sealed, points[0], points[1])
		}
	})
}
