package otlp

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Form is how a request and its answer are encoded.
type Form uint8

// The forms.
const (
	Protobuf Form = iota
	JSON
)

// ContentType is that of a form.
func (f Form) ContentType() string {
	return [...]string{"application/x-protobuf", "application/json"}[f]
}

// FormOf returns the form that a Content-Type says. The error refuses others.
func FormOf(contentType string) (Form, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == Protobuf.ContentType():
		return Protobuf, nil
	case err == nil && media == JSON.ContentType():
		return JSON, nil
	}
	return JSON, fmt.Errorf("got Content-Type %q, want %s or %s", contentType, Protobuf.ContentType(),
		JSON.ContentType())
}

// Response is the answer to a request that was taken: how many data points were rejected, and why.
func (f Form) Response(rejected int64, why string) []byte {
	if f == JSON {
		if rejected == 0 && why == "" {
			return []byte("{}")
		}
		type partial struct {
			Rejected string `json:"rejectedDataPoints"` // as protobuf's JSON has 64 bits
			Message  string `json:"errorMessage"`
		}
		b, _ := json.Marshal(map[string]partial{"partialSuccess": {strconv.FormatInt(rejected, 10), why}})
		return b
	}
	if rejected == 0 && why == "" {
		return nil
	}
	var p []byte
	p = protowire.AppendVarint(protowire.AppendTag(p, 1, protowire.VarintType), uint64(rejected))
	p = protowire.AppendString(protowire.AppendTag(p, 2, protowire.BytesType), why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), p)
}

// Error is the answer to a request that failed, google.rpc.Status, for a status of HTTP.
func (f Form) Error(status int, why string) []byte {
	code := 13 // internal
	switch {
	case status == http.StatusServiceUnavailable:
		code = 14 // unavailable
	case status == http.StatusRequestEntityTooLarge:
		code = 8 // resource exhausted
	case status < 500:
		code = 3 // invalid argument
	}
	if f == JSON {
		b, _ := json.Marshal(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{code, why})
		return b
	}
	var b []byte
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(code))
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), why)
}
