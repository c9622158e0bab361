package tools_test

import (
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/rollups"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// handJob is a job that a command does on the rows of hourly.
type handJob struct {
	name string
	args []string
	// refused are the numbers of the first call of writes that is refused: 0 for all, others in the
	// middle of the job.
	refused []int
	// points says that the job leaves all points as they are.
	points bool
	ends   string // what the output says of a run that has done all
}

var handJobs = []handJob{
	{
		name:    "compact",
		args:    []string{"1356998400", "1357020000", "m1", "m2"},
		refused: []int{0, 1},
		points:  true,
		ends:    "12 compacted",
	},
	{name: "retention", args: []string{"run"}, refused: []int{0}, ends: "4 rows were past, 4 deleted"},
	{
		name:    "rollup",
		args:    []string{"1356998400", "1357020000", "m1", "m2"},
		refused: []int{0, 1},
		points:  true,
		ends:    "proven: 2 of 2",
	},
	{
		name:    "fsck",
		args:    []string{"--fix-all", "--full-scan"},
		refused: []int{0, 1},
		points:  true,
		ends:    "Total Errors Fixed: 12",
	},
}

// withJobs are the settings that the jobs need.
func withJobs(t *testing.T) func(cfg *gateway.Config) {
	rules := write(t, "^m1$ 2d\n")
	return func(cfg *gateway.Config) {
		cfg.Rollups = `auto:{"aggregationIds":{"sum":0,"count":1},"intervals":[
			{"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
			{"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"}]}`
		gateway.SettingsOf[retention.Settings](cfg).Retention = rules
		gateway.SettingsOf[rollups.Settings](cfg).RollupRate = "off"
	}
}

// inMemory is a fake HBase that can be used in simulated time, so that nobody waits until a call is given
// up. The table of our own is not there yet.
func inMemory(t *testing.T) *place {
	fake := opentest.Fake(t, hbasefake.Options{})
	p := newPlace(t, "hbase:"+fake.Address(), func() (tools.Store, error) {
		return hbase.Open(hbase.Config{Quorum: fake.Address(), Dial: fake.Dial, Logger: slog.New(slog.DiscardHandler)})
	}, withJobs(t))
	p.fake = fake
	fake.KeepVersions("tsdb")
	fake.DropTable(p.cfg.TableState)
	return p
}

// smallDisk is a file system whose free space the test sets.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 1 << 30}, nil
}

// keptOpen is a store that commands do not close.
type keptOpen struct{ *pebble.Store }

func (k keptOpen) Features() store.Features { return k.Store.Features() }

func (keptOpen) Close() error { return nil }

// hourly lays rows of two metrics, six hours each, of two points in a cell each. For fsck each has a
// third cell, which says again what one of them says.
func (p *place) hourly(job string) {
	p.Helper()
	start := int64(1356998400)
	now := time.Unix(start+4*encoding.RowSeconds+2*86_400+1800, 0)
	p.now = func() time.Time { return now }
	p.cfg.Now = p.now
	if p.fake != nil {
		p.fake.SetClock(func() int64 { return now.UnixMilli() })
	}
	p.use(func(st tools.Store) {
		cfg := p.named(st)
		var rows []damage.Row
		for _, s := range cfg.Series {
			for hour := range uint32(6) {
				base := uint32(start) + hour*encoding.RowSeconds
				at := int64(base)*1000 + 700
				cells := []fsck.Cell{
					{Qualifier: []byte{0, 0}, Value: []byte{1}, Timestamp: at},
					{Qualifier: []byte{0, 0x10}, Value: []byte{byte(hour)}, Timestamp: at + 1000},
				}
				if job == "fsck" {
					cells = append(cells, fsck.Cell{
						Qualifier: []byte{0, 0x11},
						Value:     []byte{0, byte(hour)},
						Timestamp: at + 2000,
					})
				}
				rows = append(rows,
					damage.Row{Row: fsck.Row{Key: cfg.Schema.AppendRowKey(nil, s.Metric, base, s.Tags), Cells: cells}})
			}
		}
		p.lay(st, rows)
	})
}

// answers are the points of the data table as readers get them, a line a row, and the cells of both
// tables without their timestamps.
func (p *place) answers() (points, cells []string) {
	p.Helper()
	p.use(func(st tools.Store) {
		for _, table := range []string{"tsdb", "r1h"} {
			for row, err := range store.Rows(p.Context(), st, store.Scan{Table: table}) {
				if err != nil {
					p.Fatal(err)
				}
				d := encoding.RowDecoder{FixDuplicates: true}
				d.Reset(0)
				for _, c := range row.Cells {
					cells = append(cells, fmt.Sprintf("%s %x %x=%x", table, row.Key, c.Qualifier, c.Value))
					if table == "r1h" {
						continue
					}
					if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
						p.Fatal(err)
					}
				}
				var got encoding.Points
				if err := d.Finish(&got); err != nil {
					p.Fatal(err)
				}
				if table == "tsdb" {
					points = append(points, fmt.Sprintf("%x %v %v", row.Key, got.Time, got.Bits))
				}
			}
		}
	})
	return points, cells
}

// finish runs a job to its end.
func (p *place) finish(job *handJob) {
	p.Helper()
	err := p.tool("", nil, job.name, job.args...)
	if err != nil {
		p.Fatalf("%s: %v\n%s%s", job.name, err, &p.out, &p.errs)
	}
	if out := p.out.String(); !strings.Contains(out, job.ends) {
		p.Errorf("%s says\n%s, want %s", job.name, out, job.ends)
	}
}

// TestJobs_noWrites: the region servers refuse writes, from the first on or from the middle of a job.
// Each command ends with an error that says what they say, no reader misses a point, and the next run does
// what an undisturbed one does.
func TestJobs_noWrites(t *testing.T) {
	for _, job := range handJobs {
		var want []string
		synctest.Test(t, func(t *testing.T) {
			p := inMemory(t)
			p.hourly(job.name)
			p.finish(&job)
			_, want = p.answers()
		})
		for _, class := range []string{"org.apache.hadoop.hbase.RegionTooBusyException",
			"org.apache.hadoop.hbase.NotServingRegionException",
			"org.apache.hadoop.hbase.quotas.SpaceLimitingException"} {
			for _, first := range job.refused {
				synctest.Test(t, func(t *testing.T) { refuseWrites(t, &job, class, first, want) })
			}
		}
	}
}

// refuseWrites runs a job while calls of writes are refused from one on, and again. want is what an undisturbed
// one leaves.
func refuseWrites(t *testing.T, job *handJob, class string, first int, want []string) {
	p := inMemory(t)
	p.hourly(job.name)
	before, _ := p.answers()
	r := &hbasefake.RefusedWrites{Exception: class, First: first}
	if job.name == "compact" {
		r.Cells = 2
	}
	p.fake.SetHook(r.Fault)
	err := p.tool("", nil, job.name, job.args...)
	if err == nil || !strings.Contains(err.Error(), class) {
		t.Errorf("%s, from call %d on %s: got %v, want an error that says it\n%s", job.name, first, class, err, &p.out)
	}
	p.fake.SetHook(nil)
	if !r.Begun() {
		t.Errorf("%s: no call was refused from the %dth on", job.name, first)
	}
	if after, _ := p.answers(); job.points || first == 0 {
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s, from call %d on %s: -before +after\n%s", job.name, first, class, d)
		}
	}

	p.finish(job)
	points, got := p.answers()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s, after calls that were refused from the %dth on with %s: -undisturbed +got\n%s",
			job.name, first, class, d)
	}
	if job.points && !slices.Equal(points, before) {
		t.Errorf("%s: -before +after\n%s", job.name, cmp.Diff(before, points))
	}
}

// TestJobs_noRoom: the disk of an embedded store has no room any more. Retention deletes rows all the same, rollup
// and fsck end with an error that says it and leave all as it is, and do their work once there is room.
func TestJobs_noRoom(t *testing.T) {
	for _, job := range handJobs[1:] { // an embedded store compacts nothing
		disk := &smallDisk{FS: vfs.NewMem()}
		disk.free.Store(1 << 29)
		st, err := pebble.Open("db", pebble.Options{
			FS:        disk,
			Grouping:  encoding.DefaultSchema().RowHours(),
			IdleFlush: -1,
			Logger:    slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		p := newPlace(t, "pebble:test", func() (tools.Store, error) { return keptOpen{st}, nil }, withJobs(t))
		p.hourly(job.name)
		points, cells := p.answers()

		disk.free.Store(7 << 20)
		if job.name != "retention" {
			if err := p.tool("", nil, job.name, job.args...); err == nil ||
				!strings.Contains(err.Error(), "no room on the disk") {
				t.Errorf("%s: got %v, want that there is no room\n%s", job.name, err, &p.out)
			}
			after, same := p.answers()
			if d := cmp.Diff(points, after) + cmp.Diff(cells, same); d != "" {
				t.Errorf("%s: -before +after\n%s", job.name, d)
			}
			disk.free.Store(1 << 29)
		}
		p.finish(&job)
		after, now := p.answers()
		switch {
		case job.points && !slices.Equal(points, after):
			t.Errorf("%s: -before +after\n%s", job.name, cmp.Diff(points, after))
		case slices.Equal(cells, now):
			t.Errorf("%s has changed nothing", job.name)
		}
	}
}
