package hostmetrics

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fixed(context.Context) ([]Point, error) {
	return []Point{
		{Metric: "df.bytes used", Value: encoding.IntValue(7), Tags: map[string]string{"mount": "/mnt/a b"}},
	}, nil
}

func TestFirstSampleInTheNextSecondThenEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var puts [][]Point
		began := time.Now().Unix()
		time.Sleep(300 * time.Millisecond) // simulated by synctest: a gateway starts within a second
		c := Collector{Interval: 10 * time.Second, Host: "my host", Read: fixed,
			Put: func(_ context.Context, p []Point) error { puts = append(puts, p); return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		c.Run(ctx)
		var want [][]Point
		for _, after := range []int64{1, 11, 21} {
			want = append(want, []Point{{Metric: "df.bytes_used", Time: began + after, Value: encoding.IntValue(7),
				Tags: map[string]string{"mount": "/mnt/a_b", "host": "my_host"}}})
		}
		if diff := cmp.Diff(want, puts); diff != "" {
			t.Errorf("puts (-want +got):\n%s", diff)
		}
	})
}

func TestTroubleIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := 0
		c := Collector{Interval: time.Second, Host: "h", Read: fixed, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Put: func(context.Context, []Point) error {
				if n++; n > 2 && n <= 40 {
					return errors.New("store is away")
				}
				return nil
			}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Run(ctx)
		if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "store is away") ||
			!strings.Contains(log.String(), "works again") {
			t.Errorf("38 failures in a row are logged as\n%s\nwant one line for the first and one for the end",
				log.String())
		}
	})
}

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"proc.stat.cpu": "proc.stat.cpu", "/var/lib": "/var/lib", "a b:c": "a_b_c", "": "_", "größe": "größe",
		"\xff": "_", "x=1": "x_1", "\U0001D49C": "_",
	} {
		got := Sanitize(in)
		if got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
		if err := encoding.ValidateName("name", got); err != nil {
			t.Error(err)
		}
	}
}

// ReadHost reads the metrics of the host that the test runs on: each series once, no negative
// integers, and the most important metrics are there.
func TestReadHost(t *testing.T) {
	points, err := ReadHost(t.Context())
	if err != nil {
		t.Log(err) // a sandbox may hide parts
	}
	c := Collector{Host: "h"}
	c.setDefaults()
	c.complete(points)
	seen := map[string]bool{}
	for _, p := range points {
		id := p.Metric
		for _, k := range []string{"type", "mount", "fstype", "iface", "dev", "direction", "host"} {
			id += "," + p.Tags[k]
		}
		if seen[id] {
			t.Errorf("%s is twice in one sample", id)
		}
		if !Collects(p.Metric) {
			t.Errorf("Collects does not know %s", p.Metric)
		}
		seen[id], seen[p.Metric] = true, true
		if !p.Value.Float && p.Value.Int() < 0 {
			t.Errorf("%s is %d, want no negative value", id, p.Value.Int())
		}
	}
	for _, m := range []string{"proc.stat.cpu", "proc.loadavg.1min", "proc.loadavg.5min", "proc.loadavg.15min",
		"proc.meminfo.memtotal", "proc.meminfo.memfree", "df.bytes.total", "df.bytes.used",
		"df.bytes.free", "proc.net.bytes"} {
		if !seen[m] {
			t.Errorf("%s is missing", m)
		}
	}
}

// At the start samples come often, then less and less often; the interval never grows to 2.5
// times the median of what lies behind, where a chart would break the line.
func TestFirstSamplesComeOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []int64
		c := Collector{Interval: 10 * time.Second, First: 2 * time.Second, Host: "h", Read: fixed,
			Put: func(_ context.Context, p []Point) error { times = append(times, p[0].Time); return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c.Run(ctx)

		var steps []int64
		for i := 1; i < len(times); i++ {
			step := times[i] - times[i-1]
			before := slices.Sorted(slices.Values(steps))
			if i > 3 && 2*step >= 5*before[len(before)/2] {
				t.Errorf("sample %d comes %d s after the one before it, the median is %d s",
					i, step, before[len(before)/2])
			}
			steps = append(steps, step)
		}
		if got := slices.Compact(steps); !slices.Equal(got, []int64{2, 4, 8, 10}) {
			t.Errorf("steps of %v s, want 2, 4, 8, 10", got)
		}
		if n := len(times); n < 300 || times[6]-times[0] > 12 {
			t.Errorf("%d samples, the seventh after %d s, want it within 12 s", n, times[6]-times[0])
		}
	})
}

// A sample that takes longer than the interval is followed by none in its second, and by no
// others in a row.
func TestSlowSampleIsNotMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Unix()
		var times []int64
		c := Collector{
			Interval: 2 * time.Second,
			Host:     "h",
			Read:     fixed,
			Put: func(_ context.Context, p []Point) error {
				times = append(times, p[0].Time-began)
				if len(times) == 2 {
					time.Sleep(7500 * time.Millisecond) // simulated by synctest: the sample takes so long
				}
				return nil
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		c.Run(ctx)
		if want := []int64{1, 3, 12, 14}; !slices.Equal(times, want) {
			t.Errorf("samples at %v s, want %v", times, want)
		}
	})
}

func TestDisks(t *testing.T) {
	for name, want := range map[string]string{
		"sda": "", "sda1": "sda", "nvme0n1p2": "nvme0n1", "nvme0n1": "nvme0n", "mmcblk0p1": "mmcblk0",
		"p1": "p", "": "",
	} {
		if got := wholeOf(name); got != want {
			t.Errorf("wholeOf(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"sda": false, "vda": false, "nvme0n1": false, "loop7": true, "dm-0": true, "md127": true,
		"zram0": true,
	} {
		if virtual(name) != want {
			t.Errorf("virtual(%q) = %t", name, !want)
		}
	}
}
