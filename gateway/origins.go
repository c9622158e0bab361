package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"downpour/gateway/api/origin"
	"downpour/pushdown/process/list"
	"downpour/pushdown/process/settings"
)

// originRules returns what decides on pages and host names.
func (c *Config) originRules(log *slog.Logger) (rules origin.Rules, err error) {
	var unusable []error
	if rules.Allowed, unusable, err = origin.Parse(c.AllowOrigins); err != nil {
		return rules, fmt.Errorf("DOWNPOUR_ALLOW_ORIGINS: %w", err)
	}
	list.Warn(log, "DOWNPOUR_ALLOW_ORIGINS", unusable)
	if rules.Hosts, unusable, err = origin.ParseHosts(c.AllowHosts); err != nil {
		return rules, fmt.Errorf("DOWNPOUR_ALLOW_HOSTS: %w", err)
	}
	list.Warn(log, "DOWNPOUR_ALLOW_HOSTS", unusable)
	rules.Loopback, _ = settings.Loopback(c.Listen) // Validate has reported an address that is none
	rules.Open = !rules.Loopback && c.TokenFile == ""
	if rules.Open {
		listen, _, _ := net.SplitHostPort(c.Listen)
		rules.Hosts = append(rules.Hosts, machineNames(listen)...)
	}
	return rules, nil
}

// namesWithin is how long the start waits for a name server's answer with this machine's full name.
const namesWithin = time.Second

// machineNames returns the names of this machine: the one at which the gateway listens, the machine's own,
// and its full one (hostname -f). Nobody else can make them lead here.
func machineNames(listen string) (names origin.Hosts) {
	own, _ := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	all := []string{listen, own, short}
	ctx, cancel := context.WithTimeout(context.Background(), namesWithin)
	defer cancel()
	if full, err := net.DefaultResolver.LookupCNAME(ctx, own); err == nil {
		all = append(all, full)
	}
	for _, name := range all {
		// One that is empty, or that no browser sends, is left out.
		if parsed, _, err := origin.ParseHosts([]string{name}); err == nil {
			names = append(names, parsed...)
		}
	}
	return names
}
