package exp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// object is a JSON object whose values are not read yet. Its keys are compared exactly,
// and of equal ones the last counts, as with Jackson, OpenTSDB's JSON library.
type object map[string]json.RawMessage

// readObject reads an object; nil for null or nothing.
func readObject(raw json.RawMessage, what string) (object, error) {
	var o object
	if isNull(raw) {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want an object", what, shown(raw))
	}
	err := json.Unmarshal(raw, &o)
	return o, err
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// shown returns the beginning of a value, for errors.
func shown(raw json.RawMessage) string {
	const most = 40
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}

// readList reads the elements of a list, which has at most limit of them. Without a list,
// or with null, it returns nil; an empty list stays one, because the answer repeats which
// of the two the request had.
func readList[T any](o object, key string, limit int, read func(json.RawMessage) (T, error)) ([]T, error) {
	raw := o[key]
	if isNull(raw) {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want a list", key, shown(raw))
	}

	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	list := []T{}
	for d.More() {
		if len(list) == limit {
			return nil, tooMany(key, limit)
		}
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return nil, err
		}
		v, err := read(element)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// text returns a field as text; numbers and flags count as their text. nil is null.
func (o object) text(key string) (*string, error) {
	raw := o[key]
	if isNull(raw) {
		return nil, nil
	}
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return &s, err
	case '{', '[':
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want text", key, shown(raw))
	}
	s := string(raw)
	return &s, nil
}

// flag returns a field as true or false, otherwise if it is missing.
// Source: StdDeserializer._parseBooleanPrimitive.
func (o object) flag(key string, otherwise bool) (bool, error) {
	raw := o[key]
	if len(raw) == 0 {
		return otherwise, nil
	}
	switch text := strings.Trim(string(raw), `"`); {
	case text == "true" || raw[0] == '"' && strings.TrimSpace(text) == "True":
		return true, nil
	case text == "false" || text == "null" || raw[0] == '"' && (text == "" || text == "False"):
		return false, nil
	case raw[0] != '"' && !strings.ContainsAny(text, ".eE{["): // an integer
		return text != "0", nil
	}
	return false, fmt.Errorf("Cannot deserialize value of type `boolean` from %s: only \"true\" or \"false\" recognized", shown(raw))
}

// number returns a field as a double, 0 if it is missing or empty. "NaN" is a number.
func (o object) number(key string) (float64, error) {
	text, err := o.text(key)
	if err != nil || text == nil {
		return 0, err
	}
	switch s := strings.TrimSpace(*text); s {
	case "NaN":
		return math.NaN(), nil
	case "":
		return 0, nil
	default:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(v, 0) {
			return 0, fmt.Errorf("Cannot deserialize value of type `double` from %s: not a valid double value", shown(o[key]))
		}
		return v, nil
	}
}
