package batch

import "github.com/apache/arrow/go/v15/arrow"

// Previous is the version before Version. Gateways and pushdown servers still exchange it with those of the release
// before, so that parts stay at the servers while programs are upgraded one by one. Batches that both versions have
// differ only in the version that their schemas name. A new Version must keep that so, or the server must convert what
// it sends. Recordings of the release before are in pushdown/rpc/server/testdata/before.
const Previous = "2"

// previous are the schemas that Previous has, by those of Version.
var previous = map[*arrow.Schema]*arrow.Schema{
	seriesSchema:  arrow.NewSchema(seriesSchema.Fields(), metadata(Previous)),
	partialSchema: arrow.NewSchema(partialSchema.Fields(), metadata(Previous)),
}

// AsPrevious returns a schema as Previous has it, nil if Previous has no such batches. It has series in the place of
// narrow batches.
func AsPrevious(s *arrow.Schema) *arrow.Schema {
	if s == narrowSchema {
		s = seriesSchema
	}
	return previous[s]
}

// FromPrevious returns the schema of Version for one that AsPrevious has returned.
func FromPrevious(before *arrow.Schema) *arrow.Schema {
	for s, other := range previous {
		if other == before {
			return s
		}
	}
	return nil
}
