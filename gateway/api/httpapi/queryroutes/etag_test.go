package queryroutes

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"testing"

	"downpour/pushdown/process/memory"
)

// What is written in pieces of any size is kept as it is, in at most twice its memory, and dropped once it is too
// large.
func TestPreview_pieces(t *testing.T) {
	t.Parallel()
	p := &preview{header: http.Header{}, sum: sha256.New(), account: memory.Of(t.Context())}
	var want []byte
	for i := 0; len(want)+100_000 < maxKeptBytes; i++ {
		piece := bytes.Repeat([]byte{byte(i)}, []int{1, 7, 300, 100_000}[i%4])
		want = append(want, piece...)
		_, _ = p.Write(piece)
		clear(piece) // it is the writer's again
	}
	held := 0
	for _, piece := range p.kept {
		held += cap(piece)
	}
	if got := bytes.Join(p.kept, nil); !bytes.Equal(got, want) || p.bytes != len(want) || held > 2*len(want) {
		t.Errorf("%d bytes are kept in %d, want the %d that were written", len(got), held, len(want))
	}
	_, _ = p.Write(make([]byte, maxKeptBytes+1-len(want)))
	if !p.large || p.kept != nil {
		t.Errorf("large %t, %d pieces, want none of more than %d bytes", p.large, len(p.kept), maxKeptBytes)
	}
}
