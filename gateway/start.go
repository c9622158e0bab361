package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"downpour/gateway/admin/logtail"
	"downpour/gateway/api/listener"
	"downpour/gateway/api/pace"
	"downpour/gateway/api/standby"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query"
	"downpour/pushdown/announce"
	"downpour/pushdown/process/network"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/store"
)

// Start is Listen with the Start that follows it, on a store that is open. The caller closes the store, after
// the server.
func Start(ctx context.Context, cfg *Config, st Store, log *slog.Logger) (*Server, error) {
	s, err := Listen(cfg, log)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx, st); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Listen opens the port. Until Start has returned, /healthz is answered with 200 and all else with 503, see
// package standby. The caller calls Close.
func Listen(cfg *Config, log *slog.Logger) (*Server, error) {
	tail := logtail.New(log.Handler())
	log = slog.New(tail)
	s := &Server{
		common:   common{cfg: cfg, log: log, count: newCounters(log)},
		tail:     tail,
		started:  time.Now(),
		closing:  defaultCloseTimeouts,
		draining: draining{pause: time.Sleep},
	}
	s.fault.happened = make(chan struct{})
	if err := s.parse(); err != nil {
		return nil, err
	}

	l, err := s.listen()
	if err != nil {
		return nil, err
	}
	if err := s.setLimits(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.standby = standby.New(cfg.StoreAddress(), s.origins, log)
	s.listener = listener.New(l, listener.Config{
		Telnet:        s.standby.Telnet,
		MaxPerAddress: s.cfg.LimitConnections,
		Log:           s.log,
	})
	s.http = &http.Server{
		Handler:           s.standby,
		ReadHeaderTimeout: 5 * time.Second, // package pace bounds the time of bodies
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.background.Go(func() {
		// Close may come before Serve: then it is the closed listener that ends Serve, and not
		// the shutdown.
		if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) &&
			!errors.Is(err, net.ErrClosed) {
			s.log.Error("the HTTP server ended", "err", err)
		}
	})
	return s, nil
}

// parse reads the settings that are texts of their own.
func (s *Server) parse() (err error) {
	if s.zone, err = s.cfg.Location(); err != nil {
		return fmt.Errorf("DOWNPOUR_TIMEZONE: %w", err)
	}
	if s.fix, err = query.ParseFixes(s.cfg.Fix); err != nil {
		return fmt.Errorf("DOWNPOUR_FIX: %w", err)
	}
	if s.tokens, err = auth.Load(s.cfg.TokenFile, auth.All, s.log); err != nil {
		return fmt.Errorf("DOWNPOUR_TOKEN_FILE: %w", err)
	}
	if s.cfg.findsPushdown() {
		if s.keys, err = announce.Keys(s.tokens, s.cfg.PushdownCA != ""); err != nil {
			return fmt.Errorf("DOWNPOUR_PUSHDOWN=auto: %w", err)
		}
	}
	s.origins, err = s.cfg.originRules(s.log)
	return err
}

// setLimits reads the limits and the memory that they share. It logs them, so it comes after what may fail in one line.
func (s *Server) setLimits() (err error) {
	if s.memory, err = s.cfg.MemoryPool(s.log); err != nil {
		return err
	}
	s.limits, err = newLimits(&s.cfg.LimitConfig, s.memory, s.log)
	return err
}

// listen opens the port, with TLS if it is configured, and sets the URL.
func (s *Server) listen() (net.Listener, error) {
	on := s.cfg.Network
	if on == nil {
		on = network.System{}
	}
	l, err := on.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_LISTEN=%s: %w", s.cfg.Listen, err)
	}

	// The limits on slow clients lie beneath TLS, where each byte that moves counts.
	l = pace.Listen(l, pace.Limits{})

	scheme := "http"
	cfg, err := s.cfg.ServerTLS(s.log)
	if err != nil {
		l.Close()
		return nil, err
	}
	if cfg != nil {
		l = tls.NewListener(l, cfg)
		scheme = "https"
	}

	s.url = scheme + "://" + l.Addr().String() + "/"
	return l, nil
}

// Await calls open until it has opened the store, fails for a reason that no waiting mends, or ctx ends. It waits
// while another process has an embedded store.
func (s *Server) Await(ctx context.Context, open func(context.Context) error) error {
	return s.standby.Await(ctx, open)
}

// Start checks the store and begins to serve. While the store cannot be reached, it waits.
func (s *Server) Start(ctx context.Context, st Store) error {
	s.store = st
	if err := s.Await(ctx, s.checkStore); err != nil {
		return err
	}
	ctx, ended := context.WithTimeout(ctx, startTimeout)
	defer ended()
	if err := s.build(ctx); err != nil {
		return err
	}
	s.serve()
	return nil
}

// startTimeout bounds the checks of the store at a start; then they are retried.
const startTimeout = 30 * time.Second

// checkStore checks that the tables exist and have the layout of the settings.
func (s *Server) checkStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	read := s.cfg.TableNames()
	read.Rollups = s.cfg.RollupTablesRead()
	s.readable = &store.ReadCheck{Store: s.store, Of: tables.ReadFamilies(read), Again: s.cfg.RightsAgain, Log: s.log}
	err := tables.Check(ctx, s.store, s.cfg.TableNames())
	if err == nil {
		err = s.readable.AtStart(ctx)
	}
	if err == nil {
		err = tables.CheckLayout(ctx, s.store, s.cfg.TableData, s.cfg.Schema())
	}

	// The sample of rows that shows the layout is damaged, but others can be read and
	// exported.
	if errors.Is(err, store.ErrDamaged) {
		s.log.Error("the layout of the tables is not checked", "err", err)
		return nil
	}
	if err != nil {
		return s.storeError(err)
	}
	return nil
}

// storeError is the error of a store that the gateway cannot serve.
func (s *Server) storeError(err error) error {
	return fmt.Errorf("DOWNPOUR_STORE=%s: %w", s.cfg.Store, err)
}
