package replay

import (
	"fmt"
	"net/url"
	"regexp"

	"downpour/integration/compare"
	"downpour/integration/conformance"
)

// meant is a difference from OpenTSDB that gateway/docs/compatibility.md lists. It explains a difference if all of its
// expressions match: those of the question, OpenTSDB's answer and ours that there are. An answer is "STATUS BODY".
type meant struct {
	question, theirs, ours *regexp.Regexp
	reason                 string
}

// meantOnes are all that recorded questions meet.
var meantOnes = []meant{
	{
		question: re(`(?i)/query/exp\b`),
		theirs:   re(`^500 `),
		ours:     re(`^400 `),
		reason:   "faults of expressions are the client's",
	},
	{
		theirs: re(`^[45]00 .*End time \[\d+\]`),
		ours:   re(`^[45]00 .*End time \[\d+\]`),
		reason: "the message says what time it is",
	},
	{question: re(`SystemV|\bROC\b|GMT[+-]0|Coyhaique`), reason: "zones that only Java knows, or does not know"},
	{
		theirs: re(`^400 .*(timezone specification|Invalid timezone)`),
		ours:   re(`^200 \[\]`),
		reason: "a mistake that is met when rows are read",
	},
	{
		theirs: re(`^200 (\[\]|\[\{"metric":""|null)`),
		ours:   re(`^400 .*(timezone|interval|fill policy|Next timestamp|Floating point)`),
		reason: "the same mistake with rows and without",
	},
	{
		question: re(`Tijuana|Ensenada|Santa_Isabel|BajaNorte|Casablanca|El_Aaiun|Gaza|Hebron`),
		ours:     re(`^200 `),
		reason:   "zones are those of another release of the IANA's database",
	},
	{
		question: re(`Azores|Scoresbysund|Ittoqqortoormiit`),
		ours:     re(`^200 `),
		reason:   "a calendar bucket that begins at a midnight which comes twice",
	},
	{
		question: re(`429\d{7}|2106|210[5-9]/|9999/`),
		theirs:   re(`^200 \[\]`),
		ours:     re(`^200 `),
		reason:   "an end near 2106-02-07 wraps there",
	},
	{
		theirs: re(`^200 .*"metric":"","tags":\{\}`),
		ours:   re(`^200 `),
		reason: "times before 1970-02-19 in ms, and intervals beyond all times, lose the rows there",
	},
	{
		theirs: re(`^[45]00 .*(Cannot invoke|String index out of range|Index -?\d+ out of|begin -?\d+, end)`),
		reason: "a fault of Java's that says nothing",
	},
	{
		question: re(`/lookup`),
		theirs:   re(`^500 `),
		ours:     re(`^(200|400|404) `),
		reason:   "a lookup that fails there is answered, or is the client's fault",
	},
	{theirs: re(`^500 .*Invalid timestamp`), ours: re(`^400 .*Invalid timestamp`), reason: "the client's fault"},
	{
		theirs: re(`^[45]00 `),
		ours:   re(`^[45]00 .*(bad regular expression|Unsupported regular expression)`),
		reason: "regular expressions: other words, or refused",
	},
	{
		theirs: re(`^200 `),
		ours:   re(`^400 .*Unsupported regular expression`),
		reason: "regular expressions that are refused",
	},
	{
		theirs: re(`^400 .*No such name`),
		ours:   re(`^400 .*No such name`),
		reason: "of several unknown names either server names the one that it meets first",
	},
	{
		theirs: re(`^[45]00 `),
		ours:   re(`^400 .*a ':' in the tag`),
		reason: "a ':' in a tag of GET makes the text behind it the metric",
	},
	{theirs: re(`^400 .*UID was empty`), ours: re(`^200 \[\]`), reason: "a TSUID without tags has no rows"},
	{
		question: re(`showStats|show_stats|show_summary|showSummary`),
		ours:     re(`^200 `),
		reason:   "statistics are other numbers under other names",
	},
	{theirs: re(`^0 `), ours: re(`^400 `), reason: "a broken escape ends the connection there"},
	{question: re(`preAggregate`), theirs: re(`^400 null`), reason: "the same fault of Java's, in a script"},
	{question: re(`/api/query/(nope|x)\b`), ours: re(`^404 `), reason: "a path below /api/query that is none"},
	{
		question: re(`/api/query/last\?timeseries=(&|x)|/api/query/last\?tsuids=,`),
		ours:     re(`^40[05] `),
		reason:   "of two mistakes either server names one; newest points are not deleted",
	},
	{
		question: re(`^(GET|POST) /api/search/lookup \{"query"`),
		ours:     re(`^200 `),
		reason:   "a field that no lookup uses is not repeated",
	},
	{
		question: re(`/lookup\?m=\{=a1\}&limit=1000`),
		ours:     re(`^200 `),
		reason:   "the tables had nine series more when this was recorded",
	},
	{question: re(`\[null\]`), theirs: re(`^500 `), reason: "null among filters or TSUIDs is the client's fault"},
	{
		question: re(`filterTagKs`),
		theirs:   re(`^400 `),
		ours:     re(`^200 `),
		reason:   "a field that no query uses is ignored",
	},
	{question: re(`/suggest\?type=tagv&(max=1000|q=ÿ)`), reason: "suggest leaves out names behind '}'"},
	{
		question: re(`end=0000/00/00`),
		theirs:   re(`^400 .*End time \[-`),
		ours:     re(`^400 .*End time \[-`),
		reason:   "days of the Julian calendar",
	},
	{question: re(`^PUT /api/version`), theirs: re(`^405 `), ours: re(`^200 `), reason: "more verbs"},
}

func re(expression string) *regexp.Regexp { return regexp.MustCompile(`(?s)` + expression) }

// explains says why an answer that differs may do so, or "".
func explains(q conformance.Query, want, got compare.Answer, more ...meant) string {
	path, err := url.QueryUnescape(q.Path)
	if err != nil {
		path = q.Path
	}
	texts := []string{q.Method + " " + path + " " + q.Body + string(q.Request), status(want), status(got)}
	for _, m := range append(more, meantOnes...) {
		fits := true
		for i, e := range []*regexp.Regexp{m.question, m.theirs, m.ours} {
			fits = fits && (e == nil || e.MatchString(texts[i]))
		}
		if fits {
			return m.reason
		}
	}
	return ""
}

func status(a compare.Answer) string {
	return fmt.Sprintf("%d %s", a.Status, a.Body)
}
