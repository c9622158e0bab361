package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What variables may have at most.
const (
	maxVariables = 20
	maxName      = 256  // characters of a metric or a tag key
	maxFilters   = 8    // tags that filter a variable's values
	maxFilter    = 4096 // characters of the filter of one tag
	maxDefaults  = 1000 // values that are chosen at first
	maxValue     = 1024 // characters of one

	allValues = "*"
)

var (
	variableForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)
	useForm      = regexp.MustCompile(`^\$(?:\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))$`)
	shiftForm    = regexp.MustCompile(`^[1-9][0-9]{0,3}[mhdwny]$`)
)

// checkVariables checks the variables: the values of a tag, which the page offers. It returns
// their names.
func (o object) checkVariables() (names map[string]bool, err error) {
	if err := o.notNull("variables"); err != nil {
		return nil, err
	}
	variables, err := o.objects("variables", maxVariables)
	if err != nil {
		return nil, err
	}

	names, wanted := map[string]bool{}, map[string][]string{}
	for i, v := range variables {
		name, others, err := v.checkVariable()
		if err != nil {
			return nil, fmt.Errorf("variables[%d].%w", i, err)
		}
		if names[name] {
			return nil, fmt.Errorf("variables[%d].name: %s is the name of another variable", i, name)
		}
		names[name], wanted[name] = true, others
	}

	for i, v := range variables {
		name, _ := v.nameOfVariable()
		for _, other := range wanted[name] {
			if !names[other] {
				return nil, fmt.Errorf("variables[%d].filter: $%.40s is no variable", i, other)
			}
		}
	}
	return names, checkOrder(wanted)
}

// notNull returns an error for a field that is null: the page takes none for one that is missing.
func (o object) notNull(fields ...string) error {
	for _, field := range fields {
		if string(o[field]) == "null" {
			return fmt.Errorf("%s: %w", field, errNull)
		}
	}
	return nil
}

// checkOrder returns an error if variables filter each other in a circle.
func checkOrder(wanted map[string][]string) error {
	for {
		var ready []string
		for name, others := range wanted {
			if !slices.ContainsFunc(others, func(o string) bool { _, waits := wanted[o]; return waits }) {
				ready = append(ready, name)
			}
		}
		for _, name := range ready {
			delete(wanted, name)
		}
		if len(wanted) == 0 {
			return nil
		}
		if len(ready) == 0 {
			var circle []string
			for name := range wanted {
				circle = append(circle, name)
			}
			slices.Sort(circle)
			return fmt.Errorf("variables: the filters of %s go in a circle", strings.Join(circle, ", "))
		}
	}
}

func (o object) nameOfVariable() (name string, err error) {
	if err := o.read("name", &name, true); err != nil {
		return "", err
	}
	if !variableForm.MatchString(name) {
		return "", fmt.Errorf("name: got %.40q, want 1 to 32 letters, digits or _, the first a letter", name)
	}
	return name, nil
}

// checkVariable checks one variable and returns its name, and those of the variables by which
// its values are filtered.
func (o object) checkVariable() (name string, others []string, err error) {
	if name, err = o.nameOfVariable(); err != nil {
		return "", nil, err
	}
	if err = o.notNull("label", "multi", "all", "filter"); err != nil {
		return "", nil, err
	}
	if _, err = o.text("label", maxTitle); err != nil {
		return "", nil, err
	}
	var key string
	for field, to := range map[string]*string{"metric": new(string), "tagk": &key} {
		if err = o.read(field, to, true); err != nil {
			return "", nil, err
		}
		if n := utf8.RuneCountInString(*to); n < 1 || n > maxName {
			return "", nil, fmt.Errorf("%s: got %d characters, want 1 to %d", field, n, maxName)
		}
	}

	var multi, all bool
	for field, to := range map[string]*bool{"multi": &multi, "all": &all} {
		if err = o.read(field, to, false); err != nil {
			return "", nil, err
		}
	}
	if others, err = o.checkFilter(key); err != nil {
		return "", nil, err
	}
	return name, others, o.checkDefault(multi, all)
}

// checkFilter checks the filter of a variable whose values are those of a tag key: values and
// variables by tag key, with | between them. It returns the names of the variables.
func (o object) checkFilter(key string) (others []string, err error) {
	var filter object
	if err := o.read("filter", &filter, false); err != nil {
		return nil, err
	}
	if len(filter) > maxFilters {
		return nil, fmt.Errorf("filter: got %d tags, want at most %d", len(filter), maxFilters)
	}
	for tagk := range filter {
		text, err := filter.text(tagk, maxFilter)
		if err != nil {
			return nil, fmt.Errorf("filter.%w", err)
		}
		if n := utf8.RuneCountInString(tagk); n < 1 || n > maxName || tagk == key {
			return nil, fmt.Errorf("filter: got tag key %.40q, want another than that of the variable, of 1 to "+
				"%d characters", tagk, maxName)
		}
		for part := range strings.SplitSeq(text, "|") {
			use := useForm.FindStringSubmatch(part)
			if part == "" || use == nil && strings.Contains(part, "$") {
				return nil, fmt.Errorf("filter.%.40s: got %.80q, want values or variables with | between them",
					tagk, text)
			}
			if use != nil {
				others = append(others, use[1]+use[2])
			}
		}
	}
	return others, nil
}

// checkDefault checks what is chosen at first: one value, or a list of them.
func (o object) checkDefault(multi, all bool) error {
	raw, ok := o["default"]
	if !ok {
		return nil
	}
	var values []string
	var one string
	if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
		values = []string{one}
	} else if json.Unmarshal(raw, &values) != nil || values == nil || len(values) > maxDefaults {
		return fmt.Errorf("default: want a value, or a list of at most %d", maxDefaults)
	}
	for _, v := range values {
		if n := utf8.RuneCountInString(v); n < 1 || n > maxValue {
			return fmt.Errorf("default: got a value of %d characters, want 1 to %d", n, maxValue)
		}
	}
	if len(values) > 1 && !multi {
		return fmt.Errorf("default: got %d values, want one where multi is not true", len(values))
	}
	if slices.Contains(values, allValues) && !all {
		return errors.New("default: got *, want all to be true")
	}
	return nil
}

// checkUses checks what a panel wants: to be there for each value of a variable, and to be
// compared with a time before.
func (o object) checkUses(variables map[string]bool) error {
	var repeat, shift string
	if err := errors.Join(o.read("repeat", &repeat, false), o.read("shift", &shift, false)); err != nil {
		return err
	}
	if _, ok := o["repeat"]; ok && !variables[repeat] {
		return fmt.Errorf("repeat: %.40q is no variable", repeat)
	}
	if _, ok := o["shift"]; ok && !shiftForm.MatchString(shift) {
		return fmt.Errorf("shift: got %.40q, want a time as 1d or 1w", shift)
	}
	return nil
}
