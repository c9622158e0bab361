package httpio

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Method returns the request's verb, or the one that a GET names in the
// parameter method_override.
// Source: HttpQuery.getAPIMethod.
func Method(r *http.Request) (string, error) {
	values := r.URL.Query()
	if r.Method != http.MethodGet || !values.Has("method_override") {
		return r.Method, nil
	}

	switch method := strings.ToUpper(LastValue(r, "method_override")); method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete:
		return method, nil
	case "":
		return "", &Error{Code: http.StatusMethodNotAllowed, Message: "Missing method override value"}
	}
	return "", &Error{Code: http.StatusMethodNotAllowed, Message: "Unknown or unsupported method override value"}
}

// LastValue returns a parameter's value, the last one if it is repeated, or "".
func LastValue(r *http.Request, name string) string {
	if v := r.URL.Query()[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// RequiredValue returns a parameter's value; the error refuses a request in
// which it is missing or empty.
func RequiredValue(r *http.Request, name string) (string, error) {
	if v := LastValue(r, name); v != "" {
		return v, nil
	}
	return "", MissingParameter(name)
}

// OptionalValue returns a parameter's value, or nil if the request does not have
// the parameter.
func OptionalValue(r *http.Request, name string) *string {
	if !r.URL.Query().Has(name) {
		return nil
	}
	v := LastValue(r, name)
	return &v
}

// IntValue returns a parameter as a number of 32 bits, or a default if the
// request does not have the parameter.
func IntValue(r *http.Request, name string, otherwise int) (int, error) {
	if !r.URL.Query().Has(name) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(LastValue(r, name), 10, 32)
	if err != nil {
		return 0, BadRequest("Unable to convert '%s' to a valid number", name)
	}
	return int(n), nil
}

// ParseJSON decodes a JSON body. An empty body is an error.
func ParseJSON(body []byte, into any) error {
	if len(body) == 0 {
		return &Error{Code: http.StatusBadRequest, Message: "Missing message content",
			Details: "Supply valid JSON formatted data in the body of your request"}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return UnreadableJSON(err)
	}
	return nil
}

// Scalar is the text of a JSON string, number or boolean: clients send values
// and times as either strings or numbers. JSON's null is "".
type Scalar string

// UnmarshalJSON keeps the text.
func (s *Scalar) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(s))
	case '{', '[':
		return errors.New("want a string or a number, got an object or a list")
	case 'n': // null is as if it were not given
		return nil
	}
	*s = Scalar(b)
	return nil
}

// Integer is a JSON integer, sent as a number or as a string. JSON's null leaves
// it 0.
type Integer int64

// UnmarshalJSON reads either spelling and cuts a fraction off.
func (i *Integer) UnmarshalJSON(b []byte) error {
	var s Scalar
	if err := s.UnmarshalJSON(b); err != nil || s == "" {
		return err
	}

	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		// A fraction or an exponent, as in 12.9 or 1e3.
		f, floatErr := strconv.ParseFloat(string(s), 64)
		if floatErr != nil || !(f > -1<<63 && f < 1<<63) {
			return err
		}
		n = int64(f)
	}
	*i = Integer(n)
	return nil
}

// Pointer returns the number as the packages of the metadata take it; nil stays
// nil.
func (i *Integer) Pointer() *int64 { return (*int64)(i) }

// Texts returns a map's scalars as strings; nil stays nil.
func Texts(in map[string]Scalar) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}
