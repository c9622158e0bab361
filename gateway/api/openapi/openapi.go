// Package openapi holds the description of the HTTP API, an OpenAPI 3.1 document. The gateway serves it
// at /docs/openapi.json, and the reference of the documentation is made from it.
//
// openapi.json is written by hand. Tests of package gateway compare it with the table of routes,
// and its schemas with recorded requests and answers of a real OpenTSDB and with the gateway's own
// answers; integration runs a validator of OpenAPI on it.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// JSON is the document as it is served.
//
//go:embed openapi.json
var JSON []byte

// Document is what a program of ours reads of it.
type Document struct {
	Info       Info
	Tags       []Tag
	Paths      Paths
	Components struct {
		Schemas    Schemas
		Parameters map[string]Parameter
		Responses  map[string]Response
	}
}

// Info names the API.
type Info struct {
	Title, Version, Description string
}

// Tag is a chapter of the API.
type Tag struct {
	Name, Description string
}

// Paths are all paths, in the order of the document.
type Paths []Path

// Path is a path with its operations.
type Path struct {
	Path       string
	Operations []Operation
}

// Operation is one verb of a path.
type Operation struct {
	Method      string `json:"-"` // in small letters
	OperationID string
	Summary     string
	Description string
	Tags        []string
	Parameters  []Parameter
	RequestBody *struct {
		Description string
		Required    bool
		Content     map[string]Media
	}
	Responses map[string]Response // by status
	// Scope is what a token must allow, where tokens are needed: read, write, admin, or nothing.
	Scope string `json:"x-scope"`
}

// Parameter is a parameter of a request, or a reference to one.
type Parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      json.RawMessage
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]Media
}

// Media is a body of one type.
type Media struct {
	Schema  json.RawMessage
	Example json.RawMessage
}

// Schemas are named schemas, in the order of the document.
type Schemas []Schema

// Schema is a named JSON schema.
type Schema struct {
	Name string
	JSON json.RawMessage
}

// Methods are the verbs that a path can have, in the order in which they are shown.
var Methods = []string{"get", "post", "put", "delete"}

// Parse reads a document.
func Parse(text []byte) (*Document, error) {
	d := new(Document)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return d, nil
}

// UnmarshalJSON reads paths in their order.
func (p *Paths) UnmarshalJSON(text []byte) error {
	return inOrder(text, func(path string, value json.RawMessage) error {
		var operations map[string]Operation
		if err := json.Unmarshal(value, &operations); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		one := Path{Path: path}
		for _, method := range Methods {
			if o, ok := operations[method]; ok {
				o.Method = method
				one.Operations = append(one.Operations, o)
				delete(operations, method)
			}
		}
		if len(operations) > 0 {
			return fmt.Errorf("%s: got the verbs %q, want some of %q", path, slices.Sorted(maps.Keys(operations)),
				Methods)
		}
		*p = append(*p, one)
		return nil
	})
}

// UnmarshalJSON reads schemas in their order.
func (s *Schemas) UnmarshalJSON(text []byte) error {
	return inOrder(text, func(name string, value json.RawMessage) error {
		*s = append(*s, Schema{name, value})
		return nil
	})
}

// inOrder calls f with each member of an object, in their order.
func inOrder(text []byte, f func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the operation of a path and a verb.
func (d *Document) Find(path, method string) (Operation, bool) {
	for _, p := range d.Paths {
		if p.Path != path {
			continue
		}
		if i := slices.IndexFunc(p.Operations, func(o Operation) bool { return o.Method == method }); i >= 0 {
			return p.Operations[i], true
		}
	}
	return Operation{}, false
}

// Parameter follows a reference to a parameter.
func (d *Document) Parameter(p Parameter) Parameter {
	if name, ok := afterSlash(p.Ref); ok {
		return d.Components.Parameters[name]
	}
	return p
}

// Response follows a reference to a response.
func (d *Document) Response(r Response) Response {
	if name, ok := afterSlash(r.Ref); ok {
		return d.Components.Responses[name]
	}
	return r
}

// afterSlash returns the last word of a reference.
func afterSlash(ref string) (string, bool) {
	i := strings.LastIndexByte(ref, '/')
	return ref[i+1:], i >= 0
}
