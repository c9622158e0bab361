package expression

import "testing"

func BenchmarkEvaluate(b *testing.B) {
	e, err := Parse("100 * a / (a + b)")
	if err != nil {
		b.Fatal(err)
	}
	const rows = 100_000
	columns := [][]float64{make([]float64, rows), make([]float64, rows)}
	for i := range rows {
		columns[0][i], columns[1][i] = float64(i), float64(i%7)
	}
	dst := make([]float64, rows)
	b.SetBytes(rows * 8)
	for b.Loop() {
		if err := e.Evaluate(dst, columns); err != nil {
			b.Fatal(err)
		}
	}
}
