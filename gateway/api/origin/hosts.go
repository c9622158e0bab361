package origin

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"downpour/pushdown/process/list"
)

// Hosts are names of the gateway.
type Hosts []string

// ParseHosts reads names of hosts, in any case. Entries that browsers would never send as a host
// are ignored: unusable has the reasons, and err is set if there are no others.
func ParseHosts(entries []string) (h Hosts, unusable []error, err error) {
	return list.Usable(entries, func(text string) (string, error) {
		name := strings.ToLower(strings.TrimSuffix(text, "."))
		if !isName(name) {
			return "", fmt.Errorf(
				"got %q, want the name of a host alone, without scheme and port, such as metrics.example", text)
		}
		return name, nil
	})
}

// isName reports whether a text is a host name in the form that browsers send, in lower case and in ASCII.
func isName(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != ""
}

// has reports whether a Host header is an address, localhost, or one of the names, with any port.
func (h Hosts) has(host string) bool {
	name := nameOf(host)
	if _, err := netip.ParseAddr(name); err == nil || name == "" || name == "localhost" {
		return true
	}
	for _, known := range h {
		if name == known { //fault:host-by-its-end TestHosts
			return true
		}
	}
	return false
}

// nameOf returns the name in a Host header, without the port, brackets, and the dot that ends a full name.
func nameOf(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
}
