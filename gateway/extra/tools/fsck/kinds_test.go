package fsck_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
)

// rowOf makes a row of cells "qualifier=value", both in hex; timestamps count from 1.
func rowOf(t *testing.T, cells ...string) fsck.Row {
	t.Helper()
	r := fsck.Row{Key: schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, 1356998400, series(1).Tags)}
	for i, text := range cells {
		q, v, _ := strings.Cut(text, "=")
		c := fsck.Cell{Timestamp: int64(i + 1)}
		var err1, err2 error
		c.Qualifier, err1 = hex.DecodeString(q)
		c.Value, err2 = hex.DecodeString(v)
		if err1 != nil || err2 != nil {
			t.Fatal(text)
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}

// changes prints the puts of a result as qualifier=value@timestamp and its deletions as
// -qualifier.
func changes(r *fsck.Result) string {
	var all []string
	for _, c := range r.Put {
		all = append(all, fmt.Sprintf("%x=%x@%d", c.Qualifier, c.Value, c.Timestamp))
	}
	for _, c := range r.Delete {
		all = append(all, fmt.Sprintf("-%x", c.Qualifier))
	}
	return strings.Join(all, " ")
}

type options = fsck.Options

// kindTests are rows with one kind of damage each, and the options that repair it.
var kindTests = []struct {
	name   string
	cells  []string
	found  string // kind and count of each finding
	by     options
	change string
}{
	{"sound", []string{"0000=05", "f0000fc0=07", "010007=2a", "060001=00"}, "", options{Compact: true},
		"0000f0000fc0=050701@2 -0000 -f0000fc0"},
	{"one byte", []string{"00=05"}, "unknown column 1", options{DeleteUnknownColumns: true}, "-00"},
	{"seven bytes", []string{"00010203040506=05"}, "unknown column 1", options{DeleteUnknownColumns: true},
		"-00010203040506"},
	{"half a qualifier in ms", []string{"f000=05"}, "unknown column 1", options{DeleteUnknownColumns: true}, "-f000"},
	{"a later object", []string{"070001=05"}, "possible future object 1", options{DeleteUnknownColumns: true}, ""},
	{"last byte", []string{"00000010=050602"}, "bad compacted column 1", options{DeleteBadCompacts: true},
		"00000010=050600@1"},
	{"too few values", []string{"00000010=0500"}, "bad compacted column 1", options{DeleteBadCompacts: true},
		"-00000010"},
	{"too many values", []string{"00000010=05060700"}, "bad compacted column 1", options{DeleteBadCompacts: true},
		"-00000010"},
	{"no value at all", []string{"00000010="}, "bad compacted column 1", options{DeleteBadCompacts: true}, "-00000010"},
	{"out of order", []string{"00100000=060500"}, "compacted column to be fixed 1", options{},
		"00000010=050600@1 -00100000"},
	{"bad inside", []string{"000000120020=051122330700"}, "bad value 1", options{DeleteBadValues: true},
		"00000020=050700@1 -000000120020"},
	{"float of other bytes", []string{"000b=1122334440a00000"}, "bad value 1", options{DeleteBadValues: true}, "-000b"},
	{"sign before a float in ms", []string{"f000000b=ffffffff40a00000"}, "bad value 1",
		options{DeleteBadValues: true}, "-f000000b"},
	{"float of 3 bytes", []string{"000b=112233"}, "bad value 1", options{DeleteBadValues: true}, "-000b"},
	{"beyond the hour", []string{"e100=05"}, "bad value 1", options{DeleteBadValues: true}, "-e100"},
	{"zeros before a float", []string{"000b=0000000040a00000"}, "badly encoded float 1", options{}, "000b=40a00000@1"},
	{"sign before a float", []string{"000b=ffffffff40a00000"}, "badly encoded float 1", options{}, "000b=40a00000@1"},
	{"float that says 8", []string{"000f=40a00000"}, "wrong length 1", options{}, "000b=40a00000@1 -000f"},
	{"integer that says 8", []string{"0007=0005"}, "wrong length 1", options{}, "0001=0005@1 -0007"},
	{"long integer", []string{"0007=0000000000000100"}, "long integer 1", options{}, "0001=0100@1 -0007"},
	{"oldest stays", []string{"0000=05", "0001=0006", "000b=40a00000"}, "duplicate 2",
		options{ResolveDuplicates: true}, "-0001 -000b"},
	{"newest stays", []string{"0000=05", "0001=0006", "000b=40a00000"}, "duplicate 2",
		options{ResolveDuplicates: true, LastWriteWins: true}, "-0000 -0001"},
	{"duplicate of a compacted cell", []string{"0000=06", "00000010=050600"}, "duplicate 1",
		options{ResolveDuplicates: true, LastWriteWins: true}, "-0000"},
	{"duplicate in a compacted cell", []string{"0000=06", "00000010=050600"}, "duplicate 1",
		options{ResolveDuplicates: true}, "00000010=060600@2 -0000"},
	{"a bad value is older", []string{"000b=1122334440a00000", "000f=4014000000000000"}, "bad value 1",
		options{DeleteBadValues: true, ResolveDuplicates: true}, "-000b"},
	{"shorter in place of a duplicate", []string{"0001=0006", "0007=0000000000000100"},
		"long integer 1, duplicate 1", options{ResolveDuplicates: true, LastWriteWins: true}, "0001=0100@2 -0007"},
	{"shorter where a duplicate stays", []string{"0001=0006", "0007=0000000000000100"},
		"long integer 1, duplicate 1", options{}, ""},
	{"shorter where another becomes as long", []string{"0003=05", "0007=000000000000002a"},
		"wrong length 1, long integer 1, duplicate 1", options{}, "0000=05@1 -0003"},
	{"shorter where another is mended", []string{"000b=0000000040a00000", "000f=41000000"},
		"badly encoded float 1, wrong length 1, duplicate 1", options{}, "000b=40a00000@1"},
	{"broken end", []string{"050000=000005" + "001006" + "0023"}, "bad compacted column 1",
		options{DeleteBadCompacts: true}, "050000=000005001006@1"},
	{"broken from the start", []string{"050000=0007"}, "bad compacted column 1", options{DeleteBadCompacts: true},
		"-050000"},
	{"bad entry", []string{"050000=000005" + "0012112233" + "002007"}, "bad value 1",
		options{DeleteBadValues: true}, "050000=000005002007@1"},
	{"misnamed", []string{"0500000000=001006"}, "compacted column to be fixed 1", options{},
		"050000=001006@1 -0500000000"},
	{"loose", []string{"050000=001006" + "000005" + "001007"}, "loose appends 1", options{Compact: true},
		"050000=000005001007@1"},
	{"duplicate of an entry", []string{"0000=06", "050000=000005001006"}, "duplicate 1",
		options{ResolveDuplicates: true}, "050000=001006@2"},
	{"as an append column to OpenTSDB", []string{"05000510=050600"}, "", options{Compact: true},
		"0500=05@1 0510=06@1 -05000510"},
	{"section 9",
		[]string{"0000=05", "000b=40a00000", "0100=0506", "010b=0000000040a00000", "020b=ffffffff40a00000",
			"030b=1122334440a00000", "0407=0000000000000005"},
		"wrong length 1, badly encoded float 1, badly encoded float 1, bad value 1, long integer 1, duplicate 1, " +
			"duplicate 1",
		all(options{}),
		"00000101020b0400=05050640a000000500@7 -0000 -000b -0100 -010b -020b -030b -0407"},
}

// Each kind of damage is found, counted, and repaired with the option that it needs, and not with
// all other options.
func TestCheck_kinds(t *testing.T) {
	for _, test := range kindTests {
		row := rowOf(t, test.cells...)
		if test.by.Compact {
			test.by.Fix = true
		}
		c := fsck.Checker{Schema: schema, Options: test.by}
		var found []string
		for _, f := range c.Check(row, fsck.Facts{}).Findings {
			if f.Kind != fsck.Uncompacted {
				found = append(found, fmt.Sprint(f.Kind, " ", f.Count))
			}
		}
		if d := cmp.Diff(test.found, strings.Join(found, ", ")); d != "" {
			t.Errorf("%s: found %s", test.name, d)
		}

		c.Options.Fix = true
		if d := cmp.Diff(test.change, changes(c.Check(row, fsck.Facts{}))); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
		if got := changes(c.Check(row, fsck.Facts{Keep: "young"})); got != "" {
			t.Errorf("%s: changed although Facts.Keep is set: %s", test.name, got)
		}

		// All options but the one that is needed repair nothing. Compact is left out too, because
		// it rewrites the row.
		less := all(options{})
		less.Compact = false
		switch {
		case test.by.DeleteUnknownColumns:
			less.DeleteUnknownColumns = false
		case test.by.DeleteBadCompacts:
			less.DeleteBadCompacts = false
		case test.by.ResolveDuplicates && !test.by.DeleteBadValues:
			less.ResolveDuplicates = false
		case test.by.DeleteBadValues:
			less.DeleteBadValues = false
		default:
			less = options{
				Compact:              true,
				DeleteUnknownColumns: true,
				DeleteBadCompacts:    true,
				DeleteBadValues:      true,
				ResolveDuplicates:    true,
			}
		}
		if c.Options = less; test.name == "section 9" {
			continue
		}
		if got := changes(c.Check(row, fsck.Facts{})); got != "" {
			t.Errorf("%s: changed without its option: %s", test.name, got)
		}
	}
}

// Points of the seconds 80 to 95 do not begin a compacted cell, because OpenTSDB's tool would take
// it for an append column: they stay as they are, and later points are compacted.
func TestCheck_compact(t *testing.T) {
	c := fsck.Checker{Schema: schema, Options: all(fsck.Options{})}
	row := rowOf(t, "0500=05", "0510=06", "0600=07", "0610=08")
	if d := cmp.Diff("06000610=070800@4 -0600 -0610", changes(c.Check(row, fsck.Facts{}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("", changes(c.Check(apply(row, c.Check(row, fsck.Facts{})), fsck.Facts{}))); d != "" {
		t.Error(d)
	}
}

// A row is not compacted while a cell that cannot be cut into points has the qualifier that the
// compacted cell would get.
func TestCheck_overlap(t *testing.T) {
	c := fsck.Checker{Schema: schema, Options: fsck.Options{Fix: true, Compact: true}}
	row := rowOf(t, "0000=05", "00000010=0500", "0010=06")
	if got := changes(c.Check(row, fsck.Facts{})); got != "" {
		t.Errorf("changed: %s", got)
	}
	// The cell that replaces it gets a timestamp that is not older, so that the store returns it.
	c.Options.DeleteBadCompacts = true
	row.Cells[1].Timestamp = 9
	if d := cmp.Diff("00000010=050600@9 -0000 -0010", changes(c.Check(row, fsck.Facts{}))); d != "" {
		t.Error(d)
	}
}

// Of three values of one time the oldest is to be kept, but one is in a broken append column that
// may not be repaired. Then none is removed: the oldest would be written again with a newer
// timestamp than the one that stays, and the next run would keep that one.
func TestCheck_partly(t *testing.T) {
	c := fsck.Checker{Schema: schema, Options: fsck.Options{Fix: true, Compact: true, ResolveDuplicates: true}}
	row := rowOf(t, "0000=05", "050000=0000070023", "00000010=060600")
	slices.SortFunc(row.Cells, func(a, b fsck.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	r := c.Check(row, fsck.Facts{})
	if got := changes(r); got != "" {
		t.Errorf("changed: %s", got)
	}
	for _, f := range r.Findings {
		if f.Planned || f.Kind == fsck.Duplicate && f.Left == "" {
			t.Errorf("got %+v, want it not planned and, for a duplicate, a reason", f)
		}
	}

	c.Options.DeleteBadCompacts = true
	if d := cmp.Diff("00000010=050600@3 -0000 -050000", changes(c.Check(row, fsck.Facts{}))); d != "" {
		t.Error(d)
	}
}

// An orphan, or a row with a bad key, is deleted as a whole with its own option and not with the
// others.
func TestCheck_keys(t *testing.T) {
	row := rowOf(t, "0000=05", "010000=7b7d")
	f := func(row fsck.Row, facts fsck.Facts, o fsck.Options, want, change string) {
		t.Helper()
		c := fsck.Checker{Schema: schema, Options: o}
		r := c.Check(row, facts)
		if len(r.Findings) != 1 || r.Findings[0].Kind.String() != want || changes(r) != change {
			t.Errorf("%+v: %+v, %q, want %s and %q", o, r.Findings, changes(r), want, change)
		}
	}
	rest := all(fsck.Options{})
	rest.DeleteOrphans, rest.DeleteBadRows = false, false
	f(row, fsck.Facts{Orphan: "tagk 000001"}, rest, "orphan", "")
	f(row, fsck.Facts{Orphan: "tagk 000001"}, fsck.Options{Fix: true, DeleteOrphans: true}, "orphan", "-0000 -010000")
	row.Key = row.Key[:len(row.Key)-1]
	f(row, fsck.Facts{}, rest, "bad row key", "")
	f(row, fsck.Facts{}, fsck.Options{Fix: true, DeleteBadRows: true}, "bad row key", "-0000 -010000")
}

// With Compact a row that could be one cell is reported, and compacted if Fix is set, too.
func TestCheck_uncompacted(t *testing.T) {
	for _, test := range []struct {
		cells []string
		by    options
		want  string
	}{
		{[]string{"0000=05", "0010=06"}, options{Compact: true}, "1, planned false, change "},
		{
			[]string{"0000=05", "0010=06"},
			options{Compact: true, Fix: true},
			"1, planned true, change 00000010=050600@2 -0000 -0010",
		},
		{[]string{"0000=05", "0010=06"}, options{Fix: true}, "0, planned false, change "},
		{[]string{"00000010=050600"}, options{Compact: true}, "0, planned false, change "},
		{[]string{"0000=05"}, options{Compact: true}, "0, planned false, change "},
		{[]string{"050000=000005"}, options{Compact: true}, "0, planned false, change "},
	} {
		c := fsck.Checker{Schema: schema, Options: test.by}
		result := c.Check(rowOf(t, test.cells...), fsck.Facts{})
		told, planned := 0, false
		for _, f := range result.Findings {
			if f.Kind == fsck.Uncompacted {
				told, planned = told+1, f.Planned
			}
		}
		if d := cmp.Diff(test.want, fmt.Sprintf("%d, planned %t, change %s", told, planned, changes(result))); d != "" {
			t.Errorf("%q, %+v: %s", test.cells, test.by, d)
		}
	}
}
