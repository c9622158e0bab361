package sim

import (
	"bufio"
	"bytes"
	"fmt"
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

// checkMemory checks that gateways hold no memory once all clients are gone, except the 64 KiB that the account of live queries keeps.
func (w *World) checkMemory() {
	pass(time.Minute)
	const kept = 64 << 10
	for i := range w.gateways {
		all := w.metrics(i)
		for holder, most := range map[string]float64{"query": 0, "write": 0, "live": kept} {
			name := fmt.Sprintf("downpour_memory_held_bytes{holder=%q}", holder)
			if held, ok := all[name]; held > most || !ok {
				w.t.Errorf("seed %d: gateway %d, after all clients have gone: %s is %v (%t), want at most %v", w.seed, i, name, held, ok, most)
			}
		}
	}
}
