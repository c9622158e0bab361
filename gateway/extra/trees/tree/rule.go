package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"downpour/encoding"
)

// Type says which name of a series a rule reads. It is empty for a rule that says nothing.
type Type string

// The types of rules.
const (
	Metric       Type = "METRIC"        // the metric
	MetricCustom Type = "METRIC_CUSTOM" // a custom field of the metric's UIDMeta
	TagK         Type = "TAGK"          // the value of a tag
	TagKCustom   Type = "TAGK_CUSTOM"   // a custom field of a tag key's UIDMeta
	TagVCustom   Type = "TAGV_CUSTOM"   // a custom field of a tag value's UIDMeta
)

// ParseType reads a type in upper or lower case. Its errors are OpenTSDB's.
// Source: TreeRule.stringToType.
func ParseType(text string) (Type, error) {
	if text == "" {
		return "", errors.New("Rule type was empty")
	}
	switch t := Type(strings.ToUpper(text)); t {
	case Metric, MetricCustom, TagK, TagKCustom, TagVCustom:
		return t, nil
	}
	return "", errors.New("Unrecognized rule type")
}

// custom reports whether rules of a type read a custom field.
func (t Type) custom() bool { return t == MetricCustom || t == TagKCustom || t == TagVCustom }

// Rule says how a name of a series becomes the name of a branch. Rules are applied by
// ascending level; of one level the first that yields a name makes the branch.
type Rule struct {
	Type        Type   `json:"type"`
	Field       string `json:"field"`     // the tag key; for TAGV_CUSTOM the tag value
	Regex       string `json:"regex"`     // whose group RegexGroupIdx+1 is the name
	Separator   string `json:"separator"` // a regular expression that cuts the value into several names
	Description string `json:"description"`
	Notes       string `json:"notes"`
	Level       int    `json:"level"`
	Order       int    `json:"order"`
	TreeID      int    `json:"treeId"`
	CustomField string `json:"customField"` // the key of the custom field
	// RegexGroupIdx counts groups from 0.
	RegexGroupIdx int `json:"regexGroupIdx"`
	// DisplayFormat is the name to show, with {ovalue}, {value}, {tsuid} and {tag_name};
	// empty for the value alone.
	DisplayFormat string `json:"displayFormat"`
}

// String is a rule in OpenTSDB's messages: [1:0:2:TAGK] is tree, level, order, type.
func (r *Rule) String() string {
	t := r.Type
	if t == "" {
		t = "null"
	}
	return fmt.Sprintf("[%d:%d:%d:%s]", r.TreeID, r.Level, r.Order, t)
}

// ParseRule reads the value of a rule's cell.
func ParseRule(value []byte) (r Rule, err error) {
	if err = json.Unmarshal(value, &r); err != nil {
		err = fmt.Errorf("cannot parse a tree's rule of %d bytes: %w", len(value), err)
	}
	return r, err
}

// AppendStored appends the value of a rule's cell. Source: TreeRule, by Jackson.
func (r *Rule) AppendStored(dst []byte) []byte {
	dst = encoding.AppendJSONField(append(dst, '{'), "type", string(r.Type))
	dst = encoding.AppendJSONField(append(dst, ','), "field", r.Field)
	dst = encoding.AppendJSONField(append(dst, ','), "regex", r.Regex)
	dst = encoding.AppendJSONField(append(dst, ','), "separator", r.Separator)
	dst = encoding.AppendJSONField(append(dst, ','), "description", r.Description)
	dst = encoding.AppendJSONField(append(dst, ','), "notes", r.Notes)
	dst = strconv.AppendInt(append(dst, `,"level":`...), int64(r.Level), 10)
	dst = strconv.AppendInt(append(dst, `,"order":`...), int64(r.Order), 10)
	dst = strconv.AppendInt(append(dst, `,"treeId":`...), int64(r.TreeID), 10)
	dst = encoding.AppendJSONField(append(dst, ','), "customField", r.CustomField)
	dst = strconv.AppendInt(append(dst, `,"regexGroupIdx":`...), int64(r.RegexGroupIdx), 10)
	dst = encoding.AppendJSONField(append(dst, ','), "displayFormat", r.DisplayFormat)
	return append(dst, '}')
}

// Empty reports whether a rule that a client sends says nothing but its tree.
// Source: TreeRule.syncToStorage.
func (r *Rule) Empty() bool { return *r == Rule{TreeID: r.TreeID} }

// Merge returns a stored rule, changed by the fields that given has. With overwrite it
// returns given as it is.
// Source: TreeRule.copyChanges.
func (r Rule) Merge(given Rule, overwrite bool) Rule {
	if overwrite {
		return given
	}

	for _, f := range []struct{ given, to *string }{
		{(*string)(&given.Type), (*string)(&r.Type)}, {&given.Field, &r.Field}, {&given.CustomField, &r.CustomField},
		{&given.Regex, &r.Regex}, {&given.Separator, &r.Separator}, {&given.Description, &r.Description},
		{&given.Notes, &r.Notes}, {&given.DisplayFormat, &r.DisplayFormat},
	} {
		if *f.given != "" {
			*f.to = *f.given
		}
	}
	// 0 counts as not given, so only an overwrite sets it back.
	if given.RegexGroupIdx != 0 {
		r.RegexGroupIdx = given.RegexGroupIdx
	}
	return r
}

// CheckPlace returns OpenTSDB's error for a rule whose tree id, level or order no rule can have.
func (r *Rule) CheckPlace() error {
	switch err := CheckID(r.TreeID); {
	case err != nil:
		return err
	case r.Level < 0:
		return errors.New("Negative levels are not allowed")
	case r.Order < 0:
		return errors.New("Invalid rule order")
	}
	return nil
}

// Validate returns why a rule cannot be applied, in OpenTSDB's words where it has some.
// Source: TreeRule.validateRule.
func (r *Rule) Validate() error {
	if r.Type == "" {
		return errors.New("Missing rule type")
	}
	if r.Type != Metric && r.Field == "" {
		return fmt.Errorf("Missing field name required for %s rule", r.Type)
	}
	if r.Type.custom() && r.CustomField == "" {
		return fmt.Errorf("Missing custom field name required for %s rule", r.Type)
	}
	if r.RegexGroupIdx < 0 {
		return errors.New("Invalid regex group index. Cannot be less than 0")
	}

	for _, f := range []struct {
		field, text string
		most        int
	}{
		{"field", r.Field, MaxText},
		{"regex", r.Regex, MaxText},
		{"separator", r.Separator, MaxText},
		{"customField", r.CustomField, MaxText},
		{"displayFormat", r.DisplayFormat, MaxText},
		{"description", r.Description, MaxNotes},
		{"notes", r.Notes, MaxNotes},
	} {
		if err := checkLength(f.field, f.text, f.most); err != nil {
			return err
		}
	}
	_, err := compileRule(r)
	return err
}
