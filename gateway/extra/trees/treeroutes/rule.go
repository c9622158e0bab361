package treeroutes

import (
	"errors"
	"net/http"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/trees/tree"
)

// rule handles /api/tree/rule: it reads, changes and deletes one rule.
// Source: TreeRpc.handleRule.
func (h *Handlers) rule(w http.ResponseWriter, r *http.Request) error {
	given, err := parseRule(w, r)
	if err != nil {
		return err
	}
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}

	switch method {
	case http.MethodGet:
		found, err := h.Forest.Rule(r.Context(), given)
		if err != nil {
			return err
		}
		return httpio.WriteJSON(w, r, http.StatusOK, found)
	case http.MethodPost, http.MethodPut:
		if err := h.mayChange(w, r); err != nil {
			return err
		}
		stored, err := h.Forest.PutRule(r.Context(), given, method == http.MethodPut)
		if err != nil {
			return err
		}
		return httpio.WriteJSON(w, r, http.StatusOK, stored)
	case http.MethodDelete:
		if err := h.mayChange(w, r); err != nil {
			return err
		}
		if err := h.Forest.DeleteRule(r.Context(), given); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return errVerb
}

// rules handles /api/tree/rules: it stores or replaces several rules, or deletes all.
// Source: TreeRpc.handleRules.
func (h *Handlers) rules(w http.ResponseWriter, r *http.Request) error {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return err
	}
	id, rules, err := parseRules(r, body)
	if err != nil {
		return err
	}
	method, err := httpio.Method(r)
	if err != nil {
		return err
	}
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodDelete:
	default:
		return errVerb
	}
	if err := h.mayChange(w, r); err != nil {
		return err
	}

	switch {
	case method == http.MethodDelete:
		err = h.Forest.DeleteRules(r.Context(), id)
	case len(rules) == 0:
		err = httpio.BadRequest("Missing tree rules")
	case method == http.MethodPut:
		err = h.Forest.ReplaceRules(r.Context(), rules)
	default:
		err = h.Forest.PutRules(r.Context(), rules)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// parseRules reads rules from a body, which must be of one tree, or the parameter treeid if
// there is no body.
func parseRules(r *http.Request, body []byte) (id int, rules []tree.Rule, err error) {
	if len(body) == 0 {
		id, err = treeID(r)
		return id, nil, err
	}

	var in []ruleBody
	if err := httpio.ParseJSON(body, &in); err != nil {
		return 0, nil, err
	}
	if len(in) == 0 {
		return 0, nil, httpio.BadRequest("Missing tree rules")
	}
	if len(in) > tree.MaxRules {
		return 0, nil, httpio.BadRequest("%d rules, want at most %d", len(in), tree.MaxRules)
	}
	for _, b := range in {
		rule, err := b.rule()
		if err != nil {
			return 0, nil, err
		}
		if rules = append(rules, rule); rule.TreeID != rules[0].TreeID {
			return 0, nil, httpio.BadRequest("All rules must belong to the same tree")
		}
	}
	return rules[0].TreeID, rules, nil
}

// ruleBody is a rule as clients send it. null is not given.
type ruleBody struct {
	Type          string `json:"type"`
	Field         string `json:"field"`
	Regex         string `json:"regex"`
	Separator     string `json:"separator"`
	Description   string `json:"description"`
	Notes         string `json:"notes"`
	CustomField   string `json:"customField"`
	DisplayFormat string `json:"displayFormat"`

	Level         int32 `json:"level"`
	Order         int32 `json:"order"`
	TreeID        int32 `json:"treeId"`
	RegexGroupIdx int32 `json:"regexGroupIdx"`
}

// rule returns the rule. Its errors are the messages that OpenTSDB gives with 500.
func (b *ruleBody) rule() (r tree.Rule, err error) {
	r = tree.Rule{Field: b.Field, Regex: b.Regex, Separator: b.Separator, Description: b.Description, Notes: b.Notes,
		CustomField: b.CustomField, DisplayFormat: b.DisplayFormat,
		Level: int(b.Level), Order: int(b.Order), TreeID: int(b.TreeID), RegexGroupIdx: int(b.RegexGroupIdx)}
	if b.Type != "" {
		if r.Type, err = tree.ParseType(b.Type); err != nil {
			return r, err
		}
	}
	if r.Level < 0 {
		return r, errors.New("Negative levels are not allowed")
	}
	return r, nil
}

// parseRule reads a rule from the body, or from the parameters if there is no body.
func parseRule(w http.ResponseWriter, r *http.Request) (rule tree.Rule, err error) {
	body, err := httpio.ReadBody(w, r)
	if err != nil {
		return rule, err
	}
	if len(body) > 0 {
		var in ruleBody
		if err := httpio.ParseJSON(body, &in); err != nil {
			return rule, err
		}
		return in.rule()
	}

	if rule.TreeID, err = requiredTreeID(r); err != nil {
		return rule, err
	}
	if text := httpio.OptionalValue(r, "type"); text != nil {
		if rule.Type, err = tree.ParseType(*text); err != nil {
			return rule, &httpio.Error{
				Code:    http.StatusBadRequest,
				Message: "Unable to parse the 'type' parameter",
				Details: err.Error(),
			}
		}
	}
	for name, to := range map[string]*string{"field": &rule.Field, "custom_field": &rule.CustomField,
		"regex": &rule.Regex, "separator": &rule.Separator,
		"description": &rule.Description, "notes": &rule.Notes, "display_format": &rule.DisplayFormat} {
		*to = httpio.LastValue(r, name)
	}
	if text := httpio.OptionalValue(r, "regex_group_idx"); text != nil {
		if rule.RegexGroupIdx, err = number(*text, "Unable to parse the 'regex_group_idx' parameter"); err != nil {
			return rule, err
		}
	}
	if rule.Level, err = requiredNumber(r, "level"); err != nil {
		return rule, err
	}
	rule.Order, err = requiredNumber(r, "order")
	return rule, err
}

func requiredNumber(r *http.Request, name string) (int, error) {
	text, err := httpio.RequiredValue(r, name)
	if err != nil {
		return 0, err
	}
	return number(text, "Unable to parse the '"+name+"' parameter")
}
