package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"downpour/encoding/batch"
)

const arrowQuery = "/api/query?start=1356998400&end=1357084800&"

// arrow asks for an Arrow answer; header pairs follow.
func arrow(b *bench, query string, header ...string) answer {
	b.Helper()
	return b.Get(arrowQuery+query, append([]string{"Accept", batch.StreamMediaType}, header...)...)
}

// sums are the rows of a stream, the sum of their values, and how reading ended.
func sums(t *testing.T, stream string) (rows int64, sum float64, err error) {
	t.Helper()
	r, err := ipc.NewReader(strings.NewReader(stream))
	if err != nil {
		return 0, 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += r.Record().NumRows()
		for _, v := range r.Record().Column(r.Schema().FieldIndices("value")[0]).(*array.Float64).Float64Values() {
			sum += v
		}
	}
	return rows, sum, r.Err()
}

// An Arrow answer is compressed either as a whole, by Accept-Encoding, or inside its record
// batches, by the parameter compression, never both. Decompressed, it has the same rows.
func TestArrow_compression(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998460 2.5 host=a", "m 1356998460 3 host=b")
	const query = "m=none:1s-sum-zero:m"
	plain := arrow(b, query, "Accept-Encoding", "identity")
	rows, sum, err := sums(t, plain.Body)
	if err != nil || rows < 80_000 || sum != 6.5 {
		t.Fatalf("plain: %d rows, sum %v, %v; want 80000 or more with the sum 6.5", rows, sum, err)
	}
	f := func(compression, accept, coding string, smaller int) {
		t.Helper()
		a := arrow(b, query+compression, "Accept-Encoding", accept)
		got := a.Header.Get("Content-Encoding")
		if got != coding || a.Status != 200 || a.Header.Get("Content-Type") != batch.StreamMediaType {
			t.Errorf("%q, %q: %d, Content-Encoding %q, want %q", compression, accept, a.Status, got, coding)
		}
		// 1 % more: how groups share batches depends on when they are merged.
		if len(a.Body)*smaller > len(plain.Body)*101/100 {
			t.Errorf("%q, %q: got %d bytes of %d, want fewer", compression, accept, len(a.Body), len(plain.Body))
		}
		gotRows, gotSum, err := sums(t, decoded(t, a))
		if gotRows != rows || gotSum != sum || err != nil {
			t.Errorf("%q, %q: %d rows, sum %v, %v; want %d, %v", compression, accept, gotRows, gotSum, err, rows, sum)
		}
	}
	f("", "gzip", "gzip", 3)
	f("", "zstd", "zstd", 3)
	f("", "gzip;q=0.5, zstd;q=0.8, br", "zstd", 3)
	f("", "gzip, zstd;q=0", "gzip", 3)
	f("", "br", "", 1)
	f("&compression=lz4", "gzip, zstd", "", 2)
	f("&compression=zstd", "gzip", "", 3)
	f("&compression=", "identity", "", 1)
	if a := arrow(b, query+"&compression=brotli"); a.Status != 400 ||
		!strings.Contains(a.Body, "brotli, want lz4 or zstd") {
		t.Errorf("unknown compression: got %d %s, want 400 that names lz4 and zstd", a.Status, a.Body)
	}
}

// decoded undoes the content encoding.
func decoded(t *testing.T, a answer) string {
	t.Helper()
	var r io.Reader = strings.NewReader(a.Body)
	var err error
	switch a.Header.Get("Content-Encoding") {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A group is sent before the next one is merged. If that one cannot be merged, a client that
// has had nothing gets the error; one that has had rows gets a cut connection and no end mark.
func TestArrow_cut(t *testing.T) {
	b := open(t, nil)
	end := string([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0})
	long := make([]string, 70_000)
	for i := range long {
		long[i] = fmt.Sprintf("m %d 1 host=long", 1356998400+i)
	}
	b.Put(long...)
	for _, metric := range []string{"m", "small"} { // their sum is beyond the largest double
		b.Put(metric+" 1356998400 1.7e308 host=over dc=a", metric+" 1356998400 1.7e308 host=over dc=b")
	}
	if a := arrow(b, "m=sum:small"); a.Status != 400 || !strings.Contains(a.Body, "nfinit") {
		t.Errorf("%d %.200q, want a 400 that names the infinity", a.Status, a.Body)
	}
	for _, accept := range []string{"application/json", batch.StreamMediaType} {
		if a := b.Get(arrowQuery+"m=sum:m%7Bhost=*%7D", "Accept", accept); a.Status != 400 {
			t.Errorf("%s: %d, want 400: nothing was sent yet", accept, a.Status)
		}
	}
	// An end that is not past: the answer gets no ETag, for which its beginning would be held back.
	begun := func(accept string) answer {
		return b.Get("/api/query?start=1356998400&m=sum:m%7Bhost=*%7D",
			"Accept", batch.StreamMediaType, "Accept-Encoding", accept)
	}
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		a := begun(accept)
		if a.Status != 200 || a.Err == nil || len(a.Body) == 0 {
			t.Errorf("%s: %d, %d bytes, %v; want a beginning and a cut", accept, a.Status, len(a.Body), a.Err)
		}
		if strings.HasSuffix(a.Body, end) || bytes.Contains([]byte(a.Body), []byte(`"error"`)) {
			t.Errorf("%s: the cut stream ends as a whole one", accept)
		}
	}
	// On a slow machine the rest of the first group is sent, too.
	if rows, _, _ := sums(t, begun("identity").Body); rows != 1<<16 && rows != int64(len(long)) {
		t.Errorf("%d rows before the cut, want the first batch or the first group", rows)
	}
}

// A request of several sub-queries has the rows that they have one by one.
func TestArrow_manyQueries(t *testing.T) {
	b := open(t, nil)
	for i := range 5 {
		b.Put(fmt.Sprintf("m%d 1356998400 %d host=a", i, i+1), fmt.Sprintf("m%d 1356998400 %d host=b", i, 10*i))
	}
	all := ""
	var want float64
	for i := range 5 {
		query := fmt.Sprintf("m=none:m%d", i)
		rows, sum, err := sums(t, arrow(b, query).Body)
		if err != nil || rows != 2 || sum != float64(i+1+10*i) {
			t.Errorf("%s: %d rows, sum %v, %v", query, rows, sum, err)
		}
		all += query + "&"
		want += sum
		if rows, sum, err := sums(t, arrow(b, all).Body); err != nil || rows != int64(2*i+2) || sum != want {
			t.Errorf("%s: %d rows, sum %v, %v; want %d, %v", all, rows, sum, err, 2*i+2, want)
		}
	}
}
