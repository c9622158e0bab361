// Package jacksontest has bodies and what OpenTSDB 2.4.1 reads in them: each field of each body
// that it knows, with values of each kind, and odd spellings. testdata/bodies.json.gz has one a
// line, made by its own classes and its configuration of Jackson:
//
//	{"kind":"put","body":"{\"timestamp\":\"12 \"}","read":{"timestamp":"12","metric":null,…}}
//	{"kind":"put","body":"{\"value\":INF}","refused":true}
package jacksontest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/java"
)

//go:embed testdata/bodies.json.gz
var recorded []byte

// Body is a recorded body.
type Body struct {
	Kind, Body string
	Read       map[string]any // the fields
	Refused    bool
}

// Bodies returns the recorded bodies of a kind.
func Bodies(t *testing.T, kind string) (out []Body) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var b Body
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			t.Fatal(err)
		}
		if b.Kind == kind {
			out = append(out, b)
		}
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d bodies of kind %s: %v", len(out), kind, err)
	}
	return out
}

// Fields are the fields of a body by their names. A pointer that is nil is not given.
type Fields = map[string]any

// Check reads all bodies of a kind, and compares each field of what read returns with what
// OpenTSDB has read. otherwise has the bodies that are read in another way, and the reason.
func Check(t *testing.T, kind string, read func(body []byte) (Fields, error), otherwise map[string]string) {
	t.Helper()
	bodies := Bodies(t, kind)
	for _, b := range bodies {
		differs := compare(b, bodies, read)
		reason, listed := otherwise[b.Body]
		switch {
		case differs != "" && !listed:
			t.Errorf("%s: %s", b.Body, differs)
		case differs == "" && listed:
			t.Errorf("%s is read as by OpenTSDB, but listed: %s", b.Body, reason)
		}
	}
}

// compare returns how what is read in a body differs.
func compare(b Body, all []Body, read func([]byte) (Fields, error)) string {
	fields, err := read([]byte(b.Body))
	switch {
	case b.Refused && err == nil:
		return fmt.Sprintf("read %v, OpenTSDB refuses it", fields)
	case b.Refused:
		return ""
	case err != nil:
		return fmt.Sprintf("refused: %v; OpenTSDB reads %v", err, b.Read)
	}
	for name, got := range fields {
		want := shown(b.Read[name])
		if v := reflect.ValueOf(got); v.Kind() == reflect.Pointer && v.IsNil() {
			continue // no field of this name, or null
		}
		if d := cmp.Diff(want, alike(want, got)); d != "" {
			return fmt.Sprintf("%s: -OpenTSDB +here %s", name, d)
		}
	}
	return ""
}

// shown returns a recorded value with "" in place of null, and scalars as texts.
func shown(v any) any {
	switch v := v.(type) {
	case nil:
		return ""
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, shown(e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = shown(e)
		}
		return out
	}
	return v
}

// alike returns a value in the form of shown. A number is spelled as the wanted one is, if
// they are equal.
func alike(want, got any) any {
	v := reflect.ValueOf(got)
	switch v.Kind() {
	case reflect.Pointer:
		return alike(want, v.Elem().Interface())
	case reflect.Float64:
		text, _ := want.(string)
		if f, err := java.ParseDouble(text); err == nil && (f == v.Float() || f != f && v.Float() != v.Float()) {
			return want
		}
	case reflect.Slice, reflect.Map:
		if v.IsNil() {
			return ""
		}
		text, err := json.Marshal(got)
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var same any
		if err == nil {
			err = d.Decode(&same)
		}
		if err != nil {
			return err.Error()
		}
		return shown(same)
	}
	return fmt.Sprint(got)
}
