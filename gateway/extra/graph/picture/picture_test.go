package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/graph"
)

// start is where the tests' pictures begin, which last an hour: 2013-01-08 00:00:00 in UTC, in ms.
const start = 1357603200_000

// free is a guard that refuses nothing.
var free = Guard{Reserve: func(int64) error { return nil }, Check: func() error { return nil }}

// picture returns a picture of an hour, with options as /q has them, and a series for each list of
// values, at equal distances.
func picture(t *testing.T, options string, series ...[]float64) *Picture {
	t.Helper()
	values, err := url.ParseQuery(options)
	if err != nil {
		t.Fatal(err)
	}
	o, err := graph.Parse(values, len(series))
	if err != nil {
		t.Fatal(err)
	}
	p := &Picture{Start: start, End: start + 3600_000, Options: o}
	for i, list := range series {
		s := Series{Name: fmt.Sprintf("m%d{}", i), OnRight: o.OnRight[i]}
		for k, v := range list {
			s.Points.Append(start+int64(k)*3600_000/int64(max(1, len(list)-1)), encoding.FloatValue(v))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// drawn has the elements of an SVG.
type drawn struct {
	texts []string
	paths []path
}

type path struct {
	stroke, fill, width, dash string
	points                    [][2]float64 // from the lower left corner
}

var place = regexp.MustCompile(`[ML](-?[0-9.e+]+),(-?[0-9.e+]+)`)

// draw draws a picture as an SVG and reads it.
func draw(t *testing.T, p *Picture) (d drawn) {
	t.Helper()
	text, err := p.Draw(SVG, free)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(text))
	inText := false
	for {
		token, err := decoder.Token()
		if token == nil {
			if err.Error() != "EOF" {
				t.Fatalf("%v in %.500s", err, text)
			}
			return d
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
			if e.Name.Local == "path" {
				d.paths = append(d.paths, readPath(e.Attr))
			}
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(e))
			}
			inText = false
		}
	}
}

func readPath(attributes []xml.Attr) (p path) {
	for _, a := range attributes {
		if a.Name.Local == "d" {
			for _, m := range place.FindAllStringSubmatch(a.Value, -1) {
				x, _ := strconv.ParseFloat(m[1], 64)
				y, _ := strconv.ParseFloat(m[2], 64)
				p.points = append(p.points, [2]float64{x, y})
			}
			continue
		}
		for declaration := range strings.SplitSeq(a.Value, ";") {
			switch name, value, _ := strings.Cut(declaration, ":"); name {
			case "stroke":
				p.stroke = value
			case "fill":
				p.fill = value
			case "stroke-width":
				p.width = value
			case "stroke-dasharray":
				p.dash = value
			}
		}
	}
	return p
}

// lines returns the lines of series, which are thick and longer than those in the key.
func (d drawn) lines() (out []path) {
	for _, p := range d.paths {
		if p.width == "1.5" && len(p.points) != 2 {
			out = append(out, p)
		}
	}
	return out
}

// lacks returns those texts that are not drawn.
func (d drawn) lacks(texts ...string) (out []string) {
	for _, text := range texts {
		if !slices.Contains(d.texts, text) {
			out = append(out, text)
		}
	}
	return out
}

// wave returns n values that go up and down between low and high.
func wave(n int, low, high float64) (out []float64) {
	for i := range n {
		out = append(out, low+(high-low)*float64(i%3)/2)
	}
	return out
}

// A picture has the lines, axes, names and annotation of the recorded one.
func TestDraw_content(t *testing.T) {
	p := picture(t, "wxh=800x400&yrange=[0:]&ylabel=load&title=demo", wave(61, 0, 100), wave(61, 3, 80),
		wave(61, 5, 95), wave(61, 0, 25))
	p.Notes = []Note{{start + 600_000, "deploy"}, {start - 1, "before"}, {start + 3600_001, "behind"}}
	d := draw(t, p)
	if n := len(d.lines()); n != 4 {
		t.Errorf("%d lines, want 4", n)
	}
	seen := map[string]bool{}
	for _, l := range d.lines() {
		seen[l.stroke] = true
	}
	if len(seen) != 4 {
		t.Errorf("the lines have the colours %v, want four", seen)
	}
	want := []string{"demo", "load", "deploy", "m0{}", "m1{}", "m2{}", "m3{}",
		"0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100", "00:00", "00:10", "00:20", "00:30",
		"00:40", "00:50", "01:00"}
	slices.Sort(want)
	slices.Sort(d.texts)
	if diff := cmp.Diff(want, d.texts); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	notes := 0
	for _, s := range d.paths {
		if s.stroke == "#0072B2" && s.width != "1.5" {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d lines of annotations, want 1", notes)
	}
}

func TestDraw_noData(t *testing.T) {
	d := draw(t, picture(t, "ylabel=load"))
	if missing := d.lacks("No data", "load", "0", "10", "00:00", "01:00"); missing != nil {
		t.Errorf("%q are not there", missing)
	}
	for _, p := range d.paths {
		if p.dash != "" {
			t.Error("there is a grid")
		}
	}
	// A series without points is no line, and has no name in the key.
	d = draw(t, picture(t, "", nil, []float64{math.NaN()}))
	if d.lacks("m0{}") == nil || len(d.lines()) > 0 || d.lacks("No data") == nil {
		t.Errorf("got the texts %q, want none of a series without points, and no lines", d.texts)
	}
}

// Each option changes the texts of a picture as it should.
func TestDraw_options(t *testing.T) {
	one := wave(20, 1, 900)
	has := func(options string, texts ...string) {
		t.Helper()
		if missing := draw(t, picture(t, options, one, one)).lacks(texts...); missing != nil {
			t.Errorf("%s: %q are not there", options, missing)
		}
	}
	hasNot := func(options string, texts ...string) {
		t.Helper()
		if missing := draw(t, picture(t, options, one, one)).lacks(texts...); len(missing) != len(texts) {
			t.Errorf("%s: of %q only %q are not there", options, texts, missing)
		}
	}
	has("title=a+title&ylabel=left&y2label=right", "a title", "left", "right")
	has("ylog", "1", "10", "100", "1000")
	hasNot("ylog", "200", "800")
	has("yrange=[0:50]", "0", "50")
	hasNot("yrange=[0:50]", "100", "900")
	has("yrange=[500:0]", "0", "500")
	has("yformat=%25.0s%25cB", "200B", "900B", "0B")
	has("o=&o=axis+x1y2&y2range=[0:7]&y2format=%25.1f!", "0.0!", "7.0!", "900")
	hasNot("o=&o=&y2range=[0:7]&y2format=%25.1f!", "7.0!")
	has("xformat=%25j+%25H.%25M", "008 00.00", "008 01.00")
	has("key=out+left+bottom", "m0{}", "m1{}")
	hasNot("nokey&key=box", "m0{}", "m1{}")
	has("title=%3Cscript%3E%26%22'", `<script>&"'`)
	has("title=a%00%1Bb%E2%80%AE", "a  b ")
	hasNot("wxh=100x100", "m0{}")
}

// The right axis has a scale of its own: a series there with a hundred times the values of the left
// one has the same line.
func TestDraw_rightAxis(t *testing.T) {
	low, high := wave(9, 0, 10), wave(9, 0, 1000)
	differ := func(options string) (most float64) {
		lines := draw(t, picture(t, options, low, high)).lines()
		if len(lines) != 2 || len(lines[0].points) != len(lines[1].points) {
			t.Fatalf("%s: %v", options, lines)
		}
		for i, at := range lines[0].points {
			most = max(most, math.Abs(at[1]-lines[1].points[i][1]))
		}
		return most
	}
	if same, own := differ(""), differ("o=&o=axis+x1y2"); same < 100 || own > .1 {
		t.Errorf("the lines differ by %v pixels on one axis, want 100 or more; by %v on two, want 0.1 at most",
			same, own)
	}
}

// Lines are cut at the frame; they lead to the points next outside of it.
func TestDraw_clipped(t *testing.T) {
	p := picture(t, "yrange=[0:10]&nokey&wxh=500x500", nil)
	s := &p.Series[0].Points
	for _, at := range []struct {
		minute, value int64
	}{{-60, 5}, {30, 5}, {40, 1000}, {50, -1000}, {55, 5}, {90, 5}, {99, 5}} {
		s.Append(start+at.minute*60_000, encoding.IntValue(at.value))
	}
	lines := draw(t, p).lines()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	left, right, low, high := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, at := range lines[0].points {
		left, right, low, high = min(left, at[0]), max(right, at[0]), min(low, at[1]), max(high, at[1])
	}
	if left < 20 || left > 60 || right < 450 || right > 490 || low < 20 || high > 495 || high-low < 400 {
		t.Errorf("x from %v to %v, y from %v to %v, want them to the frame and not beyond", left, right, low, high)
	}
}

// If a column of pixels has many points, its extremes are drawn, and the size of a picture is
// bounded.
func TestDraw_manyPoints(t *testing.T) {
	values := wave(300_000, 40, 60)
	values[123_456] = 99
	values[200_000] = 1
	p := picture(t, "wxh=400x300&yrange=[0:100]&nokey", values)
	low, high, points := math.Inf(1), 0.0, 0
	for _, l := range draw(t, p).paths {
		if l.stroke != "#9400D3" && l.fill != "#9400D3" {
			continue
		}
		points += len(l.points)
		for _, at := range l.points {
			low, high = min(low, at[1]), max(high, at[1])
		}
	}
	whole := 300.0 - 10 - 10 - gap - textWidth("00:00")
	if points > 4*400 || math.Abs((high-low)/whole-.98) > .02 {
		t.Errorf("%d points from %v to %v, want 1600 at most, over 98 %% of %v", points, low, high, whole)
	}
	if text, err := picture(t, "wxh=400x300&style=points", values).Draw(SVG, free); err != nil || len(text) > 2<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// Styles draw lines, marks or both.
func TestDraw_styles(t *testing.T) {
	f := func(options string, lines int, marks func(path) bool) {
		t.Helper()
		d := draw(t, picture(t, "nokey&"+options, wave(7, 1, 5)))
		if n := len(d.lines()); n != lines {
			t.Errorf("%s: %d lines, want %d", options, n, lines)
		}
		if marks != nil && !slices.ContainsFunc(d.paths, marks) {
			t.Errorf("%s: no marks", options)
		}
	}
	const first = "#9400D3"
	f("", 1, func(p path) bool { return p.stroke == first && len(p.points) == 7*4 })
	f("style=points", 0, func(p path) bool { return p.stroke == first && len(p.points) == 7*4 })
	f("style=circles", 0, func(p path) bool { return p.stroke == first && len(p.points) == 7 })
	f("style=dots", 0, func(p path) bool { return p.fill == first && len(p.points) == 7*4 })
	f("smooth=csplines", 1, nil)
}

// A PNG has the size, the colours and the form that the recorded ones have.
func TestDraw_png(t *testing.T) {
	p := picture(t, "wxh=321x123&bgcolor=x102030&fgcolor=xFFFF00", wave(9, 0, 5))
	text, err := p.Draw(PNG, free)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	palette, ok := img.ColorModel().(color.Palette)
	if img.Bounds().Dx() != 321 || img.Bounds().Dy() != 123 || !ok || len(palette) > 256 {
		t.Errorf("%v %T", img.Bounds(), img.ColorModel())
	}
	seen := map[color.RGBA]int{}
	for y := range 123 {
		for x := range 321 {
			seen[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	if seen[color.RGBA{16, 32, 48, 255}] < 321*123/2 || seen[color.RGBA{255, 255, 0, 255}] < 400 ||
		seen[color.RGBA{0x94, 0, 0xd3, 255}] < 50 {
		t.Errorf("%d colours: %d of the background, %d of the frame, %d of the line", len(seen),
			seen[color.RGBA{16, 32, 48, 255}], seen[color.RGBA{255, 255, 0, 255}], seen[color.RGBA{0x94, 0, 0xd3, 255}])
	}
}

// Extreme values can be drawn, without NaN or infinity in the picture.
func TestDraw_extremes(t *testing.T) {
	lists := [][]float64{
		{math.MaxFloat64, -math.MaxFloat64}, {0, 5e-324}, {1, math.Nextafter(1, 2)}, {math.Copysign(0, -1), 0},
		{math.NaN(), math.Inf(1), 3},
		{1e300, 1e-300}, {-5}, {math.MaxFloat64}, {0, 0, 0}, {1e15, 1e15 + 1}, {-1e-320, 1e-320},
	}
	for _, options := range []string{"", "ylog", "yrange=[0:]", "yrange=[0:]&smooth=csplines",
		"yrange=[1e-300:1e300]&ylog", "smooth=bezier&style=dots", "yrange=[-1e308:1e308]", "smooth=mcsplines",
		"smooth=cnormal", "smooth=fnormal&style=points", "smooth=cumulative", "smooth=unique", "smooth=zsort"} {
		for _, list := range lists {
			for _, form := range []Form{PNG, SVG} {
				text, err := picture(t, "wxh=200x100&"+options, list).Draw(form, free)
				if err != nil || len(text) == 0 || bytes.Contains(text, []byte("NaN")) ||
					bytes.Contains(text, []byte("Inf")) {
					t.Errorf("%s %v as %s: %d bytes, %v", options, list, form, len(text), err)
				}
			}
		}
	}
}

// Memory is reserved before it is allocated, and any refusal ends the drawing.
func TestDraw_guarded(t *testing.T) {
	refused := errors.New("refused")
	p := picture(t, "wxh=1000x500&smooth=unique", wave(1000, 0, 5), wave(1000, 0, 7))
	for _, form := range []Form{PNG, SVG} {
		asked, checked := int64(0), 0
		text, err := p.Draw(form, Guard{
			Reserve: func(n int64) error { asked += n; return nil },
			Check:   func() error { checked++; return nil },
		})
		least := int64(len(text)) * 2
		if form == PNG {
			least += 1000 * 500 * 9
		}
		if err != nil || asked < least || checked < 10 {
			t.Errorf("%s of %d bytes: %d bytes were asked for, want %d, with %d checks: %v",
				form, len(text), asked, least, checked, err)
		}

		reserved := int64(0)
		_, err = p.Draw(form, Guard{Check: free.Check, Reserve: func(n int64) error {
			if reserved += n; reserved > asked/2 {
				return refused
			}
			return nil
		}})
		if !errors.Is(err, refused) {
			t.Errorf("%s with half of the memory: %v, want the refusal", form, err)
		}
		for _, last := range []int{0, 1, 2, checked / 3, checked / 2, checked - 1} {
			n := 0
			_, err := p.Draw(form, Guard{Reserve: free.Reserve, Check: func() error {
				if n++; n > last {
					return refused
				}
				return nil
			}})
			if !errors.Is(err, refused) {
				t.Errorf("%s: refused at check %d of %d: %v", form, last, checked, err)
			}
		}
	}
}

func TestDraw_tooManySeries(t *testing.T) {
	p := picture(t, "")
	p.Series = make([]Series, MaxSeries)
	d := draw(t, p)
	if d.lacks("No data") == nil {
		t.Error("series without points are no data")
	}
	p.Series = append(p.Series, Series{})
	var many *TooManyError
	if _, err := p.Draw(SVG, free); !errors.As(err, &many) || many.Series != MaxSeries+1 {
		t.Errorf("got %v, want *TooManyError", err)
	}
	// The key has as many names as there is room for, and says how many more there are.
	full := make([][]float64, 200)
	for i := range full {
		full[i] = []float64{1, 2}
	}
	query := "wxh=800x400" + strings.Repeat("&o=", 200)
	if d := draw(t, picture(t, query, full...)); d.lacks("m0{}", "m15{}") != nil || d.lacks("m199{}") == nil ||
		!slices.ContainsFunc(d.texts, func(s string) bool {
			return strings.HasPrefix(s, "and ") && strings.HasSuffix(s, " more")
		}) {
		t.Errorf("got the texts %q, want the first names and how many more there are", d.texts)
	}
}

// Ticks stand at round times of the zone, also when its clocks change.
func TestTimeTicks(t *testing.T) {
	f := func(zone, from, to string, most int, want string) {
		t.Helper()
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		at := func(text string) int64 {
			when, err := time.ParseInLocation("2006-01-02 15:04:05", text, loc)
			if err != nil {
				t.Fatal(err)
			}
			return when.UnixMilli()
		}
		var got []string
		for _, tick := range timeTicks(at(from), at(to), loc, most, usualFormat(at(from), at(to))) {
			if tick.label != "" {
				got = append(got, tick.label)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s from %s to %s: got %s, want %s", zone, from, to, text, want)
		}
	}
	f("UTC", "2013-01-08 00:00:00", "2013-01-08 00:00:10", 12,
		"00:00:00 00:00:01 00:00:02 00:00:03 00:00:04 00:00:05 00:00:06 00:00:07 00:00:08 00:00:09 00:00:10")
	f("UTC", "2013-01-08 00:03:00", "2013-01-08 01:03:00", 9, "00:10 00:20 00:30 00:40 00:50 01:00")
	f("Asia/Kathmandu", "2013-01-08 05:45:00", "2013-01-08 11:45:00", 6, "06:00 07:00 08:00 09:00 10:00 11:00")
	// There is no 02:00.
	f("Europe/Berlin", "2013-03-30 21:00:00", "2013-03-31 09:00:00", 6, "22:00 00:00 03:00 04:00 06:00 08:00")
	f("Europe/Berlin", "2013-10-26 22:00:00", "2013-10-27 08:00:00", 12,
		"22:00 23:00 00:00 01:00 02:00 03:00 04:00 05:00 06:00 07:00 08:00")
	f("UTC", "2013-01-06 12:00:00", "2013-01-10 12:00:00", 5, "Mon 00:00 Tue 00:00 Wed 00:00 Thu 00:00")
	f("UTC", "2013-01-02 00:00:00", "2013-02-28 00:00:00", 9, "Jan 06 Jan 13 Jan 20 Jan 27 Feb 03 Feb 10 Feb 17 Feb 24")
	f("America/New_York", "2012-11-15 00:00:00", "2013-11-15 00:00:00", 6,
		"2013/01/01 2013/03/01 2013/05/01 2013/07/01 2013/09/01 2013/11/01")
	f("UTC", "1970-01-01 00:00:00", "2106-02-07 00:00:00", 3, "2000/01/01 2050/01/01 2100/01/01")
}

// Ticks of values are at round numbers, and ends of the axis that are not fixed lie on ticks.
func TestScale(t *testing.T) {
	f := func(options string, low, high float64, want string) {
		t.Helper()
		s := newScale(&picture(t, options).Options.Left, low, high, 5)
		var labels []string
		for _, tick := range s.ticks {
			if tick.label != "" {
				labels = append(labels, tick.label)
			}
		}
		if got := fmt.Sprintf("%.10g to %.10g: %s", s.from, s.to, strings.Join(labels, " ")); got != want {
			t.Errorf("%s %v to %v: got %s, want %s", options, low, high, got, want)
		}
	}
	f("", 53, 259, "50 to 300: 50 100 150 200 250 300")
	f("", -0.3, 0.1, "-0.3 to 0.1: -0.3 -0.2 -0.1 0 0.1")
	f("", 5, 5, "4.4 to 5.6: 4.4 4.6 4.8 5 5.2 5.4 5.6")
	f("", 0, 0, "-1 to 1: -1 -0.5 0 0.5 1")
	f("", math.Inf(1), math.Inf(-1), "0 to 10: 0 2 4 6 8 10")
	f("", 1e9, 1e9+4, "1000000000 to 1000000004: 1000000000 1000000001 1000000002 1000000003 1000000004")
	f("yrange=[0:]", 53, 259, "0 to 300: 0 100 200 300")
	f("yrange=[300:]", 53, 259, "300 to 330: 300 310 320 330")
	f("yrange=[3:7.5]", 53, 259, "3 to 7.5: 3 4 5 6 7")
	f("yrange=[7:3]", 53, 259, "7 to 3: 3 4 5 6 7")
	f("ylog", 3, 2000, "1 to 10000: 1 10 100 1000 10000")
	f("ylog", 5, 5, "1 to 10: 1 10")
	f("ylog", 1e-9, 1e9, "1e-09 to 1000000000: 1e-09 1e-05 0.1 1000 1e+07")
	f("ylog&yrange=[2:50]", 3, 2000, "2 to 50: 10")
}
