package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"downpour/pushdown/store"
)

// The benchmarks' data: 1,000 series over 6 hours, one point every 10 s, as
// rows of one append cell: 6,000 rows of 360 points of 10 bytes (a qualifier
// of 2, a float of 8).
const (
	benchSeries = 1000
	benchHours  = 6
	benchPoints = 360
	benchBytes  = 10
)

// benchRow is the row key of a series-hour.
func benchRow(series, hour int) []byte {
	key := []byte{0, 0, 1}
	key = binary.BigEndian.AppendUint32(key, uint32(1297573200+3600*hour))
	key = append(key, 0, 0, 1)
	return append(key, byte(series>>16), byte(series>>8), byte(series))
}

// benchPoint appends one point: a sine, so that values are neither constant
// nor random.
func benchPoint(dst []byte, series, hour, i int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(i*10)<<4|0xf)
	v := 50 + 40*math.Sin(float64(hour*benchPoints+i)/97+float64(series))
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(math.Round(v*100)/100))
}

// load writes the data in the order of time: perAppend points of each series in one call of 1,000
// appends, then the next points.
func load(b testing.TB, s *Store, perAppend int) {
	b.Helper()
	ctx := context.Background()
	if err := s.CreateTable(ctx, store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}}); err != nil {
		b.Fatal(err)
	}
	for hour := range benchHours {
		for i := 0; i < benchPoints; i += perAppend {
			ms := make([]store.Mutation, benchSeries)
			for series := range ms {
				var value []byte
				for p := range perAppend {
					value = benchPoint(value, series, hour, i+p)
				}
				ms[series] = store.Mutation{
					Kind:      store.Append,
					Row:       benchRow(series, hour),
					Family:    "t",
					Qualifier: []byte{5, 0, 0},
					Value:     value,
				}
			}
			if err := s.Apply(ctx, "tsdb", ms); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// scanAll reads everything and checks the amount.
func scanAll(b testing.TB, s *Store) {
	b.Helper()
	sc, err := s.Scan(context.Background(), store.Scan{Table: "tsdb", Family: "t"})
	if err != nil {
		b.Fatal(err)
	}
	defer sc.Close()
	rows, bytes := 0, 0
	for {
		block, err := sc.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range block {
			rows++
			bytes += len(r.Cells[0].Value)
		}
	}
	if want := benchSeries * benchHours; rows != want || bytes != want*benchPoints*benchBytes {
		b.Fatalf("%d rows of %d bytes, want %d of %d", rows, bytes, want, want*benchPoints*benchBytes)
	}
}

// BenchmarkScan reads 2.16 M points, 21.6 MB. state=loaded: the first scan
// after the last Apply, nothing waited for (each iteration loads again, so use
// -benchtime 3x); flushed: warm, after a flush; compacted: warm, settled.
func BenchmarkScan(b *testing.B) {
	for _, per := range []int{360, 60, 10, 1} {
		b.Run(fmt.Sprintf("state=loaded/appends=%d", benchPoints/per), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, err := Open(b.TempDir(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				load(b, s, per)
				b.StartTimer()
				scanAll(b, s)
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
	for _, compact := range []bool{false, true} {
		b.Run(fmt.Sprintf("state=flushed/compacted=%v", compact), func(b *testing.B) { benchSettled(b, compact) })
	}
}

// benchSettled scans again and again.
func benchSettled(b *testing.B, compact bool) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	load(b, s, 10)
	if err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if compact {
		if err := s.db.Compact(b.Context(), []byte{0}, []byte{0xff, 0}, true); err != nil {
			b.Fatal(err)
		}
	}
	scanAll(b, s)
	b.ReportAllocs()
	for b.Loop() {
		scanAll(b, s)
	}
}

// BenchmarkApply appends 1,000 points of as many series, without fsync: the store is
// in memory. versions=true: changes are counted, because a version token was
// requested.
func BenchmarkApply(b *testing.B) {
	for _, versions := range []bool{false, true} {
		b.Run(fmt.Sprintf("versions=%v", versions), func(b *testing.B) { benchApply(b, versions) })
	}
}

func benchApply(b *testing.B, versions bool) {
	s := openMem(b, benchOptions())
	ctx := context.Background()
	if err := s.CreateTable(ctx, store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}}); err != nil {
		b.Fatal(err)
	}
	if versions {
		if _, err := s.Version(ctx, "tsdb", "t", store.KeyRange{}); err != nil {
			b.Fatal(err)
		}
	}

	ms := make([]store.Mutation, benchSeries)
	for series := range ms {
		ms[series] = store.Mutation{
			Kind:      store.Append,
			Row:       benchRow(series, series%benchHours),
			Family:    "t",
			Qualifier: []byte{5, 0, 0},
			Value:     benchPoint(nil, series, 0, 0),
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Apply(ctx, "tsdb", ms); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGroupNames names the groups of a batch of 1,000 rows, as every write does
// while changes are counted.
func BenchmarkGroupNames(b *testing.B) {
	s := openMem(b, benchOptions())
	batch := s.newBatch(0)
	for series := range benchSeries {
		batch.put("tsdb", benchRow(series, series%benchHours), "t", []byte{5, 0, 0}, 1, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(s.changes.groupNames(batch.Batch)); n != benchHours {
			b.Fatalf("%d groups, want %d", n, benchHours)
		}
	}
	if err := batch.Close(); err != nil {
		b.Fatal(err)
	}
}

func benchOptions() Options { return Options{Grouping: hourly, IdleFlush: -1} }

// BenchmarkFirstLook asks for one pod of 200,000 in three hours, by a tag that is not the first of
// its key, in a store that was just opened: with sets of elements, and by looking at every row, as
// in tables of earlier versions.
func BenchmarkFirstLook(b *testing.B) {
	const pods = 200_000
	for name, o := range map[string]Options{"sets": benchOptions(), "none": {IdleFlush: -1}} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			s, err := Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			create(b, s)
			var ms []store.Mutation
			for i := range 3 * pods {
				pod := i % pods
				ms = append(ms, store.Mutation{
					Kind:      store.Append,
					Row:       podRow(i/pods, pod%2000, pod, pod%7),
					Family:    "t",
					Qualifier: []byte{5, 0, 0},
					Value:     []byte{0, 0, byte(i), 0x70, 0x80, byte(i)},
				})
				if len(ms) == 1000 {
					apply(b, s, ms...)
					ms = ms[:0]
				}
			}
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				if s, err = Open(dir, o); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				rows := 0
				for _, err := range store.Rows(context.Background(), s, store.Scan{
					Table:  "tsdb",
					Filter: store.RowFilter{Pattern: podPattern(wantTag(2, (round*7919+4711)%pods))},
				}) {
					if err != nil {
						b.Fatal(err)
					}
					rows++
				}
				if rows != 3 {
					b.Fatalf("%d rows, want 3", rows)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSeal seals rows of some kinds of series, one point each ten seconds, from a fixed seed. It reports the bytes
// of a point in tables, compressed, before and after, and the points that are sealed in a second.
func BenchmarkSeal(b *testing.B) {
	const series, hours = 100, 6
	for kind, name := range []string{"walk", "cents", "counter", "doubles", "mixed"} {
		b.Run(name, func(b *testing.B) {
			before, after, took := uint64(0), uint64(0), time.Duration(0)
			for range b.N {
				s := openMem(b, sealedOptions(nil))
				create(b, s)
				for i := range series {
					for hour := range hours {
						appendEntries(b, s, 5*i+kind, hour, sealedEntries(5*i+kind, hour))
					}
				}
				compactAll(b, s)
				before = tableBytes(b, s)
				began := time.Now()
				if report := sealAll(b, s, hourEnd(hours)); report.Sealed != series*hours {
					b.Fatalf("%+v", report)
				}
				took += time.Since(began)
				compactAll(b, s)
				after = tableBytes(b, s)
			}
			const points = series * hours * 360
			b.ReportMetric(float64(before)/points, "B/point-before")
			b.ReportMetric(float64(after)/points, "B/point-after")
			b.ReportMetric(float64(b.N)*points/took.Seconds(), "points/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
