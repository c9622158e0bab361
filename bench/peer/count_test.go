package peer

import "testing"

// The points of an answer are counted in any form and however it is cut into pieces: those in dps, and nothing
// that just looks like it.
func TestPointCounter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		member, answer string
		want           int64
	}{
		{"dps", `[]`, 0},
		{"dps", `[{"metric":"m","tags":{"a":"b"},"dps":{}},{"dps":[]}]`, 0},
		{"dps", `[{"metric":"m","dps":{"1":1,"2":2.5}},{"metric":"n","dps":{"3":"NaN"}}]`, 3},
		{"dps", "[ { \"dps\" : [ [1,2] ,\n[3,4], [5, null] ] , \"tags\":{\"x\":\"y\",\"z\":\"w\"}} ]", 3},
		{
			"dps",
			`[{"metric":"dps","tags":{"dps":"x","xdps":"dp"},"dps\"":[1],"\u0064ps":[1],"dpss":[1,2],"0dps":[1]}]`,
			0,
		},
		{"dps", `[{"dps":[5]},{"dps":[-1.5e3,true]}]`, 3},
		{"dps", `[{"metric":"a\"dps","dps":{"1":"x\",","2":"}{"}},{"statsSummary":{"points":7,"a":[1,2]}}]`, 2},
		{"dps", `{"outputs":[{"id":"e","dps":[[1,2,3],[4,5,6]],"dpsMeta":{"series":1,"setCount":2}}],"query":{}}`, 2},
		{"values", `{"data":{"result":[{"metric":{},"values":[[1,"2"],[3,"4"]]},{"values":[[1,"1"]]}]}}`, 3},
	} {
		for cut := range len(c.answer) {
			counter := pointCounter{member: c.member}
			for _, piece := range []string{c.answer[:cut], c.answer[cut:]} {
				if n, err := counter.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatalf("wrote %d bytes, %v; want %d", n, err, len(piece))
				}
			}
			if counter.n != c.want {
				t.Errorf("%s, cut at %d: got %d points, want %d", c.answer, cut, counter.n, c.want)
			}
		}
	}
}

// BenchmarkPointCounter is what counting takes of a client.
func BenchmarkPointCounter(b *testing.B) {
	answer := []byte(`[{"metric":"sys.cpu.user","tags":{"host":"web01"},"aggregateTags":[],"dps":{`)
	const points = 10_000
	for range points {
		answer = append(answer, `"1356998400":42.125,`...)
	}
	answer = append(answer[:len(answer)-1], `}}]`...)
	b.SetBytes(int64(len(answer)))
	for b.Loop() {
		c := pointCounter{member: "dps"}
		if _, _ = c.Write(answer); c.n != points {
			b.Fatalf("%d points, want %d", c.n, points)
		}
	}
}
