package exp

import (
	"fmt"
	"math"
	"strings"

	"downpour/gateway/jackson"
)

// object is a JSON object whose values are not yet read.
type object map[string]jackson.Raw

// readObject reads an object; nil for null or nothing.
func readObject(raw jackson.Raw, what string) (object, error) {
	var o object
	if raw == nil {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want an object", what, shown(raw))
	}
	err := jackson.Unmarshal(raw, &o)
	return o, err
}

// shown returns the beginning of a value, for errors.
func shown(raw jackson.Raw) string {
	const most = 40
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}

// readList reads the elements of a list, which has at most limit of them. Without a list,
// or with null, it returns nil; an empty list stays one, because the answer repeats which
// of the two the request had.
func readList[T any](o object, key string, limit int, read func(jackson.Raw) (T, error)) ([]T, error) {
	raw := o[key]
	if raw == nil {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want a list", key, shown(raw))
	}

	list := []T{}
	r := jackson.NewReader(raw)
	t, err := r.Next()
	if err != nil {
		return nil, err
	}
	var fault error // without the place in the list
	err = r.EachElement(t, func(t jackson.Token) error {
		var element jackson.Raw
		var v T
		if len(list) == limit {
			fault = tooMany(key, limit)
		} else if fault = r.Decode(t, &element); fault == nil {
			v, fault = read(element)
		}
		list = append(list, v)
		return fault
	})
	if fault != nil {
		return nil, fault
	}
	return list, err
}

// scalar returns the token of a field; given is false for null and for nothing.
func (o object) scalar(key string) (t jackson.Token, given bool, err error) {
	if o[key] == nil {
		return t, false, nil
	}
	t, err = jackson.NewReader(o[key]).Next()
	return t, true, err
}

// text returns a field as text; numbers and flags count as their text. nil is null.
func (o object) text(key string) (*string, error) {
	t, given, err := o.scalar(key)
	if err != nil || !given {
		return nil, err
	}
	s, err := t.AsText()
	if err != nil {
		return nil, fmt.Errorf("Cannot deserialize %s out of %s, want text", key, shown(o[key]))
	}
	return &s, nil
}

// flag returns a field as true or false, otherwise if it is missing; null is false.
func (o object) flag(key string, otherwise bool) (bool, error) {
	if _, there := o[key]; !there {
		return otherwise, nil
	}
	t, _, err := o.scalar(key)
	if err != nil {
		return false, err
	}
	v, err := t.AsBool()
	if err != nil {
		return false, fmt.Errorf(
			"Cannot deserialize value of type `boolean` from %s: only \"true\" or \"false\" recognized", shown(o[key]))
	}
	return v, nil
}

// number returns a field as a double, 0 if it is missing or empty. NaN is a number, what is
// infinite is none.
func (o object) number(key string) (float64, error) {
	t, _, err := o.scalar(key)
	if err != nil {
		return 0, err
	}
	v, err := t.AsDouble()
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("Cannot deserialize value of type `double` from %s: not a valid double value",
			shown(o[key]))
	}
	return v, nil
}
