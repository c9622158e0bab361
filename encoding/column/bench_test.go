package column

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// BenchmarkDecode reads a block of an hour's 360 points; ns/point is the figure to watch.
func BenchmarkDecode(b *testing.B) {
	var e Encoder
	for _, kind := range []string{"constant", "walk", "counter", "percent", "cents", "float4", "smooth"} {
		p := generate(rand.New(rand.NewPCG(1, 2)), 360, "even", []string{kind, kind}, "seconds")
		block := e.Append(nil, p)
		run := func(name string, f func(k *Block)) {
			b.Run(kind+"/"+name, func(b *testing.B) {
				for b.Loop() {
					k, _, err := Parse(block)
					if err != nil {
						b.Fatal(err)
					}
					f(&k)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/360, "ns/point")
				b.ReportMetric(float64(len(block))/360, "B/point")
			})
		}
		words, got := make([]uint64, 360), Points{}
		var s Scratch
		run("parse", func(*Block) {})
		run("words", func(k *Block) {
			if k.OnlyIntegers() {
				k.Integers.Unpack(words)
			} else {
				k.Floats.Words(words)
			}
		})
		run("points", func(k *Block) {
			got.Reset()
			_ = k.AppendTo(&got, &s)
		})
		k, _, _ := Parse(block)
		if k.OnlyIntegers() && !k.Integers.Summable() {
			sums := make([]uint64, 361)
			run("sums", func(k *Block) {
				k.Integers.Sums(sums)
				for i := 0; i < 360; i += 30 {
					sunk += int64(sums[i+30] - sums[i])
				}
			})
		}
		if k.OnlyIntegers() && k.Integers.Summable() {
			run("sums", func(k *Block) {
				for i := 0; i < 360; i += 30 {
					sunk += k.Integers.Sum(i, i+30)
				}
			})
			run("bounds", func(k *Block) {
				for i := 0; i < 360; i += 30 {
					_, m := k.Integers.Bounds(i, i+30)
					sunk += m
				}
			})
		}
	}
}

var sunk int64

// BenchmarkEntries is the yardstick: values of one byte in entries, added up one by one.
func BenchmarkEntries(b *testing.B) {
	var entries []byte
	for i := range 360 {
		entries = append(binary.BigEndian.AppendUint16(entries, uint16(i*10)<<4), byte(i))
	}
	for b.Loop() {
		for i := 0; i+2 < len(entries); i += 3 {
			sunk += int64(int8(entries[i+2]))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/360, "ns/point")
}

func BenchmarkEncode(b *testing.B) {
	var e Encoder
	for _, kind := range []string{"walk", "cents", "smooth"} {
		p := generate(rand.New(rand.NewPCG(1, 2)), 360, "even", []string{kind, kind}, "seconds")
		b.Run(kind, func(b *testing.B) {
			var block []byte
			for b.Loop() {
				block = e.Append(block[:0], p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/360, "ns/point")
		})
	}
}
