package exp

import (
	"slices"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/expression"
	"downpour/pushdown/operator/aggregate"
)

// validate checks a request in OpenTSDB's order and parses its expressions.
// Source: Query.validate (pojo).
func (r *Request) validate(times query.Parser) error {
	if !r.Time.valid(times) {
		return fault("Invalid time")
	}
	if len(r.Metrics) == 0 {
		return fault("missing or empty metrics")
	}
	if err := r.checkRepeated(); err != nil {
		return err
	}

	for i := range r.Metrics {
		if !r.Metrics[i].valid(times) {
			return fault("Invalid metric at index %d", i)
		}
	}
	for i := range r.Filters {
		if !validID(value(r.Filters[i].ID)) {
			return fault("Invalid filter at index %d", i)
		}
	}
	for i := range r.Expressions {
		if err := r.Expressions[i].parse(i); err != nil {
			return err
		}
	}
	return r.checkReferences()
}

// checkRepeated returns an error for an id that two metrics or expressions have, or
// two filters.
func (r *Request) checkRepeated() error {
	ids := map[string]bool{}
	for i := range r.Metrics {
		id := value(r.Metrics[i].ID)
		if ids[id] {
			return fault("duplicated metric id: %s", id)
		}
		ids[id] = true
	}

	filters := map[string]bool{}
	for i := range r.Filters {
		id := value(r.Filters[i].ID)
		if filters[id] {
			return fault("duplicated filter id: %s", id)
		}
		filters[id] = true
	}

	for i := range r.Expressions {
		id := value(r.Expressions[i].ID)
		if ids[id] {
			return fault("Duplicated variable or expression id: %s", id)
		}
		ids[id] = true
	}
	return nil
}

// checkReferences returns an error for a filter or a variable that is not there.
func (r *Request) checkReferences() error {
	for i := range r.Metrics {
		m := &r.Metrics[i]
		// Without a list of filters OpenTSDB finds the fault only after those of expressions.
		if id := value(m.Filter); id != "" && r.Filters != nil && r.filter(id) == nil {
			return fault("unrecognized filter id %s in metric %s", id, value(m.ID))
		}
	}

	for i := range r.Expressions {
		e := &r.Expressions[i]
		if len(e.parsed.Variables) == 0 {
			return fault("The expression didn't appear to have any variables")
		}
		for _, name := range e.parsed.Variables {
			if r.metric(name) < 0 && r.expression(name) < 0 {
				return fault("Expression [%s] was missing input %s", *e.Expr, name)
			}
		}
	}

	// Faults that OpenTSDB finds only when it looks the filters up.
	for i := range r.Metrics {
		id := value(r.Metrics[i].Filter)
		f := r.filter(id)
		switch {
		case id == "":
		case f == nil: // the request has no filters at all
			return fault("No filter defined: %s", id)
		case f.Tags == nil:
			return fault("An internal null pointer exception was thrown")
		}
	}
	return nil
}

// filter returns the filter with an id, nil if there is none.
func (r *Request) filter(id string) *Filter {
	i := slices.IndexFunc(r.Filters, func(f Filter) bool { return value(f.ID) == id })
	if i < 0 {
		return nil
	}
	return &r.Filters[i]
}

// metric returns the index of the metric with an id, -1 if there is none.
func (r *Request) metric(id string) int {
	return slices.IndexFunc(r.Metrics, func(m Metric) bool { return value(m.ID) == id })
}

// expression returns the index of the expression with an id, -1 if there is none.
func (r *Request) expression(id string) int {
	return slices.IndexFunc(r.Expressions, func(e Expression) bool { return value(e.ID) == id })
}

// valid reports whether times and functions can be read. Names of functions are
// compared in lower case here; the query takes them as written.
// Source: Timespan.validate, Downsampler.validate.
func (t *Time) valid(times query.Parser) bool {
	if value(t.Start) == "" || !isFunction(t.Aggregator) {
		return false
	}
	for _, text := range []*string{t.Start, t.End} {
		if value(text) == "" {
			continue // only the end
		}
		if _, err := times.TimeIn(*text, value(t.Timezone)); err != nil {
			return false
		}
	}

	d := t.Downsampler
	if d == nil {
		return true
	}
	_, err := query.ParseDuration(value(d.Interval))
	return err == nil && isFunction(d.Aggregator)
}

func isFunction(name *string) bool {
	_, ok := aggregate.Lookup(scanplan.Aggregator(strings.ToLower(value(name))))
	return ok && value(name) != ""
}

// valid reports whether a metric can be read. Source: Metric.validate (pojo).
func (m *Metric) valid(times query.Parser) bool {
	if value(m.Metric) == "" || !validID(value(m.ID)) {
		return false
	}
	if value(m.Aggregator) != "" && !isFunction(m.Aggregator) {
		return false
	}
	if value(m.TimeOffset) == "" {
		return true
	}
	_, err := times.TimeIn(*m.TimeOffset, "")
	return err == nil
}

// parse parses the expression, which has an index in the request.
func (e *Expression) parse(index int) (err error) {
	if !validID(value(e.ID)) || value(e.Expr) == "" {
		return fault("Invalid expression at index %d", index)
	}
	if e.parsed, err = expression.Parse(*e.Expr); err != nil {
		return err
	}
	if e.Join.Operator == "" {
		return fault("The set operator cannot be null")
	}
	return nil
}
