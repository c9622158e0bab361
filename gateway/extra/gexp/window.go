package gexp

import (
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/query"
)

// window is over which points a moving average reaches back.
type window struct {
	points int   // the number of points, 0 if the window is a time
	ms     int64 // the time
}

// movingAverage averages the last points, or those of a time, at each point of the query's
// times. The result is 0 until the window was full once. Source: MovingAverage.
func movingAverage(ev *evaluation, args [][]value, params []string) ([]value, error) {
	w, err := parseWindow(params)
	if err != nil {
		return nil, err
	}
	all, err := ev.finishAll(args)
	if err != nil {
		return nil, err
	}

	for i := range all {
		from := Inside(&all[i].Points, ev.Start, ev.End)
		out, err := ev.newPoints(from.Len())
		if err != nil {
			return nil, err
		}
		if err := ev.average(w, &from, &out); err != nil {
			return nil, err
		}
		all[i].Points, all[i].owned = out, true
	}
	return all, nil
}

// average appends the moving average of each point.
func (ev *evaluation) average(w window, p, out *encoding.Points) error {
	steps, numbers := 0, 0
	for i := range p.Len() {
		t, v := p.At(i)
		if !isNaN(v) {
			numbers++
		}
		if w.points > 0 && numbers < w.points || w.points == 0 && t-p.Time[0] < w.ms {
			// The points do not reach back far enough to fill the window.
			out.Append(t, encoding.FloatValue(0))
			continue
		}

		// The order of the additions decides about the last bit: OpenTSDB goes from the
		// latest point to the earliest.
		sum, count, full := 0.0, 0, false
		for k := i; k >= 0 && !full; k-- {
			steps++
			if err := ev.check(steps); err != nil {
				return err
			}
			earlier, v := p.At(k)
			// The point that completes a time is not part of the window.
			if full = w.points == 0 && t-earlier >= w.ms; full || isNaN(v) {
				continue
			}
			sum += v.Double()
			count++
			full = count == w.points
		}

		mean := 0.0
		if full && count > 0 {
			mean = sum / float64(count)
		}
		out.Append(t, encoding.FloatValue(mean))
	}
	return nil
}

func isNaN(v encoding.Value) bool { return v.Float && v.Double() != v.Double() }

// parseWindow reads the parameter of movingAverage. Source: MovingAverage.evaluate and
// parseParam.
//
//	10       points
//	'5min'   a time: s sec, m min, h hr hour, d day
func parseWindow(params []string) (w window, err error) {
	if len(params) == 0 {
		return w, query.RunFault("Missing moving average window size")
	}

	text := params[0]
	if !quoted(text) {
		// ParseInt alone would take a sign.
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || strings.Trim(text, "0123456789") != "" {
			return w, query.RunFault("Unparseable window size: %s", text)
		}
		w.points = int(n)
	} else {
		n, unit, ok := amount(text)
		if !ok {
			return w, query.RunFault("Invalid moving window parameter: %s", text)
		}
		ms, ok := map[string]int64{"s": second, "sec": second, "m": minute, "min": minute, "h": hour, "hr": hour,
			"hour": hour, "d": day, "day": day}[unit]
		if !ok {
			return w, query.RunFault("Unknown time unit=%s in window=%s", unit, text)
		}
		w.ms = n * ms
	}

	if w.points == 0 && w.ms == 0 {
		return w, query.RunFault("Moving average window must be an integer greater than zero")
	}
	return w, nil
}

// Units in ms.
const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day
)

func quoted(text string) bool {
	return len(text) >= 2 && strings.HasPrefix(text, "'") && strings.HasSuffix(text, "'")
}

// amount cuts '5min' into its number, which fits 32 bits, and its unit.
func amount(text string) (n int64, unit string, ok bool) {
	inner := text[1 : len(text)-1]
	unit = strings.TrimLeft(inner, "0123456789")
	n, err := strconv.ParseInt(inner[:len(inner)-len(unit)], 10, 32)
	return n, unit, err == nil
}
