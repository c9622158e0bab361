package jackson

import (
	"fmt"
	"math"
	"strconv"

	"downpour/gateway/java"
)

// unlike is the error of a token of a wrong kind.
func (t Token) unlike(want string) error { return fmt.Errorf("%s where %s is wanted", t, want) }

// AsText converts a scalar to text; null is "".
func (t Token) AsText() (string, error) {
	switch t.Kind {
	case Null:
		return "", nil
	case Text, Bool, Integer, Float:
		return t.Text, nil
	}
	return "", t.unlike("text")
}

// AsBool converts a flag: true, false, an integer, or text.
// Source: StdDeserializer._parseBooleanPrimitive.
func (t Token) AsBool() (bool, error) {
	switch t.Kind {
	case Null:
		return false, nil
	case Bool:
		return t.Text == "true", nil
	case Integer:
		return t.Text != "0", nil // Jackson compares the text: -0 is true
	case Text:
		switch java.Trim(t.Text) {
		case "true", "True":
			return true, nil
		case "false", "False", "", "null":
			return false, nil
		}
	}
	return false, t.unlike("true or false")
}

// AsLong converts an integer of 64 bits: a number, whose fraction is cut off, or text.
// Source: StdDeserializer._parseLongPrimitive.
func (t Token) AsLong() (int64, error) { return t.integer(64) }

// AsInt converts an integer of 32 bits.
func (t Token) AsInt() (int32, error) {
	n, err := t.integer(32)
	return int32(n), err
}

func (t Token) integer(bits int) (n int64, err error) {
	want := "an integer of " + strconv.Itoa(bits) + " bits"
	switch text := java.Trim(t.Text); {
	case t.Kind == Null, t.Kind == Text && (text == "" || text == "null"):
		return 0, nil
	case t.Kind == Float:
		return t.truncate(bits, want)
	case t.Kind == Integer && bits == 64, t.Kind == Text && bits == 64:
		n, err = java.ParseLong(text)
	case t.Kind == Integer, t.Kind == Text:
		var short int32
		short, err = java.ParseInt(text)
		n = int64(short)
	default:
		return 0, t.unlike(want)
	}
	if err != nil {
		return 0, t.unlike(want)
	}
	return n, nil
}

// truncate cuts off the fraction of a number; of NaN it leaves 0.
func (t Token) truncate(bits int, want string) (int64, error) {
	x, err := t.AsDouble()
	limit := math.Ldexp(1, bits-1)
	switch {
	case err != nil:
		return 0, err
	case math.IsNaN(x):
		return 0, nil
	case bits == 32 && (x < -limit || x > limit-1), x < -limit || x > limit:
		return 0, t.unlike(want)
	case x == limit: // 2^63 as a double; Java's cast saturates
		return math.MaxInt64, nil
	}
	return int64(x), nil
}

// AsDouble converts a number. Source: StdDeserializer._parseDoublePrimitive.
func (t Token) AsDouble() (float64, error) { return floating(t, java.ParseDouble) }

// AsFloat converts a number of 32 bits.
func (t Token) AsFloat() (float32, error) { return floating(t, java.ParseFloat) }

func floating[T float32 | float64](t Token, parse func(string) (T, error)) (T, error) {
	text := java.Trim(t.Text)
	switch {
	case t.Kind == Null, t.Kind == Text && (text == "" || text == "null"):
		return 0, nil
	case text == "INF" || text == "+INF" && t.Kind == Float:
		return T(math.Inf(1)), nil
	case text == "-INF":
		return T(math.Inf(-1)), nil
	case t.Kind != Integer && t.Kind != Float && t.Kind != Text:
		return 0, t.unlike("a number")
	}
	v, err := parse(text)
	if err != nil {
		return 0, t.unlike("a number")
	}
	return v, nil
}
