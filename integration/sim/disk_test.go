package sim

import (
	"context"
	"math/rand/v2"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/integration/differential"
	"downpour/pushdown/process/network/networktest"
	stores "downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/pebble"
)

// disk is an embedded store on files in memory. What was not synced may be lost when the gateway is killed.
type disk struct {
	w *World
	r *rand.Rand

	syncs time.Duration // how long a sync of a log takes

	mu    sync.Mutex
	files *vfs.MemFS
	full  bool // others have taken all the room
}

// files are those of a disk, which says how much room is left.
type files struct {
	vfs.FS
	d       *disk
	closing chan struct{} // closed when the store is being closed
}

func (f files) GetDiskUsage(string) (vfs.DiskUsage, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	usage := vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39}
	if f.d.full {
		usage.AvailBytes = 1 << 20
	}
	return usage, nil
}

// Create creates a file. A log is slow to sync.
func (f files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return f.slow(name, file), err
}

// ReuseForWrite makes another file of one.
func (f files) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, category)
	return f.slow(name, file), err
}

func (f files) slow(name string, file vfs.File) vfs.File {
	if file == nil || path.Ext(name) != ".log" {
		return file
	}
	return slowLog{file, f.d.syncs, f.closing}
}

// slowLog is a log whose syncs take some time, in which the gateway may be killed.
type slowLog struct {
	vfs.File
	takes   time.Duration
	closing <-chan struct{}
}

func (l slowLog) Sync() error {
	l.wait()
	return l.File.Sync()
}

func (l slowLog) SyncData() error {
	l.wait()
	return l.File.SyncData()
}

// wait lets the time of a sync pass, but not while pebble holds a mutex, as it does when it closes
// a log, or the store is being closed: no time passes in a bubble in which somebody waits for a
// mutex.
func (l slowLog) wait() {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if strings.HasSuffix(f.Function, ".closeInternal") {
			return
		}
	}
	select {
	case <-time.After(l.takes):
	case <-l.closing:
	}
}

// onDisk has a disk whose syncs take no time or, in a world of minutes, up to 2 s, as one that
// others keep busy: then a gateway may be killed during one. In half a day this would hardly
// happen.
func onDisk(w *World) ground {
	d := &disk{w: w, r: w.rand("disk"), files: vfs.NewCrashableMem()}
	if w.tempo == minutes {
		d.syncs = []time.Duration{20 * time.Millisecond, 2 * time.Second}[w.rand("syncs").IntN(2)]
	}
	return d
}

// gateways is one, because only one process can open an embedded store.
func (d *disk) gateways() int { return 1 }

// seals reports whether old rows are sealed, as in every other world.
func (d *disk) seals() bool { return d.w.rand("seal").IntN(2) == 0 }

func (d *disk) settings(*rand.Rand) map[string]string {
	seal := "off"
	if d.seals() {
		seal = "1000"
	}
	return map[string]string{"DOWNPOUR_STORE": "pebble:db", "DOWNPOUR_SEAL": seal}
}

func (d *disk) start(cells map[string][]differential.Cell) error {
	st, err := d.openFiles("loader")
	if err != nil {
		return err
	}
	defer st.Close()
	for name, families := range tables {
		spec := stores.TableSpec{Name: name}
		for _, family := range families {
			spec.Families = append(spec.Families, stores.FamilySpec{Name: family})
		}
		if err := st.CreateTable(d.w.t.Context(), spec); err != nil {
			return err
		}
	}
	for table, cells := range cells {
		var all []stores.Mutation
		for _, c := range cells {
			all = append(all, stores.Mutation{
				Row:       c.Row,
				Family:    c.Family,
				Qualifier: c.Qualifier,
				Value:     c.Value,
				Timestamp: c.Timestamp,
			})
		}
		if err := st.Apply(d.w.t.Context(), table, all); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) open(process string, _ *networktest.Host, _ hbase.Proof) (store, error) {
	return d.openFiles(process)
}

// counting is a store that counts the rows that are sealed in it.
type counting struct {
	*pebble.Store
	w       *World
	closing chan struct{}
}

// Close closes the store, and waits for no sync that takes time.
func (c counting) Close() error {
	close(c.closing)
	return c.Store.Close()
}

// Features are those of the store.
func (c counting) Features() stores.Features {
	f := c.Store.Features()
	seal := f.Seal
	f.Seal = func(
		ctx context.Context, table string, since, before time.Time, pace func(stores.SealReport) error,
	) (stores.SealReport, error) {
		report, err := seal(ctx, table, since, before, pace)
		c.w.counted(func(n *Counts) { n.Sealed += int(report.Sealed) })
		return report, err
	}
	return f
}

func (d *disk) openFiles(process string) (store, error) {
	d.mu.Lock()
	on := files{d.files, d, make(chan struct{})}
	d.mu.Unlock()
	st, err := pebble.Open("db", pebble.Options{
		Logger:   d.w.log(process),
		Grouping: encoding.DefaultSchema().RowHours(),
		FS:       on,
	})
	return counting{st, d.w, on.closing}, err
}

// live lets others fill the disk for some time: puts are refused then, and queries are answered.
func (d *disk) live() {
	r := d.w.rand("room")
	for d.w.pause(r, 3*time.Minute) {
		lasts := time.Duration(r.Int64N(int64(30 * time.Second)))
		d.w.broke("disk full", "the disk is full for %v", lasts)
		d.setFull(true)
		d.w.rest(lasts)
		d.setFull(false)
	}
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) heal() {}

// killed leaves what was synced, and a part of the rest.
func (d *disk) killed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = d.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: d.r.IntN(101), RNG: d.r})
}

func (d *disk) close() {}
