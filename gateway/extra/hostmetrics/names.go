package hostmetrics

import (
	"strings"
	"unicode"
)

// The names of metrics, and what they begin with.
const (
	cpuMetric    = "proc.stat.cpu"
	netMetric    = "proc.net.bytes"
	diskMetric   = "proc.disk.bytes"
	loadPrefix   = "proc.loadavg."
	memoryPrefix = "proc.meminfo."
	filesPrefix  = "df.bytes."
	// GatewayPrefix begins the names of what the gateway counts of itself.
	GatewayPrefix = "downpour."
	// First is the metric that is in every sample, on every platform.
	First = cpuMetric
)

// Sanitize replaces what OpenTSDB takes in no name by "_": everything but
// letters of 16 bits, digits and -_./ (Tags.validateString). An empty name becomes "_".
func Sanitize(name string) string {
	if name == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r <= 0xFFFF && (unicode.IsLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)) {
			return r
		}
		return '_'
	}, name)
}

// Collects reports whether a metric has one of the names under which this host's own metrics
// are put.
func Collects(metric string) bool {
	switch metric {
	case cpuMetric, netMetric, diskMetric:
		return true
	}
	for _, prefix := range []string{loadPrefix, memoryPrefix, filesPrefix, GatewayPrefix} {
		if strings.HasPrefix(metric, prefix) {
			return true
		}
	}
	return false
}
