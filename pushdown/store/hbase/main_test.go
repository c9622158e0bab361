package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/storetest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is longer than any of these tests lasts; a test that hangs fails after it.
const bound = 5 * time.Minute

// cluster is a fake cluster, a store on it and a context.
type cluster struct {
	*testing.T
	*hbasefake.Cluster
	st  *Store
	ctx context.Context
}

// start runs a fake cluster and opens a store on it; both end with the test.
func start(t *testing.T, opts hbasefake.Options, change ...func(*Config)) *cluster {
	fake, err := hbasefake.Start(opts)
	if err != nil {
		t.Fatalf("start of the fake: %v", err)
	}
	t.Cleanup(fake.Close)

	cfg := Config{Quorum: fake.Address(), VersionTimeout: bound}
	if opts.Network != nil {
		cfg.Dial = fake.Dial
	}

	for _, f := range change {
		f(&cfg)
	}

	st, err := Open(cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { st.Close() })

	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return &cluster{T: t, Cluster: fake, st: st, ctx: ctx}
}

// fill creates table "t" with rows r0000… of 1, 2 or 3 cells, and returns the cells.
func (c *cluster) fill(rows int, splits ...string) []string {
	var keys [][]byte
	for _, s := range splits {
		keys = append(keys, []byte(s))
	}

	c.CreateTable("t", []string{"t"}, keys...)
	var want []string
	for i := range rows {
		for q := range 1 + i%3 {
			key, value := fmt.Sprintf("r%04d", i), fmt.Sprintf("v%d", i*q)
			c.Put("t", key, "t", fmt.Sprintf("q%d", q), value)
			want = append(want, fmt.Sprintf("%s q%d %s", key, q, value))
		}
	}

	return want
}

// read scans and returns a line for every cell. A row that is split between blocks is
// an error.
func (c *cluster) read(s store.Scan) ([]string, store.ScanStats, error) {
	s.Table = "t"
	sc, err := c.st.Scan(c.ctx, s)
	if err != nil {
		return nil, store.ScanStats{}, err
	}
	defer sc.Close()

	var got []string
	var last []byte
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return got, sc.Stats(), nil
		}
		if err != nil {
			return got, sc.Stats(), err
		}
		if len(rows) == 0 {
			return got, sc.Stats(), errors.New("a block without rows")
		}
		for _, r := range rows {
			if bytes.Compare(r.Key, last) <= 0 {
				return got, sc.Stats(), fmt.Errorf("row %q comes after %q", r.Key, last)
			}
			last = bytes.Clone(r.Key)
			for _, cell := range r.Cells {
				got = append(got, fmt.Sprintf("%s %s %s", r.Key, cell.Qualifier, cell.Value))
			}
		}
	}
}

// mustRead scans and fails unless it gets the cells of want.
func (c *cluster) mustRead(s store.Scan, want []string) store.ScanStats {
	c.Helper()
	got, stats, err := c.read(s)
	if err != nil {
		c.Fatalf("scan: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Fatalf("cells (-want +got):\n%s", diff)
	}
	return stats
}

func TestConformance(t *testing.T) {
	opened := func(t *testing.T, opts hbasefake.Options) func(t *testing.T) store.Store {
		fake := hbasefake.For(t, opts)
		return func(t *testing.T) store.Store {
			st, err := Open(Config{Quorum: fake.Address(), VersionTimeout: bound})
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
	}
	t.Run("plain", func(t *testing.T) {
		t.Parallel() // half of the time is spent waiting
		storetest.RunShare(t, 0, opened(t, hbasefake.Options{}))
	})
	t.Run("small parts", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, opened(t,
			hbasefake.Options{Servers: 3, MaxReplyCells: 3, FlagCompleteRows: true, HeartbeatEvery: 4}))
	})
}

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]Config{
		"zk1:2181":                  {Quorum: "zk1:2181", Root: "/hbase"},
		"zk1:2181,zk2:2182":         {Quorum: "zk1:2181,zk2:2182", Root: "/hbase"},
		"zk1,zk2/hbase-unsecure":    {Quorum: "zk1:2181,zk2:2181", Root: "/hbase-unsecure"},
		"[::1]:2181/a/b/":           {Quorum: "[::1]:2181", Root: "/a/b"},
		"127.0.0.1:12181/hbase-two": {Quorum: "127.0.0.1:12181", Root: "/hbase-two"},
		// Blanks, and one entry that cannot be used, do not matter.
		" zk1:2181, zk2:2182 ,, /x ": {Quorum: "zk1:2181,zk2:2182", Root: "/x"},
		"zk1:x,zk2:2182": {
			Quorum:   "zk2:2182",
			Root:     "/hbase",
			Unusable: []error{errors.New(`host "zk1:x": want HOST:PORT with a port of 1 to 65535`)},
		},
	} {
		got, err := ParseAddress(in)
		if err != nil || got.Quorum != want.Quorum || got.Root != want.Root ||
			fmt.Sprint(got.Unusable) != fmt.Sprint(want.Unusable) {
			t.Errorf("%q: %q, %q, without %v, %v, want %q, %q, without %v", in, got.Quorum, got.Root, got.Unusable,
				err, want.Quorum, want.Root, want.Unusable)
		}
	}

	for in, want := range map[string]string{"": "got nothing", "/hbase": "got nothing", " , /hbase": "got nothing",
		"zk1:0": "zk1:0", "zk1:99999": "65535", "zk1:x": "zk1:x", ":2181": `":2181"`, "zk1:1:2": `"zk1:1:2"`,
		"zk1:x,zk2:y": `"zk1:x": want HOST:PORT with a port of 1 to 65535; host "zk2:y"`} {
		if got, err := ParseAddress(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want an error with %s", in, got, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("zk1:2181,zk2/hbase")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ParseAddress(in)
		if err != nil {
			return
		}
		again, err := ParseAddress(c.Quorum + c.Root)
		if err != nil || again.Quorum != c.Quorum || again.Root != c.Root {
			t.Errorf("%q: %+v, read again %+v, %v", in, c, again, err)
		}
	})
}

// wantError fails the test unless err is target.
func wantError(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}
