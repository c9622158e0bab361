package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding/seedtest"
)

// disk is a file in memory that a log can be written and synced to.
type disk struct{ bytes.Buffer }

func (*disk) Sync() error { return nil }

// records draws n records: short ones, some about as long as a block (32 KiB), and longer ones.
func records(rng *rand.Rand, n int) (out [][]byte) {
	for range n {
		b := make([]byte, []int{rng.IntN(40), rng.IntN(400), 32700 + rng.IntN(80), rng.IntN(100_000)}[rng.IntN(4)])
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		out = append(out, b)
	}
	return out
}

// logOf returns a log as pebble writes it, each record synced. With offsets, chunks say up to which
// offset the log was synced.
func logOf(t *testing.T, records [][]byte, offsets, closed bool) []byte {
	t.Helper()
	d := &disk{}
	w := record.NewLogWriter(d, 6, record.LogWriterConfig{
		WALFsyncLatency:     prometheus.NewHistogram(prometheus.HistogramOpts{}),
		QueueSemChan:        make(chan struct{}, len(records)+1),
		WriteWALSyncOffsets: func() bool { return offsets },
	})
	n := int64(0)
	for _, r := range records {
		var err error
		if n, err = w.WriteRecord(bytes.Clone(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !closed {
		return d.Bytes()[:n]
	}
	return d.Bytes()
}

func manifestOf(t *testing.T, records [][]byte) []byte {
	t.Helper()
	var d bytes.Buffer
	w := record.NewWriter(&d)
	for _, r := range records {
		if _, err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return d.Bytes()
}

func same(t *testing.T, what string, got Reading, want [][]byte) {
	t.Helper()
	if len(got.Records) != len(want) || len(got.Holes) > 0 || got.Torn > 0 {
		t.Fatalf("%s: %d records, holes %v, %d bytes torn; want %d",
			what, len(got.Records), got.Holes, got.Torn, len(want))
	}
	for i, r := range got.Records {
		if !bytes.Equal(r.Data, want[i]) {
			t.Fatalf("%s: record %d at %d differs", what, i, r.Start)
		}
	}
}

// Whatever pebble writes is read, with and without offsets, closed or not, with
// zeros behind it.
func TestRead(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for n := range 20 {
		want := records(rng, n)
		same(t, "manifest", Manifest(manifestOf(t, want)), want)
		for _, offsets := range []bool{false, true} {
			for _, closed := range []bool{false, true} {
				data := logOf(t, want, offsets, closed)
				got := Log(data, 6)
				same(t, "log", got, want)
				if got.Closed != closed || got.Reach < got.End || got.Reach >= got.End+headerSynced {
					t.Errorf("log of %d bytes, closed %t: %t, end %d, reach %d",
						len(data), closed, got.Closed, got.End, got.Reach)
				}
				got = Log(append(data, make([]byte, rng.IntN(70_000)+1)...), 6)
				same(t, "log with zeros", got, want)
				if got.Closed != closed || got.Reach < got.End || got.Reach >= got.End+headerSynced {
					t.Errorf("log of %d bytes with zeros, closed %t: %t, end %d, reach %d",
						len(data), closed, got.Closed, got.End, got.Reach)
				}
				if of := Log(data, 7); len(of.Records) > 0 {
					t.Errorf("records are read of a log that has another number")
				}
			}
		}
	}
}

// The log in the package comment is read as documented.
func TestRead_bytes(t *testing.T) {
	data, err := hex.DecodeString(
		strings.ReplaceAll("d7 cf 4e 97  02 00  09  06 00 00 00  28 00 00 00 00 00 00 00  ab cd", " ", ""),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := Log(data, 6)
	same(t, "log", r, [][]byte{{0xab, 0xcd}})
}

// Records are read whatever room one leaves in a block, for a header and no payload, too. No zeros behind the last
// count as part of it.
func TestRead_blockEnd(t *testing.T) {
	for room := range int64(2 * headerSynced) {
		for header, f := range map[int64]func([][]byte) []byte{
			headerManifest: func(r [][]byte) []byte { return manifestOf(t, r) },
			headerLog:      func(r [][]byte) []byte { return logOf(t, r, false, false) },
			headerSynced:   func(r [][]byte) []byte { return logOf(t, r, true, false) },
		} {
			next := bytes.Repeat([]byte{1}, 100)
			want := [][]byte{bytes.Repeat([]byte{1}, int(blockSize-header-room)), next, next}
			for n := range len(want) + 1 {
				data := append(f(want[:n]), make([]byte, 100)...)
				got := Log(data, 6)
				if header == headerManifest {
					got = Manifest(data)
				}
				what := fmt.Sprintf("%d records, header of %d, %d bytes are left", n, header, room)
				if same(t, what, got, want[:n]); got.Reach != got.End {
					t.Errorf("%s: the last chunk ends at %d, the last record at %d", what, got.Reach, got.End)
				}
				if torn := Log(slices.Clip(append(f(want[:n]), 'x')), 6); header != headerManifest &&
					(len(torn.Records) != n || torn.Torn == 0) {
					t.Errorf("%s, and a byte: %d records, %d bytes torn", what, len(torn.Records), torn.Torn)
				}
			}
		}
	}
}

// A short record of a MANIFEST that ends with a block is missed where it is blank, and not taken for what fills a
// block.
func TestRead_blankAtBlockEnd(t *testing.T) {
	for n := range headerSynced - headerManifest {
		long := make([]byte, blockSize-2*headerManifest-n)
		data := manifestOf(t, [][]byte{long, make([]byte, n), []byte("next")})
		clear(data[blockSize-headerManifest-n : blockSize])
		if got := Manifest(data); len(got.Records) != 2 || got.Damage() == nil {
			t.Errorf("of %d bytes: %d records, holes %v, want two, and damage", n, len(got.Records), got.Holes)
		}
	}
}

// chunkOf returns a chunk with a header of a length and a type, of the log with number 6.
func chunkOf(header int, kind byte, payload string) []byte {
	b := make([]byte, headerSynced)
	binary.LittleEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6] = kind
	binary.LittleEndian.PutUint32(b[7:], 6)
	b = append(b[:header], payload...)
	binary.LittleEndian.PutUint32(b, Checksum(b[6:]))
	return b
}

// A chunk is of one of the types of its kind of journal, with the header of that type, whatever its checksum says.
func TestRead_types(t *testing.T) {
	for kind := range 256 {
		for _, header := range []int{headerManifest, headerLog, headerSynced} {
			data := chunkOf(header, byte(kind), "\x06\x00\x00\x00 and other bytes")
			for form, f := range map[string]struct {
				got  Reading
				want bool
			}{
				"manifest": {Manifest(data), header == headerManifest && kind >= 1 && kind <= 4},
				"log": {Log(data, 6), header == headerLog && kind >= 5 && kind <= 8 ||
					header == headerSynced && kind >= 9 && kind <= 12},
			} {
				if got := f.got.Reach == int64(len(data)); got != f.want {
					t.Errorf("%s, type %d, header of %d: a chunk %t, want %t", form, kind, header, got, f.want)
				}
			}
		}
	}
}

// A record is read if all its chunks follow each other. Where some lack, that is damage before another record, and
// the torn end behind the last.
func TestRead_places(t *testing.T) {
	for _, c := range []struct {
		places  []place
		records string // by the places at which chunks of the record are
		hole    int    // places before the first record; none if 0
		torn    int    // places behind the last
	}{
		{[]place{first, middle, last, full}, "012 3", 0, 0},
		{[]place{first, full}, "1", 1, 0},
		{[]place{first, middle, full}, "2", 2, 0},
		{[]place{first, first, last}, "12", 1, 0},
		{[]place{middle, full}, "1", 1, 0},
		{[]place{last, full}, "1", 1, 0},
		{[]place{full, first}, "0", 0, 1},
		{[]place{full, last}, "0", 0, 1},
		{[]place{full, first, middle}, "0", 0, 2},
	} {
		for header, kind := range map[int]byte{headerManifest: 1, headerLog: 5, headerSynced: 9} {
			var data []byte
			for i, p := range c.places {
				data = append(data, chunkOf(header, kind+byte(p), fmt.Sprint(i))...)
			}
			got := Log(data, 6)
			if header == headerManifest {
				got = Manifest(data)
			}
			var records []string
			for _, r := range got.Records {
				records = append(records, string(r.Data))
			}
			var holes []Hole
			if c.hole > 0 {
				holes = []Hole{{End: int64(c.hole * (header + 1)), Damage: true}}
			}
			if strings.Join(records, " ") != c.records || !slices.Equal(got.Holes, holes) ||
				got.Torn != int64(c.torn*(header+1)) || got.Reach != int64(len(data)) {
				t.Errorf("header of %d, places %d: got %v, holes %v, %d bytes torn, the last chunk ends at %d; want %v",
					header, c.places, records, got.Holes, got.Torn, got.Reach, c)
			}
		}
	}
}

// The payload of a broken chunk may have the bytes of chunks. They are no chunks where the header says how long it is,
// and a chunk follows.
func TestRead_nested(t *testing.T) {
	for header, kind := range map[int]byte{headerManifest: 1, headerLog: 5, headerSynced: 9} {
		inner := chunkOf(header, kind, "not a record")
		broken := chunkOf(header, kind, string(inner))
		broken[0] ^= 1
		data := append(slices.Clone(broken), chunkOf(header, kind, "record")...)
		got := Log(data, 6)
		if header == headerManifest {
			got = Manifest(data)
		}
		hole := Hole{End: int64(len(broken)), Damage: true}
		if len(got.Records) != 1 || string(got.Records[0].Data) != "record" || !slices.Equal(got.Holes, []Hole{hole}) {
			t.Errorf("header of %d: %d records, holes %v, want one, and %v", header, len(got.Records), got.Holes, hole)
		}
	}
}

// A log is closed by its end chunk, a MANIFEST never. Where a broken chunk ends by its header, the file was as long,
// unless the header is cut off, of another log, of no type, or of more than a block.
func TestRead_end(t *testing.T) {
	record := chunkOf(headerLog, 5, "record")
	end := []byte{0, 0, 0, 0, 0, 0, 5, 7, 0, 0, 0}
	for i := range end {
		changed := bytes.Clone(end)
		changed[i] ^= 8
		for what, c := range map[string]struct {
			data   []byte
			closed bool
		}{
			"whole":     {slices.Concat(record, end), true},
			"one byte":  {slices.Concat(record, changed), false},
			"cut":       {slices.Clip(slices.Concat(record, end[:i])), false},
			"in a hole": {slices.Concat(record[1:], record[:1], end), false},
		} {
			if got := Log(c.data, 6).Closed; got != c.closed {
				t.Errorf("%s, byte %d: closed %t, want %t", what, i, got, c.closed)
			}
		}
	}
	if Manifest([]byte{0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0}).Closed {
		t.Error("a MANIFEST is closed by the end chunk of a log")
	}

	at := int64(len(record))
	next := chunkOf(headerLog, 5, "next")
	for n := range len(next) {
		want := at
		if n >= headerLog {
			want += int64(len(next))
		}
		if got := Log(slices.Concat(record, next[:n]), 6); got.Reach != want {
			t.Errorf("cut after %d bytes: the last chunk ends at %d, want %d", n, got.Reach, want)
		}
	}
	for what, place := range map[string]int{"type": 6, "number": 7, "size": 5} {
		changed := bytes.Clone(next)
		changed[place] ^= 0xf0
		if got := Log(slices.Concat(record, changed), 6); got.Reach != at || got.Torn != int64(len(next)) {
			t.Errorf("another %s: the last chunk ends at %d, %d bytes torn, want %d and %d", what, got.Reach, got.Torn,
				at, len(next))
		}
	}
}

// If one byte of a log or MANIFEST is changed, the record that holds it is missing and no other,
// and a hole before another record is damage. Of a file that is cut, the records before the cut
// are read.
func TestRead_damage(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		want := records(rng, 4+rng.IntN(6))
		for form, read := range map[string]func([]byte) Reading{
			"manifest": Manifest,
			"log":      func(b []byte) Reading { return Log(b, 6) },
		} {
			data := manifestOf(t, want)
			if form == "log" {
				data = append(logOf(t, want, rng.IntN(2) == 0, false), make([]byte, 5000)...)
			}
			whole := read(data)
			same(t, form, whole, want)
			for range 40 {
				at := rng.Int64N(whole.End)
				changed(t, fmt.Sprintf("%s, byte %d", form, at), whole, read(flipped(data, at, rng)), at)
				cut := read(slices.Clip(data[:at]))
				kept := 0
				for kept < len(whole.Records) && whole.Records[kept].End <= at {
					kept++
				}
				if len(cut.Records) != kept || len(cut.Holes) > 0 || cut.Reach > whole.End ||
					cut.Reach < at-headerSynced {
					t.Errorf("%s, cut at %d: %d records, holes %v, reach %d; want %d",
						form, at, len(cut.Records), cut.Holes, cut.Reach, kept)
				}
			}
		}
	}
}

func flipped(data []byte, at int64, rng *rand.Rand) []byte {
	out := bytes.Clone(data)
	out[at] ^= 1 << rng.IntN(8)
	return out
}

// changed checks what is read when byte at of a file has changed.
func changed(t *testing.T, what string, whole, got Reading, at int64) {
	t.Helper()
	lost := -1
	for i, r := range whole.Records {
		if at >= r.Start && at < r.End {
			lost = i
		}
	}
	last := len(whole.Records) - 1
	switch {
	case lost < 0: // in the zeros at a block's end
		if len(got.Records) != last+1 {
			t.Errorf("%s, between records: %d records of %d are read, want all", what, len(got.Records), last+1)
		}
		return
	case len(got.Records) != last:
		t.Errorf("%s, of record %d: %d records of %d are read, want all but one", what, lost, len(got.Records), last+1)
	case lost == last && (len(got.Holes) > 0 || got.Torn == 0):
		t.Errorf("%s, of the last record: holes %v, %d bytes torn, want no hole and some bytes torn",
			what, got.Holes, got.Torn)
	case lost < last && (got.Damage() == nil || got.Holes[0].Start > whole.Records[lost].Start ||
		got.Holes[0].End != whole.Records[lost+1].Start):
		t.Errorf("%s, of record %d at %d: holes %v, want damage from there to the next record",
			what, lost, whole.Records[lost].Start, got.Holes)
	}
}

// If sectors, or the rest of one, are blank before others that are there, the log may have been
// torn by a crash, which is no damage. It is damage if other bytes are blank or changed, or if a
// later chunk says that the sectors were synced.
func TestRead_torn(t *testing.T) {
	var want [][]byte
	for i := range 20 {
		want = append(want, bytes.Repeat([]byte{byte(i + 1)}, 300))
	}
	data := append(logOf(t, want, false, false), make([]byte, 4096)...)
	whole := Log(data, 6)
	same(t, "log", whole, want)
	f := func(what string, data []byte, left int, damage bool) {
		t.Helper()
		got := Log(data, 6)
		if len(got.Records) != left || len(got.Holes) != 1 || got.Holes[0].Damage != damage || got.Torn > 0 {
			t.Errorf("%s: %d records, holes %v, %d bytes torn; want %d records, damage %t",
				what, len(got.Records), got.Holes, got.Torn, left, damage)
		}
	}
	blank := func(from, to int64) []byte {
		out := bytes.Clone(data)
		clear(out[from:to])
		return out
	}
	f("two sectors", blank(1024, 2048), 20-4, false)
	f("what followed in a sector",
		blank(whole.Records[4].Start, whole.Records[4].Start/sector*sector+sector), 20-1, false)
	f("not all of a sector", blank(1024, 1024+511), 20-2, true)
	f("one byte", flipped(data, 1500, rand.New(rand.NewPCG(1, 1))), 20-1, true)

	// Three chunks of a sector each: the one in the middle may be torn where all of it is blank.
	data = slices.Concat(chunkOf(headerLog, 5, strings.Repeat("1", 501)), make([]byte, sector),
		chunkOf(headerLog, 5, strings.Repeat("3", 501)))
	f("just a sector", data, 2, false)
	data[2*sector-1] = 1
	f("not the end of a sector", data, 2, true)

	// A last chunk says up to where all before it was synced.
	for name, synced := range map[string]int64{"before the sector": sector, "in the sector": sector + 1} {
		clear(data[sector : 2*sector])
		says := chunkOf(headerSynced, 9, "synced")
		binary.LittleEndian.PutUint64(says[headerLog:], uint64(synced))
		binary.LittleEndian.PutUint32(says, Checksum(says[6:]))
		f("synced to "+name, slices.Concat(data, says), 3, synced > sector)
	}
}

// No bytes make the reader fail, and what it returns lies in the file in order.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\xd7\xcf\x4e\x97\x02\x00\x09\x06\x00\x00\x00\x28\x00\x00\x00\x00\x00\x00\x00\xab\xcd"), true)
	f.Fuzz(func(t *testing.T, data []byte, log bool) {
		r := Manifest(data)
		if log {
			r = Log(data, 6)
		}
		at := int64(0)
		for _, rec := range r.Records {
			if rec.Start < at || rec.End <= rec.Start || rec.End > int64(len(data)) {
				t.Fatalf("a record from %d to %d after one that ends at %d, in %d bytes",
					rec.Start, rec.End, at, len(data))
			}
			at = rec.End
		}
		if at != r.End || r.End+r.Torn > int64(len(data)) {
			t.Fatalf("end %d, want %d; %d bytes torn of %d", r.End, at, r.Torn, len(data))
		}
		for _, h := range r.Holes {
			if h.Start < 0 || h.End <= h.Start || h.End > r.End {
				t.Fatalf("hole %v, end %d", h, r.End)
			}
		}
	})
}

// A log that AppendLog writes is read by Log and by pebble, whatever room its records leave in blocks.
func TestAppendLog(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for n := range 30 {
		appended(t, records(rng, n))
		long := make([]byte, blockSize-headerLog-n)
		appended(t, [][]byte{long})
		appended(t, [][]byte{long, []byte("next")})
	}
}

// appended checks a log of records that AppendLog writes.
func appended(t *testing.T, want [][]byte) {
	t.Helper()
	var in []Record
	for _, r := range want {
		in = append(in, Record{Data: r})
	}
	data := AppendLog(nil, 6, in)
	got := Log(data, 6)
	same(t, "log", got, want)
	if !got.Closed {
		t.Error("the log is not closed, want it closed")
	}
	theirs := record.NewReader(bytes.NewReader(data), 6)
	for i := range want {
		r, err := theirs.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, want[i]) {
			t.Fatalf("record %d: pebble reads %d bytes, want %d: %v", i, len(b), len(want[i]), err)
		}
	}
	if _, err := theirs.Next(); err != io.EOF {
		t.Errorf("behind the last record: %v, want EOF", err)
	}
}
