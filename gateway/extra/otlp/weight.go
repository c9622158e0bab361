package otlp

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// messageBytes is the memory of the largest message without what is in it, with its place in a list that has grown.
	messageBytes = 384
	// elementBytes is the memory of an element of a list of numbers, or of a field of a message, that has grown.
	elementBytes = 32
	// maxDepth bounds messages in messages: values of attributes may have lists of lists.
	maxDepth = 32
)

var (
	errBroken = errors.New("a message is cut off or broken")
	errDeep   = fmt.Errorf("messages are nested more than %d deep", maxDepth)
)

// weigh returns about how many bytes of memory a body takes when it is read. A message of two bytes takes hundreds.
func weigh(body []byte, form Form) (int64, error) {
	w := int64(len(body))
	if form == JSON {
		return w, weighJSON(body, &w)
	}
	return w, weighMessage(body, request, 0, &w)
}

// message is a type of messages: the fields that are messages, by their numbers.
type message map[protowire.Number]*message

// Messages as far as their lists and lists in lists go.
var (
	request = &message{1: {
		1: {1: keyValue},                 // resource
		2: {1: {3: keyValue}, 2: metric}, // scope and metrics
	}}
	metric = &message{
		5:  {1: number},
		7:  {1: number},
		9:  {1: {8: exemplar, 9: keyValue}},
		10: {1: {1: keyValue, 8: {}, 9: {}, 11: exemplar}},
		11: {1: {6: {}, 7: keyValue}},
		12: keyValue,
	}
	number   = &message{5: exemplar, 7: keyValue}
	exemplar = &message{7: keyValue}
	keyValue = &message{2: anyValue}
	anyValue = &message{}
)

func init() { // values hold values
	(*anyValue)[5] = &message{1: anyValue}
	(*anyValue)[6] = &message{1: keyValue}
}

// weighMessage adds what a message takes to w.
func weighMessage(b []byte, of *message, depth int, w *int64) error {
	if depth > maxDepth {
		return errDeep
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errBroken
		}
		b = b[n:]
		if kind == protowire.StartGroupType {
			return errBroken // no message has groups, and they may be nested
		}
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return errBroken
		}
		field := b[:n]
		b = b[n:]
		*w += elementBytes
		if kind != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(field)
		next, ok := (*of)[number]
		if !ok { // a text, or packed numbers of a byte and more
			*w += int64(len(inner)) * 8
			continue
		}
		*w += messageBytes //fault:otlp-messages-weigh-nothing TestParse_memory
		if err := weighMessage(inner, next, depth+1, w); err != nil {
			return err
		}
	}
	return nil
}

// weighJSON adds what a body takes to w. Whether it is JSON is found out later.
func weighJSON(body []byte, w *int64) error {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > 2*maxDepth {
				return errDeep
			}
			*w += messageBytes
		case c == '}' || c == ']':
			depth--
		case c == ',':
			*w += elementBytes
		}
	}
	return nil
}
