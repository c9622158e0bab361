package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	maxDecimals   = 9
	maxThresholds = 10
	maxTop        = 200 // lines
)

// What some fields may be. The page has the same lists, in static/js/units.js, thresholds.js,
// stats.js and board/fields.js of gateway/web.
var (
	units   = []string{"none", "bytes", "bits/s", "%", "s", "ms", "ops/s"}
	colours = []string{"green", "amber", "red", "blue"}
	ways    = []string{"last", "max", "avg"}
	legends = []string{"list", "table"}
)

var (
	asked = []string{"queries", "formulas"}
	axes  = slices.Concat(asked, []string{"unit", "rightUnit", "axis", "rightAxis", "thresholds", "top", "legend",
		"annotations"})
)

// typeFields are the fields that panels of a type have in addition to those of all. Of a type that is not
// here nothing is known.
var typeFields = map[string][]string{
	"lines":   axes,
	"stacked": axes,
	"bars":    axes,
	"heatmap": slices.Concat(asked, []string{"unit"}),
	"number":  slices.Concat(asked, []string{"unit", "rightUnit", "thresholds"}),
	"table":   slices.Concat(asked, []string{"unit", "rightUnit", "top"}),
	"text":    {"text"},
}

// checkFields checks the fields of a panel of a type.
func (o object) checkFields(kind string) error {
	for _, field := range typeFields[kind] {
		if err := o.checkField(field); err != nil {
			return err
		}
	}
	return nil
}

func (o object) checkField(field string) error {
	switch field {
	case "text":
		_, err := o.text(field, MaxBytes)
		return err
	case "queries":
		return o.checkQueries()
	case "formulas":
		return o.checkFormulas()
	case "unit", "rightUnit":
		return o.oneOf(field, units)
	case "legend":
		return o.oneOf(field, legends)
	case "axis", "rightAxis":
		return o.checkAxis(field)
	case "thresholds":
		return o.checkThresholds()
	case "top":
		return o.checkTop()
	case "annotations":
		return o.flag(field)
	}
	return nil
}

// oneOf checks a field that is one of some words, or missing.
func (o object) oneOf(field string, words []string) error {
	raw, ok := o[field]
	if !ok {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) != nil || !slices.Contains(words, word) {
		return fmt.Errorf("%s: got %.40s, want one of %s", field, raw, strings.Join(words, ", "))
	}
	return nil
}

// flag checks a field that is true or false, or missing.
func (o object) flag(field string) error {
	raw, ok := o[field]
	if ok && string(raw) != "true" && string(raw) != "false" {
		return fmt.Errorf("%s: got %.40s, want true or false", field, raw)
	}
	return nil
}

// checkAxis checks the limits of an axis and the decimals of its numbers: {"min", "max", "decimals"}. Each may be
// missing.
func (o object) checkAxis(field string) error {
	if _, ok := o[field]; !ok {
		return nil
	}
	var axis object
	if err := o.read(field, &axis, true); err != nil {
		return err
	}
	lowest, highest, decimals := math.Inf(-1), math.Inf(1), 0.0
	for name, to := range map[string]*float64{"min": &lowest, "max": &highest, "decimals": &decimals} {
		if err := axis.read(name, to, false); err != nil {
			return fmt.Errorf("%s.%w", field, err)
		}
	}
	if lowest >= highest {
		return fmt.Errorf("%s: got min %s and max %s, want a min below max", field, axis["min"], axis["max"])
	}
	if decimals != math.Trunc(decimals) || decimals < 0 || decimals > maxDecimals {
		return fmt.Errorf("%s.decimals: got %s, want 0 to %d", field, axis["decimals"], maxDecimals)
	}
	return nil
}

// checkThresholds checks thresholds: [{"value", "colour", "right"}].
func (o object) checkThresholds() error {
	thresholds, err := o.objects("thresholds", maxThresholds)
	if err != nil {
		return err
	}
	for i, t := range thresholds {
		var value float64
		if err := t.read("value", &value, true); err != nil {
			return fmt.Errorf("thresholds[%d].%w", i, err)
		}
		if _, ok := t["colour"]; !ok {
			return fmt.Errorf("thresholds[%d].colour: it is missing", i)
		}
		if err := t.oneOf("colour", colours); err != nil {
			return fmt.Errorf("thresholds[%d].%w", i, err)
		}
		if err := t.flag("right"); err != nil {
			return fmt.Errorf("thresholds[%d].%w", i, err)
		}
	}
	return nil
}

// checkTop checks which lines are drawn: {"n", "by"}.
func (o object) checkTop() error {
	if _, ok := o["top"]; !ok {
		return nil
	}
	var top object
	if err := o.read("top", &top, true); err != nil {
		return err
	}
	var n float64
	if err := top.read("n", &n, true); err != nil {
		return fmt.Errorf("top.%w", err)
	}
	if n != math.Trunc(n) || n < 1 || n > maxTop {
		return fmt.Errorf("top.n: got %s, want 1 to %d", top["n"], maxTop)
	}
	if _, ok := top["by"]; !ok {
		return fmt.Errorf("top.by: it is missing")
	}
	if err := top.oneOf("by", ways); err != nil {
		return fmt.Errorf("top.%w", err)
	}
	return nil
}
