package encoding

import (
	"fmt"
	"testing"
)

// The numbers and bytes by which tables are stored never change. A failure here means that the
// change under test would not read what is stored, not that the test is out of date.
func TestFrozen(t *testing.T) {
	f := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v for ever", what, got, want)
		}
	}
	f("RowSeconds", RowSeconds, 3600)
	f("BaseTimeWidth", BaseTimeWidth, 4)
	f("default schema", DefaultSchema(), Schema{0, 20, 3, 3, 3, 8})
	f("flags of a qualifier", []int{floatFlag, lengthMask, flagMask, flagBits, milliFlag, milliShift},
		[]int{8, 7, 15, 4, 0xF0, 6})
	f("last offset of a row", maxOffsetMS, 3599999)
	f("prefixes", []int{PrefixAnnotation, PrefixAppend, PrefixHistogram}, []int{1, 5, 6})
	f("append column", AppendColumn, []byte{5, 0, 0})
	f("families", []string{FamilyData, FamilyID, FamilyName}, []string{"t", "id", "name"})
	f("kinds", []UIDKind{UIDMetric, UIDTagK, UIDTagV}, []string{"metrics", "tagk", "tagv"})
	f("numbers of kinds", []uint8{uint8(UIDMetric), uint8(UIDTagK), uint8(UIDTagV)}, []int{0, 1, 2})
	for k, want := range []string{"metric_meta", "tagk_meta", "tagv_meta"} {
		f("UIDMeta column", string(UIDKind(k).MetaQualifier()), want)
	}
	f("counter row", CounterRow, []byte{0})
	f("counter", AppendCounter(nil, 258), []byte{0, 0, 0, 0, 0, 0, 1, 2})
	f("meta columns", []string{MetaCounterQualifier, TSMetaQualifier}, []string{"ts_ctr", "ts_meta"})
	f("integer widths", []int{IntWidth(127), IntWidth(-128), IntWidth(128), IntWidth(-32769), IntWidth(1 << 31)},
		[]int{1, 1, 2, 4, 8})
	f("float widths", []int{FloatWidth(0.5), FloatWidth(0.1)}, []int{4, 8})
	s := Schema{SaltWidth: 1, SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3, MaxTags: 8}
	f("salts", []int{s.Salt(UID{0, 0, 1}, []byte{0, 0, 1, 0, 0, 1}),
		s.Salt(UID{0xFF, 0x80, 1}, []byte{0, 0, 0xFE, 0, 0, 1}), s.Salt(UID{0, 0, 0}, nil)}, []int{8, 6, 11})
}
