package graph

import (
	"errors"
	"image/color"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/gateway/extra/graph/gnuformat"
	"downpour/gateway/query"
)

func parse(t *testing.T, text string) (*Options, error) {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(values, 2)
}

// Each parameter changes its own options and no others.
func TestParse(t *testing.T) {
	black, white := color.NRGBA{0, 0, 0, 255}, color.NRGBA{255, 255, 255, 255}
	f := func(text string, change func(*Options)) {
		t.Helper()
		want := &Options{Width: 1024, Height: 768, Key: Key{Box: true, Horizontal: End, Vertical: Start},
			Background: white, Foreground: black, Style: LinesAndPoints, OnRight: []bool{false, false}}
		change(want)
		got, err := parse(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		ignored := cmpopts.IgnoreTypes(&gnuformat.Number{}, &gnuformat.Time{})
		if diff := cmp.Diff(want, got, ignored); diff != "" {
			t.Errorf("%s: want -, got +: %s", text, diff)
		}
	}
	f("", func(*Options) {})
	f("wxh=800x400", func(o *Options) { o.Width, o.Height = 800, 400 })
	f("wxh=1x1&wxh=+100x100+", func(o *Options) { o.Width, o.Height = 100, 100 })
	f("wxh=3840x2160", func(o *Options) { o.Width, o.Height = 3840, 2160 })
	f("wxh=", func(*Options) {})
	f("yrange=[0:]", func(o *Options) { o.Left.Range = Range{Fixed: true} })
	f("yrange=[-5:5.5]", func(o *Options) { o.Left.Range = Range{From: -5, To: 5.5, Fixed: true, FixedToo: true} })
	f(`yrange=["0":"5"]`, func(o *Options) { o.Left.Range = Range{To: 5, Fixed: true, FixedToo: true} })
	f("y2range=[10:0]", func(o *Options) { o.Right.Range = Range{From: 10, Fixed: true, FixedToo: true} })
	f("y2range=[1e-3:1.5e3]", func(o *Options) {
		o.Right.Range = Range{From: 1e-3, To: 1500, Fixed: true, FixedToo: true}
	})
	f("ylabel=load&y2label=a+b", func(o *Options) { o.Left.Label, o.Right.Label = "load", "a b" })
	f("title=%22%3Bx%0A", func(o *Options) { o.Title = `";x` })
	f("title=50%25+of+a%2Bb", func(o *Options) { o.Title = "50% of a+b" })
	f("title=caf%25C3%25A9", func(o *Options) { o.Title = "café" }) // encoded twice
	f("title=caf%25C3%25A9%2Bbar", func(o *Options) { o.Title = "café+bar" })
	f("ylog&y2log=", func(o *Options) { o.Left.Log, o.Right.Log = true, true })
	f("key=out+left+bottom", func(o *Options) { o.Key = Key{Outside: true, Horizontal: Start, Vertical: End} })
	f("key=center+box+horiz", func(o *Options) { o.Key = Key{Box: true, Sideways: true, Horizontal: Middle} })
	f("key=left+center", func(o *Options) { o.Key = Key{Horizontal: Start, Vertical: Middle} })
	f("key=center+center", func(o *Options) { o.Key = Key{Horizontal: Middle, Vertical: Middle} })
	f("key=below", func(o *Options) { o.Key = Key{Outside: true, Horizontal: Middle, Vertical: End} })
	f("key=", func(o *Options) { o.Key.Box = false })
	f("key=box+left&nokey", func(o *Options) { o.Key = Key{Hidden: true, Box: true, Horizontal: Start} })
	f("bgcolor=x102030&fgcolor=XabCDef", func(o *Options) {
		o.Background, o.Foreground = color.NRGBA{16, 32, 48, 255}, color.NRGBA{0xab, 0xcd, 0xef, 255}
	})
	f("smooth=csplines&style=dots", func(o *Options) { o.Smooth, o.Style = Splines, Dots })
	f("style=linespoints", func(*Options) {})
	f("o=&o=axis+x1y2", func(o *Options) { o.OnRight[1] = true })
	f("o=lw+5&o=axis+x1y2%3B+system+'id'&o=axis+x1y2", func(o *Options) { o.OnRight[1] = true })
}

// A format may be URL-encoded once, which is right, or twice, as OpenTSDB needs it.
func TestParse_formats(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		o, err := parse(t, text)
		if err != nil || o.Left.Format == nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if got := o.Left.Format.Format(1234.5); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	f("yformat=%25.2f", "1234.50")
	f("yformat=%2525.2f", "1234.50")
	f("yformat=%25.1s%25cB", "1.2kB")
	f("yformat=%2525.1s%2525cB", "1.2kB")
	o, err := parse(t, "xformat=%25H%3A%25M&y2format=%25g")
	if err != nil || o.TimeFormat == nil || o.Right.Format == nil || o.Left.Format != nil {
		t.Errorf("got %v %+v, want the formats of time and the right axis alone", err, o)
	}
}

// Invalid options are refused with OpenTSDB's messages; if there are several, the one that
// OpenTSDB finds first is reported.
func TestParse_refused(t *testing.T) {
	f := func(text string, status int, want string) {
		t.Helper()
		_, err := parse(t, text)
		var refused *query.Error
		if !errors.As(err, &refused) || refused.Status != status || refused.Message != want {
			t.Errorf("%s: %v, want %d %s", text, err, status, want)
		}
	}
	const pattern = `'wxh' was invalid. Must satisfy the pattern ^\d+x\d+$`
	f("wxh=600", 400, pattern)
	f("wxh=-600x400", 400, pattern)
	f("wxh=600x400x5", 400, pattern)
	f("wxh=99x400", 400, "Parameter wxh too short: 99x400")
	f("wxh=99x4000", 400, "Invalid wxh parameter: 99x4000")
	f("wxh=1000x99", 400, "Invalid wxh parameter: 1000x99, height smaller than 100 in 1000x99")
	f("wxh=001x1000", 400, "Invalid wxh parameter: 001x1000, width smaller than 100 in 1x1000")
	f("wxh=100000x100000", 400, `Can't parse wxh '100000x100000': Value out of range. Value:"100000" Radix:10`)
	f("wxh=99999999999x400", 400, `Can't parse wxh '99999999999x400': For input string: "99999999999"`)
	f("wxh=32767x32767", 413, "A picture of 32767x32767 has 1073676289 pixels, at most 8388608")
	f("yrange=0:100", 400, "'yrange' was invalid. Must be in the format [min:max].")
	f("yrange=[:100]", 400, "'yrange' was invalid. Must be in the format [min:max].")
	f("yrange=[0:1e999]", 400, "'yrange' was invalid. Must be in the format [min:max].")
	f("y2range=[0:1]%3B+x", 400, "'y2range' was invalid. Must be in the format [min:max].")
	f("yrange=[1:1]", 400, "'yrange' was invalid. It is empty: [1:1]")
	f("yrange=[0:10]&ylog", 400, "'yrange' was invalid. A logarithmic axis has only values above 0")
	f("ylabel=!", 400, `'ylabel' was invalid. Must satisfy the pattern [a-zA-z0-9 \-_]`)
	f("title=", 400, `'title' was invalid. Must satisfy the pattern [a-zA-z0-9 \-_]`)
	f("title=`id`", 400, "Parameter title contained a back-tick. That's a no-no.")
	f("title=%2560id", 400, "Parameter title contained a back-tick. That's a no-no.")
	f("nokey=%60", 400, "Parameter nokey contained a back-tick. That's a no-no.")
	f("title="+strings.Repeat("x", 1025), 400, "Parameter title has 1025 bytes, at most 1024")
	f("yformat=x", 400, `'yformat' was invalid. Must satisfy the pattern (%[a-zA-Z])+[:\/]?\s?`)
	f("xformat=%25.2f", 400, `'xformat' was invalid. Must satisfy the pattern (%[a-zA-Z])+[:\/]?\s?`)
	f("bgcolor=transparent", 400, "'bgcolor' was invalid. Must be a hex value e.g. 'xFFFFFF'")
	f("fgcolor=xFFFFFF%3B", 400, "'fgcolor' was invalid. Must be a hex value e.g. 'xFFFFFF'")
	f("smooth=nope", 400, "'smooth' was invalid. Must satisfy the pattern unique|frequency|fnormal|cumulative|"+
		"cnormal|bins|csplines|acsplines|mcsplines|bezier|sbezier|unwrap|zsort")
	f("style=lines", 400, "'style' was invalid. Must satisfy the pattern (linespoint|points|circles|dots)")
	f("style=x&wxh=x&yrange=x", 400, pattern)
	f("style=x&title=&ylabel=!", 400, `'ylabel' was invalid. Must satisfy the pattern [a-zA-z0-9 \-_]`)
}

// Options that are read are within their bounds.
func FuzzParse(f *testing.F) {
	f.Add("wxh=800x400&yrange=[0:]&ylabel=load&title=demo&key=out+right+top&smooth=bezier&style=dots")
	f.Add("yformat=%25.2f&xformat=%2525H&y2range=[1:2]&y2log&bgcolor=x000000&o=axis+x1y2&nokey")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		o, err := Parse(values, 3)
		var refused *query.Error
		switch {
		case err != nil && !errors.As(err, &refused):
			t.Errorf("%q: %v is no *query.Error", text, err)
		case err != nil:
		case o.Width*o.Height > MaxPixels || o.Width < minSide || o.Height < minSide || len(o.OnRight) != 3 ||
			len(o.Title)+len(o.Left.Label)+len(o.Right.Label) > 3*maxText:
			t.Errorf("%q: %+v", text, o)
		}
	})
}
