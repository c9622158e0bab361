package differential

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"downpour/encoding"
)

// Arrangement is a layout of random tables with the settings of both servers.
type Arrangement struct {
	Layout  string
	Schema  encoding.Schema
	Lenient bool // duplicates are fixed, unknown values skipped, long lists matched on names

	data, questions uint64 // seed of the rows; seed and number of the questions
	number          uint64
}

// ExpansionLimit is the limit of lenient settings.
const ExpansionLimit = 3

// saltedLayouts are layouts; each seed takes one of them.
var saltedLayouts = []Arrangement{
	{Layout: "salted", Schema: schema(1, 20, 3, 3, 3)},
	{Layout: "salted and wide", Schema: schema(1, 4, 4, 2, 4)},
	{Layout: "salted and wider", Schema: schema(2, 3, 8, 1, 5)},
}

func schema(saltWidth, saltBuckets, metric, tagK, tagV int) encoding.Schema {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets, s.MetricWidth, s.TagKWidth, s.TagVWidth = saltWidth, saltBuckets, metric, tagK, tagV
	return s
}

// Arrangements are those that a seed asks questions of: a plain and a salted layout, each strict
// and lenient on the same rows.
func Arrangements(seed uint64) (all []Arrangement) {
	for i, a := range []Arrangement{
		{Layout: "plain", Schema: encoding.DefaultSchema()},
		saltedLayouts[seed%uint64(len(saltedLayouts))],
	} {
		for j, lenient := range []bool{false, true} {
			a.Lenient, a.data, a.questions, a.number = lenient, seed+uint64(i), seed, uint64(2*i+j)+100
			all = append(all, a)
		}
	}
	return all
}

// String names the arrangement.
func (a Arrangement) String() string { return fmt.Sprintf("%s, lenient %t", a.Layout, a.Lenient) }

// Recording names the recording of OpenTSDB's answers to the arrangement's questions.
func (a Arrangement) Recording(seed uint64) string {
	name := "drawn_seed" + strconv.FormatUint(seed, 10)
	if a.Schema.SaltWidth > 0 {
		name += "_salted"
	}
	if a.Lenient {
		name += "_lenient"
	}
	return name
}

// Settings are opentsdb.conf's keys of the arrangement, which both servers read.
func (a Arrangement) Settings() map[string]string {
	s := map[string]string{"tsd.storage.fix_duplicates": strconv.FormatBool(a.Lenient)}
	if a.Lenient {
		s["tsd.query.skip_unresolved_tagvs"] = "true"
		s["tsd.query.filter.expansion_limit"] = strconv.Itoa(ExpansionLimit)
	}
	return s
}

// Data makes the rows.
func (a Arrangement) Data() *Data { return Generate(a.data, a.Schema) }

// Questions draws so many queries over the rows, and so many expressions.
func (a Arrangement) Questions(d *Data, queries, expressions int) (qs []Query, es []Exp) {
	r := rand.New(rand.NewPCG(a.questions, a.number))
	for range queries {
		qs = append(qs, a.comparable(Random(r, d)))
	}
	for range expressions {
		es = append(es, a.comparableExp(RandomExp(r, d)))
	}
	return qs, es
}

// comparable takes explicitTags away where the reference loses the series that it asks for: with
// more values listed than the expansion limit, the reference forgets the key and then refuses
// series for having it.
func (a Arrangement) comparable(q Query) Query {
	for i := range q.Subs {
		if s := &q.Subs[i]; a.Lenient && s.ExplicitTags {
			s.ExplicitTags = s.Listed() <= ExpansionLimit
		}
	}
	return q
}

// comparableExp is comparable for the filters of a request of /api/query/exp.
func (a Arrangement) comparableExp(e Exp) Exp {
	for i := range e.Filters {
		if f := &e.Filters[i]; a.Lenient && f.ExplicitTags {
			f.ExplicitTags = f.Listed() <= ExpansionLimit
		}
	}
	return e
}
