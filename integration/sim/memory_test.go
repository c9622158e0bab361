package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// metrics returns those of a gateway, by name with labels.
func (w *World) metrics(gateway int) map[string]float64 {
	all := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(w.clients.ask(gateway, "GET", "/metrics", "").body))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		all[name], _ = strconv.ParseFloat(value, 64)
	}
	return all
}

// checkMemory checks that gateways hold no memory once all clients are gone, except what the account of
// live queries keeps for the next ones: less than two of the 64 KiB that it takes at once. The messages of
// live queries are given back when the garbage collector has found them.
func (w *World) checkMemory() {
	pass(time.Minute)
	for i := range w.gateways {
		held := w.held(i)
		for range 10 {
			if held == "" {
				break
			}
			runtime.GC()
			held = w.held(i)
		}
		if held != "" {
			w.t.Errorf("seed %d: gateway %d, after all clients have gone: %s", w.seed, i, held)
		}
	}
}

// held says which holders have more memory of a gateway than they may keep, "" if none has.
func (w *World) held(gateway int) (text string) {
	const kept = 2*64<<10 - 1
	all := w.metrics(gateway)
	for holder, most := range map[string]float64{"query": 0, "write": 0, "live": kept} {
		name := fmt.Sprintf("downpour_memory_held_bytes{holder=%q}", holder)
		if held, ok := all[name]; held > most || !ok {
			text += fmt.Sprintf("%s is %v (%t), want at most %v. ", name, held, ok, most)
		}
	}
	return text
}
