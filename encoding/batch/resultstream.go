package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// resultStream writes the batches of an answer: of results, or of outputs.
type resultStream struct {
	out     *ipc.Writer
	payload *streamWriter
	schema  *arrow.Schema
}

func newResultStream(w io.Writer, schema *arrow.Schema, opts ResultOptions) *resultStream {
	payload := &streamWriter{w: w}
	return &resultStream{
		out:     ipc.NewWriterWithPayloadWriter(payload, append(opts.Compression.options(), ipc.WithSchema(schema))...),
		payload: payload, schema: schema,
	}
}

// write writes the columns of rows as a batch. Their memory is the garbage collector's: nothing of answers is released.
func (s *resultStream) write(cols []arrow.Array, rows *resultRows) error {
	// out writes the batch through payload, which adds this to it.
	s.payload.metadata = [][2]string{{AggregateTagsKey, rows.aggregated}}
	record := array.NewRecord(s.schema, cols, int64(rows.len()))
	if err := s.out.Write(record); err != nil {
		return fmt.Errorf("batch: cannot write results: %w", err)
	}
	return nil
}

// aggregatedList returns tag keys as the metadata of a batch has them: as a JSON list, [] for none.
func aggregatedList(keys []string) string {
	list, _ := json.Marshal(append([]string{}, keys...)) // strings: this cannot fail
	return string(list)
}

// tagTexts are the tag keys of an answer, sorted, with the dictionary of each key's
// values.
type tagTexts struct {
	keys         []string
	dictionaries []dictionary
}

// newTagTexts collects the tags of n groups. Dictionaries come before the first batch, so all
// groups must be known.
func newTagTexts(n int, tagsOf func(i int) (keys, values, aggregated []string)) *tagTexts {
	t := &tagTexts{}
	byKey := map[string]map[string]bool{}
	valuesOf := func(k string) map[string]bool {
		if byKey[k] == nil {
			byKey[k] = map[string]bool{}
			t.keys = append(t.keys, k)
		}
		return byKey[k]
	}

	for i := range n {
		keys, values, aggregated := tagsOf(i)
		for j, k := range keys {
			valuesOf(k)[values[j]] = true
		}
		// A key that is aggregated away everywhere has a column of nulls.
		for _, k := range aggregated {
			valuesOf(k)
		}
	}

	slices.Sort(t.keys)
	for _, k := range t.keys {
		t.dictionaries = append(t.dictionaries, newDictionary(byKey[k]))
	}
	return t
}

// absent is the index of a tag that a group does not have.
const absent = -1

// appendIndexes appends, for each key of t, the position of a group's value in the key's
// dictionary.
func (t *tagTexts) appendIndexes(dst []int32, keys, values []string) []int32 {
	for i, k := range t.keys {
		if at := slices.Index(keys, k); at >= 0 {
			dst = append(dst, t.dictionaries[i].index[values[at]])
		} else {
			dst = append(dst, absent)
		}
	}
	return dst
}
