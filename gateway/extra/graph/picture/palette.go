package picture

import (
	"image"
	"image/color"

	"downpour/gateway/extra/graph"
)

// shades is how many mixtures of a colour with the background a palette has: those at the
// edges of lines.
const shades = 20

// paletteOf returns the colours that a picture may have: its own, each in its shades, at
// most 256.
func paletteOf(o *graph.Options, series int) color.Palette {
	p := color.Palette{o.Background}
	used := []color.NRGBA{o.Foreground}
	if series > 0 {
		used = append(used, noteColour)
		used = append(used, colours[:min(series, len(colours))]...)
	}
	for _, c := range used {
		for i := 1; i <= shades; i++ {
			p = append(p, blend(c, o.Background, float64(i)/shades))
		}
	}
	return p
}

// toPalette returns an image in the colours of a palette, for a file of a third of the size.
func toPalette(img *image.RGBA, p color.Palette) *image.Paletted {
	out := image.NewPaletted(img.Bounds(), p)
	// What a colour has become, by five bits of red, green and blue: 0 is not known yet.
	known := make([]uint16, 1<<15)
	for i := range out.Pix {
		c := img.Pix[4*i : 4*i+4]
		at := int(c[0]>>3)<<10 | int(c[1]>>3)<<5 | int(c[2]>>3)
		if known[at] == 0 {
			known[at] = 1 + uint16(p.Index(color.RGBA{c[0], c[1], c[2], 255}))
		}
		out.Pix[i] = uint8(known[at] - 1)
	}
	return out
}
