package picture

import (
	"fmt"
	"testing"
)

// BenchmarkDraw draws four lines: of 61 points each, and of so many that every column of pixels is
// drawn from its lowest to its highest value.
func BenchmarkDraw(b *testing.B) {
	for _, form := range []Form{PNG, SVG} {
		for _, points := range []int{61, 361, 100_000} {
			for _, size := range []string{"1024x768", "3840x2160"} {
				b.Run(fmt.Sprintf("%s/points=%d/%s", form, points, size), func(b *testing.B) {
					t := new(testing.T)
					p := picture(t, "wxh="+size, wave(points, 0, 100), wave(points, 3, 80), wave(points, 5, 95),
						wave(points, 0, 25))
					b.ReportAllocs()
					for b.Loop() {
						text, err := p.Draw(form, free)
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(len(text)), "file-bytes")
					}
				})
			}
		}
	}
}
