package metaroutes

import (
	"strings"
	"testing"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/jackson/jacksontest"
)

// readOne reads a body into a value of its own.
func readOne[T any](fields func(*T) jacksontest.Fields) func([]byte) (jacksontest.Fields, error) {
	return func(body []byte) (jacksontest.Fields, error) {
		var in T
		if err := httpio.ParseJSON(body, &in); err != nil {
			return nil, err
		}
		return fields(&in), nil
	}
}

// unlike lists the refused bodies with one of the fields, which are not used.
func unlike(t *testing.T, kind string, fields ...string) map[string]string {
	out := map[string]string{}
	for _, b := range jacksontest.Bodies(t, kind) {
		for _, f := range fields {
			if b.Refused && strings.HasPrefix(b.Body, `{"`+f+`":`) {
				out[b.Body] = "a field that is not used"
			}
		}
	}
	return out
}

// Every field of every body is read as OpenTSDB reads it.
func TestBodies(t *testing.T) {
	jacksontest.Check(t, "annotation", readOne(func(in *annotationBody) jacksontest.Fields {
		return jacksontest.Fields{"tsuid": in.TSUID, "startTime": in.StartTime, "endTime": in.EndTime,
			"description": in.Description.to, "notes": in.Notes.to, "custom": in.Custom}
	}), nil)
	jacksontest.Check(t, "deletion", readOne(func(in *deletionRange) jacksontest.Fields {
		return jacksontest.Fields{"startTime": in.StartTime, "endTime": in.EndTime, "tsuids": in.TSUIDs,
			"global": in.Global}
	}), nil)
	jacksontest.Check(t, "tsmeta", readOne(func(in *tsMetaBody) jacksontest.Fields {
		return jacksontest.Fields{"tsuid": in.TSUID, "displayName": in.DisplayName.to,
			"description": in.Description.to, "notes": in.Notes.to, "created": in.Created,
			"custom": in.Custom, "units": in.Units.to, "dataType": in.DataType.to, "retention": in.Retention,
			"max": in.Max, "min": in.Min}
	}), unlike(t, "tsmeta", "metric", "tags"))
	types := unlike(t, "uidmeta", "name")
	for _, b := range jacksontest.Bodies(t, "uidmeta") {
		if b.Refused && strings.HasPrefix(b.Body, `{"type":`) && !strings.ContainsAny(b.Body[8:], "[{") {
			types[b.Body] = "an unknown type is refused behind the JSON"
		}
	}
	jacksontest.Check(t, "uidmeta", readOne(func(in *uidMetaBody) jacksontest.Fields {
		return jacksontest.Fields{"uid": in.UID, "displayName": in.DisplayName.to, "description": in.Description.to,
			"notes": in.Notes.to, "created": in.Created, "custom": in.Custom}
	}), types)
	jacksontest.Check(t, "last", readOne(func(in *lastRequest) jacksontest.Fields {
		var queries []jacksontest.Fields
		if in.Queries != nil {
			queries = []jacksontest.Fields{}
		}
		for _, q := range in.Queries {
			queries = append(queries, jacksontest.Fields{"metric": q.Metric, "tags": q.Tags, "tsuids": q.TSUIDs})
		}
		return jacksontest.Fields{"queries": queries, "resolveNames": in.ResolveNames, "backScan": in.BackScan}
	}), nil)
	search := unlike(t, "search", "type", "query", "totalResults", "time", "results")
	search[`{"tags":[null]}`] = "OpenTSDB fails with 500; here it is any tag"
	jacksontest.Check(t, "search", func(body []byte) (jacksontest.Fields, error) {
		in, err := parseLookup(nil, body)
		return jacksontest.Fields{"metric": in.Metric, "tags": in.Tags, "limit": in.Limit, "startIndex": in.StartIndex,
			"useMeta": in.UseMeta}, err
	}, search)
	jacksontest.Check(t, "map", readOne(func(in *map[string]string) jacksontest.Fields {
		out := jacksontest.Fields{}
		for k, v := range *in {
			out[k] = v
		}
		return out
	}), nil)
	jacksontest.Check(t, "assign", readOne(func(in *map[string][]string) jacksontest.Fields {
		out := jacksontest.Fields{}
		for k, v := range *in {
			out[k] = v
		}
		return out
	}), nil)
}
