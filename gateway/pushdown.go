package gateway

import (
	"fmt"

	"downpour/gateway/query/dispatch"
	"downpour/pushdown/process/list"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/client"
)

// connect makes a client of each configured pushdown server. It calls none of them:
// a server that cannot be reached makes queries slower but does not fail them.
func (s *Server) connect() ([]dispatch.Server, error) {
	token, err := s.tokens.Sends(auth.Read)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TOKEN_FILE: %w", err)
	}
	tls, err := s.cfg.PushdownTLS(s.log)
	if err != nil {
		return nil, err
	}

	options := client.Options{Token: token, TLS: tls, Stall: s.cfg.PushdownPatience}
	if s.cfg.Network != nil {
		options.Dial = s.cfg.Network.DialContext
	}
	servers, unusable, err := list.Usable(s.cfg.Pushdown, func(address string) (dispatch.Server, error) {
		if err := settings.CheckAddress("DOWNPOUR_PUSHDOWN", address); err != nil {
			return nil, err
		}
		c, err := client.New(address, options)
		if err != nil {
			return nil, fmt.Errorf("DOWNPOUR_PUSHDOWN: %w", err)
		}
		s.clients = append(s.clients, c)
		return c, nil
	})
	list.Warn(s.log, "DOWNPOUR_PUSHDOWN", unusable)
	return servers, err
}

func (s *Server) closeClients() {
	for _, c := range s.clients {
		c.Close()
	}
}
