package encoding

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaValidate(t *testing.T) {
	f := func(wantInError string, change func(*Schema)) {
		t.Helper()
		s := DefaultSchema()
		change(&s)
		err := s.Validate()
		if wantInError == "" && err != nil ||
			wantInError != "" && (err == nil || !strings.Contains(err.Error(), wantInError)) {
			t.Errorf("%+v: %v, want %q", s, err, wantInError)
		}
	}
	f("", func(*Schema) {})
	f("", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 1, 256 })
	f("", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 8, 1<<31-1 })
	f("", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 1, 1 })
	f("", func(s *Schema) { s.SaltBuckets = 0 })
	f("salt buckets 257 with salt width 1, want 1 to 256", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 1, 257 })
	f("salt buckets 0 ", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 1, 0 })
	// The salt is a 32-bit hash modulo the number of buckets, and 1<<32 is 0 in 32 bits.
	f("salt buckets 4294967296 ", func(s *Schema) { s.SaltWidth, s.SaltBuckets = 4, 1<<32 })
	f("salt width 9, want 0 to 8", func(s *Schema) { s.SaltWidth = 9 })
	f("metric UID width 0, want 1 to 8", func(s *Schema) { s.MetricWidth = 0 })
	f("tagk UID width 9", func(s *Schema) { s.TagKWidth = 9 })
	f("tagv UID width -1", func(s *Schema) { s.TagVWidth = -1 })
	f("max tags 0", func(s *Schema) { s.MaxTags = 0 })
}

func TestValidateName(t *testing.T) {
	f := func(name, want string, allowed ...rune) {
		t.Helper()
		got := ""
		if err := ValidateName("metric name", name, allowed...); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	f("sys.cpu-user_0/A", "")
	f("Zürich.ß", "")
	f("Ω", "") // a letter; that ISO-8859-1 does not have it is for AppendName to refuse
	f("", "Invalid metric name: empty string")
	// The text with which OpenTSDB answered a put, see api.json.gz of integration/conformance.
	f("bad metric!", `Invalid metric name ("bad metric!"): illegal character:  `)
	f("a:b", `Invalid metric name ("a:b"): illegal character: :`)
	f("a:b", "", ':')
	f("a:b c", `Invalid metric name ("a:b c"): illegal character:  `, ':')
	f("say\"n\n", "Invalid metric name (\"say\"n\n\"): illegal character: \"")
	f("a²", `Invalid metric name ("a²"): illegal character: ²`)
	f("a\xff", "Invalid metric name (\"a\xff\"): illegal character: \uFFFD")
	f("𝒜", `Invalid metric name ("𝒜"): illegal character: 𝒜`) // a letter, but in Java two chars, which are none
}

// All digits and letters of ASCII are in names. Each byte of a stored name is a character, and a number is what all
// bytes of a UID say.
func TestNames_everyByte(t *testing.T) {
	for c := range 0x80 {
		r := rune(c)
		want := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./", r)
		if err := ValidateName("tag", "a"+string(r)); (err == nil) != want {
			t.Errorf("%q: error %v, want it allowed: %t", r, err, want)
		}
	}
	for c := range 0x100 {
		if got, want := ParseName([]byte{'a', byte(c)}), "a"+string(rune(c)); got != want {
			t.Errorf("byte %02X: got %q, want %q", c, got, want)
		}
	}
	for width := 1; width <= 8; width++ {
		most := ^uint64(0) >> (64 - 8*width)
		uid, err := AppendUID(nil, most-1, width)
		if err != nil || len(uid) != width || UIDNumber(uid) != most-1 {
			t.Errorf("%d on %d bytes: got % X, the number %d, %v", most-1, width, uid, UIDNumber(uid), err)
		}
		if uid, err := AppendUID(nil, most+1, width); (err == nil) != (width == 8) {
			t.Errorf("%d on %d bytes: got % X, %v", most+1, width, uid, err)
		}
	}
}

func TestName_isLatin1(t *testing.T) {
	for name, want := range map[string]string{"": "", "sys.cpu.nice": "7379732E6370752E6E696365",
		"Zürich": "5AFC72696368", "ÿ": "FF"} {
		b, err := AppendName(nil, name)
		if UID(b).String() != want || err != nil {
			t.Errorf("%q is % X, %v, want %s", name, b, err, want)
		}
		if got := ParseName(b); got != name {
			t.Errorf("% X is %q, want %q", b, got, name)
		}
	}
	_, err := AppendName(nil, "aΩ")
	if err == nil || !strings.Contains(err.Error(), "at byte 1") {
		t.Errorf("aΩ: %v, want an error at byte 1", err)
	}
	if _, err := AppendName(nil, "a\xff"); err == nil { // invalid UTF-8 reads as U+FFFD
		t.Error("invalid UTF-8 was taken")
	}
}

func TestUIDMapping_refuses(t *testing.T) {
	s := Schema{MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8}
	f := func(wantInError string, c Cell) {
		t.Helper()
		if m, err := s.ParseUIDMapping(c); err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%+v: %+v, %v, want an error with %q", c, m, err, wantInError)
		}
	}
	f(`"metric_meta"`, Cell{FamilyName, []byte{0, 0, 0, 1}, []byte("metric_meta"), []byte("{}")})
	f(`"tagx"`, Cell{FamilyID, []byte("a"), []byte("tagx"), []byte{0, 1}})
	f(`family "t"`, Cell{FamilyData, []byte("a"), []byte("tagk"), []byte{0, 1}})
	f("has 3 bytes, want 2", Cell{FamilyID, []byte("a"), []byte("tagk"), []byte{0, 0, 1}})
	f("has 2 bytes, want 4", Cell{FamilyName, []byte{0, 1}, []byte("metrics"), []byte("a")})
	if _, err := (UIDMapping{Name: "Ω"}).Forward(); err == nil {
		t.Error("a name outside ISO-8859-1 got a forward mapping")
	}
	if _, err := (UIDMapping{Name: "Ω"}).Reverse(); err == nil {
		t.Error("a name outside ISO-8859-1 got a reverse mapping")
	}
	if _, err := ParseCounter([]byte{1}); err == nil {
		t.Error("a counter of 1 byte was read")
	}
	if _, err := AppendUID(nil, 1<<24, 3); err == nil {
		t.Error("UID 1<<24 fitted 3 bytes")
	}
}

func TestTSUID(t *testing.T) {
	s := Schema{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8}
	const text = "00000001000100000001000200000002"
	tsuid, err := s.ParseTSUID(strings.ToLower(text))
	if err != nil || UID(tsuid).String() != text {
		t.Fatalf("TSUID % X, %v", tsuid, err)
	}
	metric, tags, err := s.SplitTSUID(tsuid)
	if err != nil {
		t.Fatal(err)
	}
	key := s.AppendRowKey(nil, metric, 1356998400, tags)
	if want := unhex(t, "000000000150e22700000100000001000200000002"); !bytes.Equal(key, want) {
		t.Errorf("row key % X, want % X", key, want)
	}
	if got := s.AppendTSUID(nil, key); !bytes.Equal(got, tsuid) {
		t.Errorf("TSUID of the key % X, want % X", got, tsuid)
	}
	if got := s.SpanTSUID(s.AppendSpan(nil, key)); !bytes.Equal(got, tsuid) {
		t.Errorf("TSUID of the span % X, want % X", got, tsuid)
	}
	for _, bad := range []string{"", "00000001", "0000000100010000", "0000000100010000000100", "0000000100010000000",
		"xx"} {
		if got, err := s.ParseTSUID(bad); err == nil {
			t.Errorf("TSUID %q was read as % X", bad, got)
		}
	}
}

func TestAnnotation_column(t *testing.T) {
	s := DefaultSchema()
	f := func(start int64, wantKey, wantColumn string, wantMS int32) {
		t.Helper()
		key, err := s.AppendAnnotationKey(nil, nil, start)
		if err != nil || !bytes.Equal(key, unhex(t, wantKey)) {
			t.Errorf("%d: row key % X, %v, want %s", start, key, err, wantKey)
		}
		q := AppendAnnotationQualifier(nil, start)
		if !bytes.Equal(q, unhex(t, wantColumn)) {
			t.Errorf("%d: column % X, want %s", start, q, wantColumn)
		}
		ms, milli, err := ParseAnnotationQualifier(q)
		if ms != wantMS || milli != (len(q) == 5) || err != nil {
			t.Errorf("% X: %d ms, %t, %v, want %d", q, ms, milli, err, wantMS)
		}
	}
	f(1356998400, "000000 50E22700", "01 0000", 0)
	f(1356998523, "000000 50E22700", "01 007B", 123_000)
	f(1356998400250, "000000 50E22700", "01 000000FA", 250)
	f(1357001999999, "000000 50E22700", "01 0036EE7F", 3599999)
	f(1356998523000, "000000 50E22700", "01 007B", 123_000) // ms on a full second
	// OpenTSDB takes every multiple of 1000 for milliseconds, even if it is in seconds as here:
	// the column is that of 1357000 s, 3400 s after the hour.
	f(1357000000, "000000 50E22700", "01 0D48", 3400_000)
	for _, bad := range []string{"", "01", "0100", "010E10", "0100000000FF", "0100370000", "020000", "0000"} {
		if ms, _, err := ParseAnnotationQualifier(unhex(t, bad)); err == nil {
			t.Errorf("column %s was read as %d ms", bad, ms)
		}
	}
	if _, err := s.AppendAnnotationKey(nil, nil, 0); err == nil {
		t.Error("an annotation without start got a key")
	}
	if _, err := s.AppendAnnotationKey(nil, []byte{0, 0, 1}, 1356998400); err == nil {
		t.Error("a TSUID without tags got a key")
	}
	salted := Schema{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4}
	key, err := salted.AppendAnnotationKey(nil, unhex(t, "00000001000100000006000200000002"), 1356998401)
	if err != nil || !bytes.Equal(key, unhex(t, "010000000150e22700000100000006000200000002")) {
		t.Errorf("salted row key % X, %v, want salt 01, the metric, base time 50E22700 and both tags", key, err)
	}
	if key, _ = salted.AppendAnnotationKey(nil, nil, 1356998401); !bytes.Equal(key, unhex(t, "000000000050e22700")) {
		t.Errorf("global row key of a salted table % X, want salt 00, metric 0 and base time 50E22700", key)
	}
}

func TestAnnotation_json(t *testing.T) {
	f := func(a Annotation, want string) {
		t.Helper()
		got := AppendAnnotation(nil, a)
		if string(got) != want {
			t.Errorf("%+v is\n%s, want\n%s", a, got, want)
		}
		back, err := ParseAnnotation(got)
		if diff := cmp.Diff(a, back); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", got, err, diff)
		}
	}
	f(Annotation{StartTime: 1356998400, Description: "global"},
		`{"startTime":1356998400,"endTime":0,"description":"global","notes":"","custom":null}`)
	f(Annotation{
		TSUID:     "000001000001000001",
		StartTime: 1356998400250,
		EndTime:   1356998401000,
		Notes:     "n",
		Custom:    map[string]string{},
	},
		`{"tsuid":"000001000001000001","startTime":1356998400250,"endTime":1356998401000,"description":"",`+
			`"notes":"n","custom":{}}`)
	f(Annotation{
		StartTime:   1,
		Description: "a\"\\/\b\t\n\f\r\x01\x1f\x7f",
		Notes:       "<&>é𝒜\u2028",
		Custom:      map[string]string{"b": "2", "a": "1", "\uFFFD": "4", "𝒜": "3"},
	},
		`{"startTime":1,"endTime":0,"description":"a\"\\/\b\t\n\f\r\u0001\u001F`+"\x7f"+`","notes":"<&>é𝒜`+"\u2028"+
			`","custom":{"a":"1","b":"2","𝒜":"3","`+"\uFFFD"+`":"4"}}`)
	for _, bad := range []string{"", "[]", `{"startTime":"x"}`, `{"custom":5}`} {
		if a, err := ParseAnnotation([]byte(bad)); err == nil {
			t.Errorf("%s was read as %+v", bad, a)
		}
	}
	if a, err := ParseAnnotation([]byte(`{"new":1,"startTime":5}`)); err != nil || a.StartTime != 5 {
		t.Errorf("an unknown key: %+v, %v, want it ignored and startTime 5", a, err)
	}
}

func TestRowKey_refuses(t *testing.T) {
	s := DefaultSchema()
	for _, bad := range []string{"", "000001", "000001 50E22700 0000", "000001 50E22700 000001 0000"} {
		if k, err := s.ParseRowKey(unhex(t, bad)); err == nil {
			t.Errorf("key %s was read as %+v", bad, k)
		}
	}
}

// A UID in hex is read as OpenTSDB reads it, an odd number of digits with a 0 in front, and is
// refused with OpenTSDB's error text.
func TestParseHexUID(t *testing.T) {
	for text, want := range map[string]string{"000001": "000001", "1": "01", "abC": "0ABC",
		"00000A00000b": "00000A00000B"} {
		if u, err := ParseHexUID(text); err != nil || u.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, u, err, want)
		}
	}
	for text, want := range map[string]string{"": "UID was empty",
		"zz": "contains illegal character for hexBinary: zz", "0 1": "contains illegal character for hexBinary: 00 1"} {
		if u, err := ParseHexUID(text); err == nil || err.Error() != want {
			t.Errorf("%q: %s, %v; want %s", text, u, err, want)
		}
	}
}

// The row of global annotations has metric 0 and no tags, whatever its salt.
func TestRowKey_Global(t *testing.T) {
	none, one := []byte{0, 0, 0}, []byte{0, 0, 1}
	pair := []byte{0, 0, 1, 0, 0, 1}
	for _, k := range []RowKey{{Metric: one}, {Metric: none, Tags: pair}, {Metric: one, Tags: pair}} {
		if k.Global() {
			t.Errorf("%+v is taken for the row of global annotations", k)
		}
	}
	if k := (RowKey{Salt: []byte{3}, Metric: none}); !k.Global() {
		t.Errorf("%+v is taken for the row of a series", k)
	}
}

// The keys of a table without a salt have one prefix, whatever else its schema says.
func TestSchema_buckets(t *testing.T) {
	for width, want := range []int{1, 20} {
		if got := (Schema{SaltWidth: width, SaltBuckets: 20}).Buckets(); got != want {
			t.Errorf("%d prefixes with a salt of %d bytes, want %d", got, width, want)
		}
	}
}

// What only begins with a TSUID is none, a qualifier of the family of UIDs is none of a series, and a value counts by
// its length.
func TestOfAnotherForm(t *testing.T) {
	if tsuid, err := DefaultSchema().ParseTSUID("000001000001000001x0"); err == nil {
		t.Errorf("a TSUID and a letter: got %X, want an error", tsuid)
	}
	if kind := KindOf(FamilyID, []byte("ts_meta")); kind != TableUID {
		t.Errorf("a cell of the family of UIDs is of table %v, want %v", kind, TableUID)
	}
	long := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if v, err := ParseValue(Qualifier{Width: 4}, long); err != nil || v != IntValue(0x0102030405060708) {
		t.Errorf("an integer of 8 bytes with a qualifier for 4: %v, %v", v, err)
	}
	var d RowDecoder
	if _, _, _, ok := d.OnlyBits([]byte{0, 0, 0, 0x10, 0}, []byte{1, 2, 0}, nil); ok {
		t.Error("a qualifier of five bytes is taken for two")
	}
}
