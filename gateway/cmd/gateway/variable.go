package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v9"
)

// named rewords the errors of reading an environment: they name a field of
// config, a pointer to a struct, and a user knows the variable.
func named(err error, config any) error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return err
	}
	out := make([]error, len(all.Errors))
	for i, e := range all.Errors {
		out[i] = e
		var parse env.ParseError
		if field, ok := fieldOf(e, config, &parse); ok {
			name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
			out[i] = fmt.Errorf("%s: %w", name, parse.Err) // of a number it says what is wanted
			if kind := kindOf(field.Type); kind != "" {
				out[i] = fmt.Errorf("%s: want %s: %w", name, kind, parse.Err)
			}
		}
	}
	return errors.Join(out...)
}

// fieldOf returns the field of config that an error is about, and sets parse to that error. ok
// is false for any other error.
func fieldOf(err error, config any, parse *env.ParseError) (reflect.StructField, bool) {
	if !errors.As(err, parse) {
		return reflect.StructField{}, false
	}
	return reflect.TypeOf(config).Elem().FieldByName(parse.Name)
}

// kindOf says what a variable of a type looks like, "" for a number. No error wants a text: any
// will do.
func kindOf(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "a time such as 10s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return ""
}
