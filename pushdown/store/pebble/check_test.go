package pebble

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
)

func check(t *testing.T, i image) store.CheckReport {
	t.Helper()
	files := i.files(t)
	r, err := Check(t.Context(), "data", Options{FS: files, Logger: quiet(), CacheBytes: 1 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := take(t, files)
	delete(after, "LOCK")
	for name, data := range after {
		if !bytes.Equal(data, i[name]) {
			t.Errorf("check has changed %s", name)
		}
	}
	return r
}

// A whole store has no faults; every byte of a table, MANIFEST, its copy and the
// used part of a log that changes is one, and so is a missing table.
func TestCheck(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	killed, closed, _ := smallStore(t)
	for state, i := range map[string]image{"killed": killed, "closed": closed} {
		r := check(t, i)
		if len(r.Faults) > 0 || r.Tables == 0 || r.Bytes == 0 || r.Logs == 0 {
			t.Errorf("%s: %+v, want no faults", state, r)
		}
		list := harms(i)
		if !*soak {
			rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
			list = list[:300]
		}
		for _, h := range list {
			data := h.do(i[h.file], rng)
			if data == nil || !strings.HasSuffix(h.file, ".sst") && !strings.Contains(h.file, "MANIFEST") && (state == "closed" || !strings.HasSuffix(h.file, ".log")) {
				continue
			}
			if len(data) > 0 && strings.HasSuffix(h.file, ".log") && h.how == "cut" && len(bytes.TrimRight(i[h.file], "\x00"))+100 < h.at {
				continue // some of the zeros behind the records are gone, which is no matter
			}
			r := check(t, i.with(h.file, data))
			if !slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return f.File == h.file }) {
				t.Errorf("%s, %+v: %v, want it found", state, h, r.Faults)
			}
		}
	}
	for name := range closed {
		if gone := closed.with(name, nil); strings.HasSuffix(name, ".sst") {
			delete(gone, name)
			t.Log(check(t, gone).Faults)
		}
	}
}

// A check tells of which hours the rows of a damaged block are.
func TestCheck_hours(t *testing.T) {
	files := image{}.files(t)
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	load(t, s, 360)
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), "data", Options{FS: files, Logger: quiet()}, nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("check of an open store: %v, want that it is locked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	i := take(t, files)
	first := time.Unix(1297573200, 0)
	for name, data := range i {
		if !strings.HasSuffix(name, ".sst") || len(data) < 1<<20 {
			continue
		}
		harmed := bytes.Clone(data)
		harmed[len(data)/2] ^= 1
		r := check(t, i.with(name, harmed))
		if len(r.Faults) != 1 || r.Faults[0].Kind != store.Unreadable || r.Faults[0].Bytes > 40<<10 || r.Faults[0].First.Before(first) ||
			r.Faults[0].Last.After(first.Add(benchHours*time.Hour)) || r.Faults[0].Last.Sub(r.Faults[0].First) > time.Hour {
			t.Errorf("%s: %v, want one block of an hour or two", name, r.Faults)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, "data", Options{FS: files, Logger: quiet()}, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is ended: %v", err)
	}
}
