package gnuformat

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A number has the text that gnuplot 5.4 prints.
func TestNumber(t *testing.T) {
	f := func(format string, v float64, want string) {
		t.Helper()
		n, err := ParseNumber(format)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Format(v); got != want {
			t.Errorf("%s of %v: got %q, want %q", format, v, got, want)
		}
	}
	f("%.2f", 1234.5678, "1234.57")
	f("%f", 0.5, "0.500000")
	f("%e", 12345, "1.234500e+04")
	f("%g", 1e7, "1e+07")
	f("%g ms", 250, "250 ms")
	f("<%6.1f>", 2.25, "<   2.2>")
	f("<%-6.1f>", 2.25, "<2.2   >")
	f("%06.1f", -2.25, "-002.2")
	f("%+d", 3.5, "+4")
	f("%d", 1e300, "1e+300")
	f("%x", 255, "ff")
	f("%X", 255, "FF")
	f("%o", 8, "10")
	f("%.0f%%", 50, "50%")
	f("%.1s%c", 1234.5, "1.2k")
	f("%.1s%c", 1000, "1.0k")
	f("%.0s%c", 999, "999")
	f("%s%c", 1.5e6, "1.5M")
	f("%.1s%cB", -2.5e9, "-2.5GB")
	f("%s%c", 0.0021, "2.1m")
	f("%s%c", 0, "0")
	f("%.1s %c", 1e30, "1000000.0 Y")
	f("%.0b%BB", 1<<20, "1MiB")
	f("%.1b%BB", 512, "512.0B")
	f("%.2t*10^%T", 1234, "1.23*10^3")
	f("%S", 12345, "3")
	f("%.1P pi", math.Pi/2, "0.5 pi")
}

func TestNumber_refused(t *testing.T) {
	for _, text := range []string{
		"", "x", "%%", "%", "%.2", "%y", "%*f", "%99f", "%.99f", "%5%", "% ", "%999999999999999999999f",
		strings.Repeat("%f", 51),
	} {
		if _, err := ParseNumber(text); err == nil {
			t.Errorf("%q is read, want an error", text)
		}
	}
}

func TestTime(t *testing.T) {
	zone := time.FixedZone("x", 5*3600)
	at := time.Date(2013, 1, 8, 4, 5, 6, 0, time.UTC).In(zone) // a Tuesday, 09:05:06
	f := func(format, want string) {
		t.Helper()
		p, err := ParseTime(format)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Format(at); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
	f("%H:%M:%S", "09:05:06")
	f("%a %A %b %B", "Tue Tuesday Jan January")
	f("%Y/%m/%d", "2013/01/08")
	f("%y%j", "13008")
	f("%I %l %k%p", "09  9  9AM")
	f("%D %F %T %R", "01/08/13 2013-01-08 09:05:06 09:05")
	f("%e|%w|%U|%W|%q", " 8|2|01|01|1")
	f("%s", "1357617906")
	f("100%% at %H h", "100% at 09 h")
	f("Jan %d 15:04", "Jan 08 15:04") // Go's own layouts have no meaning
	for _, text := range []string{"", "x", "%", "%H%", "%E", "%%", strings.Repeat("%H", 51)} {
		if _, err := ParseTime(text); err == nil {
			t.Errorf("%q is read, want an error", text)
		}
	}
}

// Every format that is read prints any number, in bounded length.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"%.2f", "%.1s%c", "%-+ 0#40.20e", "%b%B%P%T%l", "%x%X%o%d"} {
		f.Add(text, 1234.5)
		f.Add(text, math.NaN())
		f.Add(text, math.Inf(-1))
		f.Add(text, math.MaxFloat64)
		f.Add(text, -5e-324)
	}
	f.Fuzz(func(t *testing.T, text string, v float64) {
		n, err := ParseNumber(text)
		if err != nil {
			return
		}
		// The longest is %.20f of the largest double.
		if got := n.Format(v); len(got) > maxFormat*400 {
			t.Errorf("%q prints %d bytes", text, len(got))
		}
	})
}

func FuzzTime(f *testing.F) {
	f.Add("%a %d %H:%M", int64(1357603200))
	f.Add("%U%W%j%q%s", int64(-1))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		p, err := ParseTime(text)
		if err != nil {
			return
		}
		if got := p.Format(time.Unix(seconds%(1<<33), 0).UTC()); len(got) > maxFormat*12 {
			t.Errorf("%q prints %d bytes", text, len(got))
		}
	})
}
