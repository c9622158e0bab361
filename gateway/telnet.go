package gateway

import (
	"context"
	"strings"

	"downpour/gateway/admin/activity"
	"downpour/gateway/api/telnet"
	"downpour/pushdown/rpc/auth"
)

// telnetConfig wires the line protocol.
func (s *Server) telnetConfig() telnet.Config {
	cfg := telnet.Config{
		Writer:    s.writes.points,
		Rollups:   s.writes.rollups,
		Commands:  s.command,
		Log:       s.log,
		Memory:    s.memory,
		ReadOnly:  s.readOnly(),
		CountPuts: sourceCounter{s.writes, activity.Telnet}.Lines,
		PutLog:    s.writes.refusals,
	}
	if s.tokens != nil {
		cfg.Authorize = func(token string) (telnet.Rights, bool) {
			scope := s.tokens.Check(token)
			return telnet.Rights{
				Read:  scope&auth.Read != 0,
				Write: scope&auth.Write != 0,
				Admin: scope&auth.Admin != 0,
				Name:  s.tokens.Name(token),
			}, scope != 0
		}
	}
	return cfg
}

// command answers the command that the first word names; false says that there is none. Those
// that package telnet answers itself, such as put and exit, do not come here.
// Source: the inner classes of RpcManager.
func (s *Server) command(ctx context.Context, words []string) (string, bool) {
	switch words[0] {
	case "version":
		v := version()
		return "downpour " + v.Version + " built from revision " + v.ShortRevision + " (" + v.RepoStatus + ")\n" +
			"Built on " + v.Timestamp + " by " + v.Host + "\n", true
	case "help":
		return "available commands: " +
			strings.Join([]string{"auth", "dropcaches", "exit", "help", "histogram", "put", "rollup", "stats",
				"version"}, " ") + "\n", true
	case "dropcaches":
		if err := s.dropCaches(ctx); err != nil {
			// An answer of several lines would look like several answers.
			return "Caches dropped here, but maybe not everywhere: " + strings.ReplaceAll(err.Error(), "\n", "; ") +
				"\n", true
		}
		return "Caches dropped.\n", true
	case "stats":
		return s.count.lines(version().Host), true
	case "diediedie":
		return "diediedie: refused, end the process by a signal\n", true
	}
	return "", false
}
