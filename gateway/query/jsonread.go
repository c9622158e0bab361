package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of a body.
const maxDepth = 32

// jsonReader reads a body token by token and builds no tree. The order of the text matters:
// in some places the later one of two keys decides. Values are converted as OpenTSDB's JSON library,
// Jackson, does by default.
type jsonReader struct {
	dec   *json.Decoder
	depth int
}

func newJSONReader(body []byte) *jsonReader {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return &jsonReader{dec: dec}
}

// next returns the next token, nil for null.
func (r *jsonReader) next() (json.Token, error) {
	t, err := r.dec.Token()
	switch t {
	case json.Delim('{'), json.Delim('['):
		if r.depth++; r.depth > maxDepth {
			return nil, fmt.Errorf("nested deeper than %d", maxDepth)
		}
	case json.Delim('}'), json.Delim(']'):
		r.depth--
	}
	return t, err
}

// object calls f for each field of the object that begins with t. f must read all of the
// value.
func (r *jsonReader) object(t json.Token, f func(key string, value json.Token) error) error {
	if t != json.Delim('{') {
		return fmt.Errorf("%s where an object is wanted", describe(t))
	}
	for {
		key, err := r.next()
		if err != nil || key == json.Delim('}') {
			return err
		}
		value, err := r.next()
		if err != nil {
			return err
		}
		if err := f(key.(string), value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
}

// list calls f for each element of the array that begins with t. f must read all of the
// element.
func (r *jsonReader) list(t json.Token, f func(json.Token) error) error {
	if t != json.Delim('[') {
		return fmt.Errorf("%s where a list is wanted", describe(t))
	}
	for i := 0; ; i++ {
		t, err := r.next()
		if err != nil || t == json.Delim(']') {
			return err
		}
		if err := f(t); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
}

// skip reads the value that begins with t and ignores it.
func (r *jsonReader) skip(t json.Token) error {
	if t != json.Delim('{') && t != json.Delim('[') {
		return nil
	}
	for depth := r.depth; r.depth >= depth; { // r.depth counts the bracket t already
		if _, err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// describe returns a token as errors show it.
func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return string(rune(t))
	case string:
		return strconv.Quote(t)
	}
	return fmt.Sprint(t)
}

// toString converts a scalar to text; null is "".
func toString(t json.Token) (string, error) {
	switch t := t.(type) {
	case nil:
		return "", nil
	case string:
		return t, nil
	case json.Number:
		return t.String(), nil
	case bool:
		return strconv.FormatBool(t), nil
	}
	return "", fmt.Errorf("%s where text is wanted", describe(t))
}

// toBool converts a flag: true, false, an integer, or text.
// Source: StdDeserializer._parseBooleanPrimitive.
func toBool(t json.Token) (bool, error) {
	switch t := t.(type) {
	case nil:
		return false, nil
	case bool:
		return t, nil
	case json.Number:
		if isInteger(t) {
			return t.String() != "0", nil // Jackson compares the text: -0 is true
		}
	case string:
		switch strings.TrimSpace(t) {
		case "true", "True":
			return true, nil
		case "false", "False", "", "null":
			return false, nil
		}
	}
	return false, fmt.Errorf("%s where true or false is wanted", describe(t))
}

func isInteger(n json.Number) bool { return !strings.ContainsAny(n.String(), ".eE") }

// toLong converts an integer: a number, whose fraction is cut off, or text.
// Source: StdDeserializer._parseLongPrimitive.
func toLong(t json.Token) (int64, error) {
	switch t := t.(type) {
	case nil:
		return 0, nil
	case json.Number:
		if isInteger(t) {
			return strconv.ParseInt(t.String(), 10, 64)
		}
		return truncate(t)
	case string:
		s := strings.TrimSpace(t)
		if s == "" || s == "null" {
			return 0, nil
		}
		return strconv.ParseInt(s, 10, 64)
	}
	return 0, fmt.Errorf("%s where an integer is wanted", describe(t))
}

// toInt converts an integer of 32 bits.
func toInt(t json.Token) (int64, error) {
	n, err := toLong(t)
	if err == nil && n != int64(int32(n)) {
		err = fmt.Errorf("%d is beyond an integer of 32 bits", n)
	}
	return n, err
}

// truncate cuts off the fraction of a number.
func truncate(n json.Number) (int64, error) {
	x, err := n.Float64()
	switch {
	case err != nil:
		return 0, err
	case x < math.MinInt64 || x > math.MaxInt64:
		return 0, fmt.Errorf("%s is beyond an integer of 64 bits", n)
	case x == math.MaxInt64: // 2^63 as a double; Java's cast saturates
		return math.MaxInt64, nil
	}
	return int64(x), nil
}

// toFloat converts a percentile.
func toFloat(t json.Token) (float32, error) {
	text, err := toString(t)
	// Text may be a flag or null, a percentile may not.
	if _, flag := t.(bool); err == nil && (flag || t == nil) {
		err = errors.New(describe(t) + " where a number is wanted")
	}
	if err != nil {
		return 0, err
	}

	x, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
	return float32(x), err
}

// field converts a scalar with one of the functions above and stores it in place.
func field[T any](place *T, read func(json.Token) (T, error), t json.Token) (err error) {
	*place, err = read(t)
	return err
}
