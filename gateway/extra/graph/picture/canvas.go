package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"downpour/gateway/extra/graph"
)

// Sizes in pixels.
const (
	textSize = 12
	lineRow  = 15 // from one line of text to the next
	thin     = 1
	thick    = 1.5
)

// At 72 dots an inch one of the library's points is one pixel.
const dotsPerInch = 72

// regular is the font of all texts. Its letters are as wide as those of Arial and Helvetica,
// so that an SVG has its texts where they belong in a browser that has one of these.
var regular = parseFont()

func parseFont() *font.Face {
	parsed, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(fmt.Sprintf("picture: the font that is compiled in: %v", err))
	}
	return &font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: textSize}, Face: parsed}
}

// canvas is drawn on in pixels from the upper left corner. After the first error of the
// guard it draws nothing more.
type canvas struct {
	width, height float64
	guard         Guard
	err           error

	vg  vg.Canvas
	img *vgimg.Canvas // one of these two
	svg *vgsvg.Canvas
}

// Bytes that are reserved before they are allocated.
const (
	// bytesPerPixel are two copies of an image, one of them made needlessly by the library, and
	// the one in colours of the palette.
	bytesPerPixel = 2*4 + 1
	// encoderBytes is what the encoder of PNG, and the table of colours, take on top of the file.
	encoderBytes = 3 << 19
	// Bytes of an SVG, three times what is written: it stands in a buffer that grows by
	// doubling.
	svgBytes         = 64 << 10
	svgBytesPerPoint = 3 * 14  // of a path
	svgBytesPerText  = 3 * 300 // without its letters
	svgBytesPerByte  = 3 * 6   // of a text, which may be escaped
)

// newCanvas returns a canvas with nothing but the background, whose memory is reserved.
func newCanvas(form Form, o *graph.Options, guard Guard) (*canvas, error) {
	c := &canvas{width: float64(o.Width), height: float64(o.Height), guard: guard}
	if form == SVG {
		if err := guard.Reserve(svgBytes); err != nil {
			return nil, err
		}
		// A point is 4/3 of a browser's pixels.
		const scale = 0.75
		c.svg = vgsvg.New(vg.Length(c.width*scale), vg.Length(c.height*scale))
		c.vg = c.svg
		c.vg.Scale(scale, scale)
		// An SVG is transparent; a PNG is made with its background.
		c.fill(c.rectangle(0, 0, c.width, c.height), o.Background)
		return c, c.err
	}

	if err := guard.Reserve(int64(o.Width)*int64(o.Height)*bytesPerPixel + encoderBytes); err != nil {
		return nil, err
	}
	c.img = vgimg.NewWith(vgimg.UseWH(vg.Length(c.width), vg.Length(c.height)), vgimg.UseDPI(dotsPerInch),
		vgimg.UseBackgroundColor(o.Background))
	c.vg = c.img
	return c, nil
}

// file returns what was drawn. A PNG has the colours of a palette.
func (c *canvas) file(palette color.Palette) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	out := &bounded{reserve: c.guard.Reserve, check: c.guard.Check}
	if c.svg != nil {
		_, err := c.svg.WriteTo(out)
		return withFonts(out.file.Bytes()), err
	}
	err := png.Encode(out, toPalette(c.img.Image().(*image.RGBA), palette))
	return out.file.Bytes(), err
}

// withFonts names fonts for browsers that lack the one that the library names.
func withFonts(svg []byte) []byte {
	const style = `<style>text{font-family:"Liberation Sans",Arial,Helvetica,sans-serif!important;white-space:pre}` +
		"</style>\n"
	before, after, _ := bytes.Cut(svg, []byte("\n<g"))
	return bytes.Join([][]byte{before, []byte(style), []byte("<g"), after}, nil)
}

// bounded is a buffer that asks before it grows, and ends when the drawing shall.
type bounded struct {
	file    bytes.Buffer
	reserve func(int64) error
	check   func() error
	held    int
}

// Write reserves what the buffer may grow to, which is twice what is in it.
func (b *bounded) Write(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	if need := 2 * (b.file.Len() + len(p)); need > b.held {
		if err := b.reserve(int64(need - b.held)); err != nil {
			return 0, err
		}
		b.held = need
	}
	return b.file.Write(p)
}

// mostInPath bounds the parts of a path that are drawn at once: between two paths the guard
// is asked. For each row of pixels the library keeps a list of what a path covers there, and
// searches it again for each part: one path of a thousand parts takes minutes, a hundred
// paths of ten milliseconds.
func (c *canvas) mostInPath() int {
	if c.img != nil {
		return 16
	}
	return 4096
}

// ready reports whether to draw something that takes so many bytes of an SVG, and reserves them.
// A PNG's image was reserved by newCanvas, whatever is drawn.
func (c *canvas) ready(bytes int) bool {
	if c.err == nil {
		c.err = c.guard.Check()
	}
	if c.err == nil && c.svg != nil {
		c.err = c.guard.Reserve(int64(bytes))
	}
	return c.err == nil
}

// point is a place in the library's coordinates, which count from below.
func (c *canvas) point(x, y float64) vg.Point {
	return vg.Point{X: vg.Length(x), Y: vg.Length(c.height - y)}
}

// polyline is a path from place to place.
func (c *canvas) polyline(places ...[2]float64) (p vg.Path) {
	for i, at := range places {
		if i == 0 {
			p.Move(c.point(at[0], at[1]))
		} else {
			p.Line(c.point(at[0], at[1]))
		}
	}
	return p
}

func (c *canvas) rectangle(left, top, right, bottom float64) vg.Path {
	p := c.polyline([2]float64{left, top}, [2]float64{right, top}, [2]float64{right, bottom}, [2]float64{left, bottom})
	p.Close()
	return p
}

func (c *canvas) stroke(p vg.Path, width float64, colour color.Color) {
	if len(p) > 0 && c.ready(len(p)*svgBytesPerPoint) {
		c.vg.SetLineWidth(vg.Length(width))
		c.vg.SetColor(colour)
		c.vg.Stroke(p)
	}
}

// dash strokes a path with gaps.
func (c *canvas) dash(p vg.Path, colour color.Color) {
	c.vg.SetLineDash([]vg.Length{2, 3}, 0)
	c.stroke(p, thin, colour)
	c.vg.SetLineDash(nil, 0)
}

func (c *canvas) fill(p vg.Path, colour color.Color) {
	if len(p) > 0 && c.ready(len(p)*svgBytesPerPoint) {
		c.vg.SetColor(colour)
		c.vg.Fill(p)
	}
}

// text writes a text whose baseline begins at a place.
func (c *canvas) text(x, y float64, text string, colour color.Color) {
	if text != "" && c.ready(svgBytesPerText+svgBytesPerByte*len(text)) {
		c.vg.SetColor(colour)
		c.vg.FillString(*regular, c.point(x, y), text)
	}
}

// upwards writes a text from below to above, whose baseline begins at a place.
func (c *canvas) upwards(x, y float64, text string, colour color.Color) {
	if c.err != nil {
		return
	}
	c.vg.Push()
	c.vg.Translate(c.point(x, y))
	c.vg.Rotate(math.Pi / 2)
	if text != "" && c.ready(svgBytesPerText+svgBytesPerByte*len(text)) {
		c.vg.SetColor(colour)
		c.vg.FillString(*regular, vg.Point{}, text)
	}
	c.vg.Pop()
}

func textWidth(text string) float64 { return float64(regular.Width(text)) }

// maxRunes is how much of a text is looked at: no picture shows more.
const maxRunes = 400

// printable returns a text as it can be drawn, of at most so many pixels. A cut is marked.
func printable(text string, most float64) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxRunes {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	text = b.String()
	if n <= maxRunes && textWidth(text) <= most {
		return text
	}

	const mark = "…"
	runes := []rune(text)
	low, high := 0, len(runes) // how many may stay is between
	for low < high {
		if middle := (low + high + 1) / 2; textWidth(string(runes[:middle])+mark) <= most {
			low = middle
		} else {
			high = middle - 1
		}
	}
	if low == 0 {
		return ""
	}
	return string(runes[:low]) + mark
}
