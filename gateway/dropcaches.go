package gateway

import (
	"context"
	"errors"
	"fmt"
)

// dropCaches drops what this gateway has cached, and the cached answers of its pushdown
// servers. Other gateways on the same tables are asked to compare the names that they have
// cached with the table, which they do within seconds: one call serves all. Their cached
// answers are proven at each ask, and need not be dropped.
func (s *Server) dropCaches(ctx context.Context) error {
	s.names.Drop()
	s.writes.series.Drop()
	for _, e := range s.extras {
		if e.DropCaches != nil {
			e.DropCaches()
		}
	}
	s.names.forgetMeta()

	errs := []error{s.queries.engine.DropCaches(ctx)}
	// A gateway that only reads writes nothing, and may not be allowed to.
	if s.readOnly() {
		return errors.Join(errs...)
	}
	if err := s.names.Tell(ctx); err != nil {
		errs = append(errs, fmt.Errorf("other gateways could not be told: %w", err))
	}
	return errors.Join(errs...)
}
