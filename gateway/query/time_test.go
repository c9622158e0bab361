package query

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	f := func(text, zone string, want int64) {
		t.Helper()
		if got, err := (clock{now: now}).parseTime(text, zone); got != want || err != nil {
			t.Errorf("%q in %q: %d, %v, want %d", text, zone, got, err, want)
		}
	}
	ms := now.UnixMilli()
	f("1356998400", "", 1356998400_000)
	f("0", "", 0)
	f("1356998400250", "", 1356998400_250)
	f("12345678901", "", 12345678901) // 11 digits are ms
	f("5ms", "", 5)
	f("1356998400.250", "", 1356998400_250)
	f("1356998400.5", "", 13569984005) // the dot is only deleted
	f("now", "", ms)
	f("NOW", "", ms)
	f("1h-ago", "", ms-3600_000)
	f("1.5m-AGO", "", ms-60_000)
	f("300ms-ago", "", ms-300)
	f("2013/01/01", "", 1356998400_000)
	f("2013/01/01-01:00", "", 1357002000_000)
	f("2013/01/01 01:00:01", "", 1357002001_000)
	f("2013/01/01-01:00", "Europe/Berlin", 1356998400_000)
	f("2012/13/01-00:00", "", 1356998400_000)              // month 13
	f("2013/03/31-02:30", "Europe/Berlin", 1364693400_000) // a time that clocks leave out: 03:30
	f("2013/10/27-02:30", "Europe/Berlin", 1382837400_000) // shown twice: the later
	f("2013/11/03-01:30", "America/New_York", 1383460200_000)
	f("2013/01/1x", "", 1356998400_000)
}

func TestParseTime_refused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, err := (clock{now: now}).parseTime(text, ""); err == nil || err.Error() != want {
			t.Errorf("%q: %d, %v, want %s", text, got, err, want)
		}
	}
	f("f123", "Invalid time: f123. Invalid character 'f' in f123")
	f(" 123", "Invalid time:  123. Invalid character ' ' in  123")
	f("-1", "Invalid time: -1. Negative timestamps are not supported.")
	f("1.5", "Invalid time: 1.5. Millisecond timestamps must be in the format <seconds>.<ms> where the milliseconds "+
		"are limited to 3 digits")
	f("99999999999999999999", "Invalid time: 99999999999999999999. Value too long: 99999999999999999999")
	f("2013/1/1", "Invalid absolute date: 2013/1/1")
	f("2013/01x01", `Invalid date: 2013/01x01. Unparseable date: "2013/01x01"`)
	f("-ago", "Cannot parse null or empty duration")
	f("1x-ago", "Invalid duration (suffix): 1x")
	f("-1h-ago", "Invalid duration (number): -1h")
}

// A date without a time zone is read in the parser's zone; calendar buckets stay in UTC.
func TestParser_zone(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parser{
		Now:  now,
		Zone: tokyo,
	}.JSON([]byte(`{"start":"2013/01/01-09:00","queries":[{"aggregator":"sum","metric":"m","downsample":"1dc-sum"}]}`))
	if err != nil || q.Start != 1356998400_000 || q.Queries[0].Downsample.Zone != "UTC" {
		t.Errorf("%v, %v, want start 1356998400000 and buckets in UTC", q, err)
	}
}

func TestParseDuration(t *testing.T) {
	f := func(text string, want int64) {
		t.Helper()
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	f("300ms", 300)
	f("5s", 5000)
	f("5Ms", 5000) // ms only if the m is lower case
	f("5mS", 5)
	f("1M", 60_000)
	f("1y2d", 86400_000)
	f("2w", 14*86400_000)
	f("1n", 30*86400_000)
	f("1y", 365*86400_000)
	g := func(text, want string) {
		t.Helper()
		if got, err := ParseDuration(text); err == nil || err.Error() != want {
			t.Errorf("%q: %d, %v, want %s", text, got, err, want)
		}
	}
	g("", "Cannot parse null or empty duration")
	g("5", "Invalid duration, must have an integer and unit: 5")
	g("h", "Invalid duration (number): h")
	g("99999999999999999999s", "Invalid duration (number): 99999999999999999999s")
	g("9223372036854775807y", "Duration must be < Long.MAX_VALUE ms: 9223372036854775807y")
	g("5é", "Invalid duration (suffix): 5é")
}

// A wall time that a zone's clocks show is converted to a time with that wall time: the later one
// if clocks show it twice.
func TestWallTime(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"}
	rapid.Check(t, func(t *rapid.T) {
		z, ok := lookUpZone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if !ok {
			t.Fatal("no such zone")
		}
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0).In(z.location)
		f := [6]int{at.Year(), int(at.Month()), at.Day(), at.Hour(), at.Minute(), at.Second()}
		got := wallTime(f, z.location).In(z.location)
		if got.Format(time.DateTime) != at.Format(time.DateTime) {
			t.Errorf("the wall time of %v gives %v", at, got)
		}
		if got.Before(at) {
			t.Errorf("a wall time that is shown twice: got %v, want the later %v", got, at)
		}
	})
}
