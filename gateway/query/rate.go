package query

import (
	"math"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/gateway/java"
)

// defaultRate returns the options of a rate that gives none. Source: RateOptions.
func defaultRate() scanplan.Rate { return scanplan.Rate{CounterMax: math.MaxInt64} }

// parseRate parses rate{counter[,max[,reset]]} of a GET query. Any first word that ends in
// counter makes a counter; the word dropcounter also drops resets.
// Source: QueryRpc.parseRateOptions.
func parseRate(spec string) (*scanplan.Rate, error) {
	o := defaultRate()
	if len(spec) < len("rate{}") {
		return nil, Bad("Invalid rate options specification: %s", spec)
	}
	// As in OpenTSDB, what stands in the places of the braces is not checked.
	parts := strings.Split(spec[len("rate{"):len(spec)-1], ",")
	if len(parts) > 3 {
		return nil, Bad(
			"Incorrect number of values in rate options specification, must be "+
				"counter[,counter max value,reset value], recieved: %d parts",
			len(parts))
	}

	o.Counter = strings.HasSuffix(parts[0], "counter")
	o.DropResets = parts[0] == "dropcounter"

	var err error
	if len(parts) > 1 && parts[1] != "" {
		if o.CounterMax, err = java.ParseLong(parts[1]); err != nil {
			return nil, Bad("Max value of counter was not a number, received '%s'", parts[1])
		}
	}
	if len(parts) > 2 && parts[2] != "" {
		if o.ResetValue, err = java.ParseLong(parts[2]); err != nil {
			return nil, Bad("Reset value of counter was not a number, received '%s'", parts[2])
		}
	}
	return &o, nil
}
