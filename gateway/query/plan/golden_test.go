package plan

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/query"
)

// rewrite makes TestGolden write its file instead of comparing with it.
var rewrite = flag.Bool("rewrite", false, "write what the golden files should hold")

// dictionary holds the names of the golden tests.
type dictionary struct{ metrics, tagks, tagvs []string }

// names3 are the names that all scripts know.
var names3 = dictionary{
	metrics: []string{"sys.cpu", "sys.mem"},
	tagks:   []string{"host", "dc", "rack"},
	tagvs:   []string{"web01", "web02", "web03", "db01", "lga", "sjc", "WEB04"},
}

// uid returns the UID of a name, nil if the list lacks it. UIDs count from 1 in the list's order.
func uid(list []string, name string) encoding.UID {
	i := slices.Index(list, name)
	if i < 0 {
		return nil
	}
	u, _ := encoding.AppendUID(nil, uint64(i+1), 3)
	return u
}

// look looks up the names that are needed.
func (d dictionary) look(n Needs) Names {
	out := Names{
		Metric: uid(d.metrics, n.Metric),
		TagKs:  map[string]encoding.UID{},
		TagVs:  map[string]encoding.UID{},
		Lists:  map[string]List{},
	}
	for _, k := range n.TagKs {
		if u := uid(d.tagks, k); u != nil {
			out.TagKs[k] = u
		}
	}
	for _, v := range n.TagVs {
		if u := uid(d.tagvs, v); u != nil {
			out.TagVs[v] = u
		}
	}
	for _, p := range n.Prefixes {
		list := List{Complete: true}
		for _, v := range d.tagvs {
			if !strings.HasPrefix(v, p) {
				continue
			}
			if list.Complete = len(list.Values) < n.Limit; !list.Complete {
				break
			}
			list.Values = append(list.Values,
				encoding.UIDMapping{Kind: encoding.UIDTagV, Name: v, UID: uid(d.tagvs, v)})
		}
		out.Lists[p] = list
	}
	return out
}

// run compiles the query of one script and returns the plan as text, or the error. A script has
// lines of
//
//	option value   salt, limit, skip, maxfilled, start, end
//	m=…, tsuid=…   a sub-query of a GET
//	{…}            a sub-query of a POST
func run(t *testing.T, script string) string {
	t.Helper()
	opt := Options{Schema: encoding.DefaultSchema(), Table: "tsdb"}
	start, end, values, post := "1356998400", "1357002000", url.Values{}, ""
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "salt":
			opt.Schema.SaltWidth, opt.Schema.SaltBuckets = 1, n
		case "limit":
			opt.ExpansionLimit = n
		case "skip":
			opt.SkipUnresolved = true
		case "maxfilled":
			opt.MaxFilled = int64(n)
		case "start":
			start = rest
		case "end":
			end = rest
		default:
			if strings.HasPrefix(word, "{") {
				post = line
				continue
			}
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			values.Set(k, v)
		}
	}
	values.Set("start", start)
	values.Set("end", end)
	q, err := query.ParseURI(values, time.Unix(1.7e9, 0))
	if post != "" {
		q, err = query.Parser{Now: time.Unix(1.7e9, 0)}.JSON(fmt.Appendf(nil, `{"start":%q,"end":%q,"queries":[%s]}`,
			start, end, post))
	}
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	c, err := Compile(q, 0, names3.look(NeedsOf(&q.Queries[0], opt)), opt)
	var e *query.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%d %s\n", e.Status, e.Message)
	}
	if err := c.Plan.Validate(); err != nil {
		t.Errorf("%s: %v", script, err)
	}
	text := c.Plan.String()
	if c.PostFilter != nil {
		text += c.PostFilter.String()
	}
	if c.Nothing != "" {
		text += "nothing: " + c.Nothing + "\n"
	}
	return text
}

// TestGolden compiles the scripts of testdata/plans.txt, each of which is followed by ---- and the
// expected text. With -rewrite it writes the texts instead.
//
//fault:salt-bucket-left-out s.Buckets() => max(1, s.Buckets()-1)
func TestGolden(t *testing.T) {
	const file = "testdata/plans.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, block := range strings.Split(strings.TrimSpace(string(want)), "\n\n") {
		script, _, _ := strings.Cut(block, "----\n")
		var comments, lines string
		for line := range strings.Lines(script) {
			if strings.HasPrefix(line, "#") {
				comments += line
			} else {
				lines += line
			}
		}
		got = append(got, comments+lines+"----\n"+run(t, lines))
	}
	text := strings.Join(got, "\n")
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}
