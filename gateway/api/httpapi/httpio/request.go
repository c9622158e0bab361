package httpio

import (
	"errors"
	"net/http"
	"strings"

	"downpour/gateway/jackson"
	"downpour/gateway/java"
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
	n, err := java.ParseInt(LastValue(r, name))
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
	err := jackson.Unmarshal(body, into)
	var answer *Error // of a field with its own refusal
	if err == nil || errors.As(err, &answer) {
		return err
	}
	return UnreadableJSON(err)
}
