package query

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// fillScalar is a fill policy that OpenTSDB parses and cannot run. Source: FillPolicy.
const fillScalar scanplan.Fill = "scalar"

// parseDownsample parses interval-function[-fill]. It does not set Zone, Count and Unit;
// resolveDownsample does, and refuses the fill policy scalar. Source: DownsamplingSpecification.
func parseDownsample(text string) (*scanplan.Downsample, error) {
	parts := javaSplit(text, "-")
	switch {
	case len(parts) < 2:
		return nil, fmt.Errorf("Invalid downsampling specifier '%s': must provide at least interval and function", text)
	case len(parts) > 3:
		return nil, fmt.Errorf(
			"Invalid downsampling specifier '%s': must consist of interval, function, and optional fill policy", text)
	case parts[0] == "":
		return nil, fmt.Errorf("Invalid downsampling specifier '%s': the interval is missing", text)
	}

	d := &scanplan.Downsample{Function: scanplan.Aggregator(parts[1]), Fill: scanplan.FillNone}
	if err := readInterval(d, parts[0]); err != nil {
		return nil, err
	}
	if _, ok := aggregate.Lookup(d.Function); !ok {
		return nil, fmt.Errorf("No such downsampling function: %s", parts[1])
	}
	if d.Function == "none" {
		return nil, errors.New("cannot use the NONE aggregator for downsampling")
	}

	if len(parts) < 3 {
		return d, nil
	}
	d.Fill = scanplan.Fill(strings.ToLower(parts[2]))
	if d.Fill == fillScalar || slices.Contains(scanplan.Fills, d.Fill) {
		return d, nil
	}
	return nil, fmt.Errorf("Unrecognized fill policy: %s", parts[2])
}

// readInterval parses the interval, "all" included, and the c of calendar buckets.
func readInterval(d *scanplan.Downsample, text string) (err error) {
	// As in OpenTSDB, "all" may be anywhere: 0all, 1all.
	if strings.Contains(text, "all") {
		d.All = true
		return nil
	}
	text, d.Calendar = strings.CutSuffix(text, "c")
	d.Interval, err = ParseDuration(text)
	return err
}

// splitInterval sets Count and Unit from the interval as written. The bounds of fixed
// buckets need neither, so text that does not split is accepted there; calendar buckets
// fail when run. Source: DateTime.getDurationInterval, getDurationUnits.
func splitInterval(d *scanplan.Downsample, text string) error {
	if d.All {
		return nil
	}

	interval := javaSplit(text, "-")[0]
	if d.Calendar {
		interval = strings.TrimSuffix(interval, "c")
	}

	digits := leadingDigits(interval)
	n, err := strconv.Atoi(digits)
	switch unit := strings.ToLower(interval[len(digits):]); {
	case strings.Contains(interval, "."):
		err = errors.New("Floating point intervals are not supported")
	case err != nil || n > math.MaxInt32: // an int in Java
		err = errors.New("Invalid duration (number): " + interval)
	case unitMS[unit] != 0:
		d.Count, d.Unit = n, unit
		return nil
	default:
		err = errors.New("Invalid units in the duration: " + unit)
	}

	if d.Calendar {
		return err
	}
	return nil
}

// javaSplit splits as Java's String.split does: empty parts at the end are dropped, and a
// text of separators alone gives no parts.
func javaSplit(s, sep string) []string {
	if s == "" { // Java gives back a text without a separator, even an empty one
		return []string{""}
	}
	parts := strings.Split(s, sep)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
