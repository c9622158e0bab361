package intake

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/uid"
	"downpour/gateway/write"
)

// maxText bounds a name in bytes: no longer one can have a UID.
const maxText = uid.MostName

// Key is the names of a series as they are stored, its tags in any order:
//
//	metric 00 tagk 01 tagv 00 tagk 01 tagv …
//
// One text has one key, so that the series is found by it. Its memory may be used again after Reset.
type Key struct {
	b    []byte
	tags int
}

// Errors of names, which refuse all points of a series.
var (
	errNoMetric = errors.New("the series has no metric name")
	errNoLabel  = errors.New("a label has no name")
	errName     = errors.New("the name __name__ belongs to the metric")
)

// Reset begins the key of a metric.
func (k *Key) Reset(metric string) error {
	k.b, k.tags = k.b[:0], 0
	if metric == "" {
		return errNoMetric
	}
	return k.append("metric name", metric)
}

// Add adds a label. One without a value is none.
func (k *Key) Add(name, value string) error {
	if value == "" {
		return nil
	}
	switch name {
	case "":
		return errNoLabel
	case "__name__":
		return errName
	}
	k.b = append(k.b, 0)
	if err := k.append("label name", name); err != nil {
		return err
	}
	k.b = append(k.b, 1)
	k.tags++
	return k.append("value of the label "+name, value)
}

// append appends the stored form of a text.
func (k *Key) append(what, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("the %s %.40q… has %d bytes, at most %d", what, text, len(text), maxText)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("the %s %q is not valid UTF-8", what, text)
	}
	from := len(k.b)
	if k.b = names.AppendStored(k.b, text); len(k.b)-from > maxText {
		return fmt.Errorf("the %s %.40q… is stored in %d bytes, at most %d", what, text, len(k.b)-from, maxText)
	}
	return nil
}

// Tags is how many tags there are.
func (k *Key) Tags() int { return k.tags }

// Bytes is the key. A series without labels has the tag that stands for none.
func (k *Key) Bytes() []byte {
	if k.tags == 0 && len(k.b) > 0 {
		return append(append(append(append(k.b[:len(k.b):len(k.b)], 0), names.None...), 1), names.None...)
	}
	return k.b
}

// point returns the names of a key.
func pointOf(key []byte) *write.Point {
	metric, rest, more := bytes.Cut(key, []byte{0})
	p := &write.Point{Metric: string(metric)}
	for more {
		var pair []byte
		pair, rest, more = bytes.Cut(rest, []byte{0})
		k, v, _ := bytes.Cut(pair, []byte{1})
		p.Tags = append(p.Tags, write.Tag{K: string(k), V: string(v)})
	}
	return p
}

// shown is a series of a key as PromQL writes it.
func shown(key []byte) string {
	p := pointOf(key)
	var b strings.Builder
	fmt.Fprintf(&b, "{%q", names.Shown(p.Metric))
	for _, t := range p.Tags {
		if t.K != names.None {
			fmt.Fprintf(&b, ", %q=%q", names.Shown(t.K), names.Shown(t.V))
		}
		if b.Len() > maxShown {
			return b.String()[:maxShown] + "…"
		}
	}
	return b.String() + "}"
}

// maxShown bounds the text of a series in an error, in bytes.
const maxShown = 300
