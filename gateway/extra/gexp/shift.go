package gexp

import "downpour/gateway/query"

// setShifts sets how much earlier all metrics below a call are to be read.
func (e *Expressions) setShifts(c *Call, shift int64) {
	if c.Function == "timeShift" || c.Function == "shift" {
		e.HasTimeShift = true
		// The evaluation answers with the error.
		by, _ := parseShift(c.Params)
		shift += by
	}

	for _, a := range c.Args {
		if a.Call != nil {
			e.setShifts(a.Call, shift)
		} else {
			e.Metrics[a.Metric].Shift = shift
		}
	}
}

// timeShift has data of an earlier time at the time of the query. The data comes moved,
// see Metric.Shift, so that what is below this function, as a moving average, has that
// time too. In OpenTSDB it always fails: it takes the closing quote for a part of the
// unit. Source: TimeShift.
func timeShift(ev *evaluation, args [][]value, params []string) ([]value, error) {
	if _, err := parseShift(params); err != nil {
		return nil, err
	}
	return ev.concat(args)
}

// parseShift reads the parameter of timeShift, '10min', in ms.
func parseShift(params []string) (int64, error) {
	if len(params) == 0 {
		return 0, query.RunFault("Need amount of timeshift to perform timeshift")
	}
	text := params[0]
	if !quoted(text) {
		return 0, query.RunFault("Invalid timeshift parameter: eg '10min'")
	}

	n, unit, ok := amount(text)
	if !ok {
		return 0, query.RunFault("Invalid timeshift parameter: %s", text)
	}
	ms, ok := map[string]int64{"sec": second, "min": minute, "hr": hour, "day": day, "days": day, "week": week,
		"weeks": week}[unit]
	if !ok {
		// OpenTSDB's message has the closing quote too.
		return 0, query.RunFault("unknown time unit=%s'", unit)
	}

	if n == 0 {
		return 0, query.RunFault("timeshift <= 0")
	}
	return n * ms, nil
}
