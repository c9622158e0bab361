package storm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"downpour/integration/e2e"
	"downpour/integration/hostile"
)

// watch looks at the memory until ctx ends. The first time that it is over the
// bound the requests on their way are reported, and the heap's profile is kept.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := make([]bool, len(r.Watched))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, p := range r.Watched {
			m, err := p.Memory()
			if err != nil || m.Resident <= r.Memory || over[i] {
				continue
			}
			over[i] = true
			r.breach("%s: %d MiB are resident (%d of files), at most %d; %s; heap in %s; on their way\n%s",
				p.Name, m.Resident>>20, m.File>>20, r.Memory>>20, r.numbers(ctx), r.keepHeap(ctx), &r.flights)
		}
	}
}

// numbers are what the gateway itself says of its memory, in MiB.
func (r *run) numbers(ctx context.Context) string {
	a, err := e2e.Get(ctx, r.Gateway.URL+"/metrics")
	if err != nil {
		return err.Error()
	}
	var all []string
	for line := range bytes.Lines(a.Body) {
		name, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		value, err := strconv.ParseFloat(text, 64)
		of, ours := strings.CutPrefix(name, "downpour_memory_")
		of, runtime := strings.CutPrefix(of, "go_memstats_")
		if err == nil && (ours && strings.Contains(name, "bytes") || runtime && slices.Contains(runtimeNumbers, of)) {
			all = append(all, fmt.Sprintf("%s %.0f", of, value/(1<<20)))
		}
	}
	return strings.Join(all, ", ")
}

// runtimeNumbers are those of Go's runtime that make up its part of what is
// resident: sys without heap_released.
var runtimeNumbers = []string{
	"sys_bytes", "heap_released_bytes", "heap_inuse_bytes", "heap_alloc_bytes", "next_gc_bytes",
	"stack_inuse_bytes",
}

// keepHeap writes the profile of the gateway's heap to a file, whichever process is over the
// bound, and returns where. A gateway that does not serve it leaves no file.
func (r *run) keepHeap(ctx context.Context) string {
	a, err := e2e.Get(ctx, r.Gateway.URL+"/debug/pprof/heap")
	if err != nil || a.Status != http.StatusOK {
		return "no file"
	}
	path := filepath.Join(r.Gateway.Dir(), "heap.pb.gz")
	if err := os.WriteFile(path, a.Body, 0o644); err != nil {
		return "no file"
	}
	return path
}

// peaks holds the most that each process was ever resident against the bound.
func (r *run) peaks() {
	for _, p := range r.Watched {
		m, err := p.Memory()
		if err != nil {
			r.breach("%v", err)
			continue
		}
		r.report.Peaks = append(r.report.Peaks, m.Peak)
		if m.Peak > r.Memory {
			r.breach("%s: %d MiB were resident at most, may be %d", p.Name, m.Peak>>20, r.Memory>>20)
		}
	}
}

// held is what a gateway holds that must go back to where it was.
type held struct {
	goroutines, sockets int
	query, write, live  int64 // bytes reserved
}

// excess returns what of now is more than before, with some room for goroutines and sockets that
// come and go by themselves. Reservations have none: all are given back when nothing runs.
func (now held) excess(before held) string {
	switch {
	case now.goroutines > before.goroutines+10:
		return fmt.Sprintf("%d goroutines, %d before", now.goroutines, before.goroutines)
	case now.sockets > before.sockets+2:
		return fmt.Sprintf("%d sockets, %d before", now.sockets, before.sockets)
	case now.query > 0 || now.write > 0 || now.live > 0:
		return fmt.Sprintf("%d bytes are reserved for queries, %d for writes, %d for live queries",
			now.query, now.write, now.live)
	}
	return ""
}

// baseline is what the gateway holds at this moment: before the storm, what it holds with
// nothing to do; afterwards, what is to come down to that.
func (r *run) baseline(ctx context.Context) (h held, err error) {
	a, err := e2e.Get(ctx, r.Gateway.URL+"/metrics")
	if err != nil {
		return h, err
	}
	for line := range bytes.Lines(a.Body) {
		name, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		switch name {
		case "go_goroutines":
			h.goroutines = int(value)
		case `downpour_memory_held_bytes{holder="query"}`:
			h.query = int64(value)
		case `downpour_memory_held_bytes{holder="write"}`:
			h.write = int64(value)
		case `downpour_memory_held_bytes{holder="live"}`:
			h.live = int64(value)
		}
	}
	h.sockets, err = sockets(r.Gateway.Process.PID())
	return h, err
}

// sockets counts those that a process has open; its files come and go with its
// store.
func sockets(pid int) (n int, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n, err
}

// settleTime is how long everything may take to come back to where it was: live
// queries linger, and idle connections are closed after minutes.
const settleTime = 6 * time.Minute

// awaitBaseline waits until the gateway holds no more than before.
func (r *run) awaitBaseline(ctx context.Context, before held) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	began := time.Now()
	err := e2e.Until(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		now, err := r.baseline(ctx)
		if excess := now.excess(before); err == nil && excess != "" {
			return fmt.Errorf("still %s", excess)
		}
		return err
	})
	if err != nil {
		r.breach("after the storm: %v; goroutines in %s", err, r.keepGoroutines())
	}
	r.report.Settled = time.Since(began)
}

func (r *run) keepGoroutines() string {
	ctx, cancel := context.WithTimeout(context.Background(), outer)
	defer cancel()
	a, err := e2e.Get(ctx, r.Gateway.URL+"/debug/pprof/goroutine?debug=1")
	if err != nil || a.Status != http.StatusOK {
		return "no file"
	}
	path := filepath.Join(r.Gateway.Dir(), "goroutines.txt")
	if err := os.WriteFile(path, a.Body, 0o644); err != nil {
		return "no file"
	}
	return path
}

// panics finds faults of the program that it survived.
func (r *run) panics() {
	for _, p := range r.Watched {
		text, err := os.ReadFile(p.Log)
		if err != nil {
			r.breach("%v", err)
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "panic") {
				r.breach("%s: %.3000s", p.Name, line)
			}
		}
	}
}

// findAll asks for every point that was acknowledged. Where times leap, as from one request's
// points to another's, it starts a new question, so that no question reads hours without points.
func (r *run) findAll(ctx context.Context) {
	for s, points := range r.report.points {
		slices.SortFunc(points, func(a, b hostile.Point) int { return int(a.Time - b.Time) })
		for len(points) > 0 && ctx.Err() == nil {
			n := 1
			for n < len(points) && n < mostAsked && points[n].Time < points[n-1].Time+1000 {
				n++
			}
			if err := r.find(ctx, s, points[:n]); err != nil {
				r.breach("points of %s, writer %s, from %d on: %v", s.metric, s.writer, points[0].Time, err)
			} else {
				r.report.Points += n
			}
			points = points[n:]
		}
	}
}

// mostAsked bounds the points of one question.
const mostAsked = 50_000

// find asks for points of a series, in the order of time, and returns an error unless all
// have the acknowledged values.
func (r *run) find(ctx context.Context, s seriesName, points []hostile.Point) error {
	a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays&m=none:%s%%7Bwriter=%s%%7D", r.Gateway.URL,
		points[0].Time, points[len(points)-1].Time+1, s.metric, s.writer))
	if err != nil {
		return err
	}
	var results []struct{ DPS [][2]int64 }
	if err := json.NewDecoder(bufio.NewReader(bytes.NewReader(a.Body))).Decode(&results); err != nil ||
		len(results) != 1 {
		return fmt.Errorf("%d results, %v: status %d: %.300s", len(results), err, a.Status, a.Body)
	}
	found := map[int64]int64{}
	for _, p := range results[0].DPS {
		found[p[0]] = p[1]
	}
	for _, p := range points {
		if v, ok := found[p.Time]; !ok || v != p.Value {
			return fmt.Errorf("at %d stands %d (there %t), acknowledged was %d", p.Time, v, ok, p.Value)
		}
	}
	return nil
}
