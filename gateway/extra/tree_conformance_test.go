package extra_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

// treeRecording is what was recorded of OpenTSDB's trees: calls and tools in order, and the cells
// of the tree table before the tools and at the end.
type treeRecording struct {
	Assign  [][2]string
	Steps   []treeStep
	Rows    []conformance.Cell
	RowsEnd []conformance.Cell `json:"rows_end"`
	// RowsMeta has the meta data that metasync made after metapurge.
	RowsMeta []conformance.Cell `json:"rows_meta_after_purge_and_sync"`
}

// treeStep is a request, a run of a tool, or a note.
type treeStep struct {
	conformance.Query
	Tool []string
	Exit int
	Note string
}

// Trees are made, changed, filled, shown and purged as recorded from OpenTSDB, except for the rules of
// expectTreeStep, withoutHidden and lastTrial.
func TestTreeConformance(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { replayTrees(t, open(t, withTrees)) })
	t.Run("HBase", func(t *testing.T) {
		fake := opentest.Fake(t, hbasefake.Options{})
		cfg := config(0)
		withTrees(cfg)
		cfg.Store = "hbase:" + fake.Address()
		st := opentest.HBaseWith(t, fake, hbase.Config{}, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")...)
		replayTrees(t, serve(t, cfg, gatewaytest.NewFaulty(st)))
	})
}

func replayTrees(t *testing.T, b *bench) {
	t.Helper()
	r := new(treeRecording)
	gatewaytest.Decode(t, "tree_seed41", r)
	gatewaytest.Fill(t, &conformance.Data{Assign: r.Assign}, b.Gateway, b.Store, b.Config.Schema())

	failed := failedSeries(t, r)
	equal, byRule, purged := 0, map[string]int{}, false
	for i, s := range r.Steps {
		rule, err := "", error(nil)
		switch {
		case s.Tool != nil && (s.Tool[1] == "metasync" || s.Tool[1] == "metapurge" || s.Tool[1] == "fsck"):
			err = runTreeTool(t, b, s)
			switch {
			case s.Tool[1] == "metapurge":
				purged = true
				checkMetaCells(t, b.Store, nil)
			case s.Tool[1] == "metasync" && purged:
				checkMetaCells(t, b.Store, r.RowsMeta)
			}
		case s.Tool != nil:
			// The first run of treesync changes nothing.
			first := len(s.Tool) > 1 && s.Tool[1] == "treesync" && r.Steps[i+1].Note != ""
			if first {
				checkTreeCells(t, b.Store, r.Rows, failed)
			}
			err = runTreeTool(t, b, s)
			if first {
				checkTreeCells(t, b.Store, r.Rows, failed)
			}
		case s.Note != "":
			continue
		default:
			rule, err = checkTreeStep(t, b, s, failed)
		}
		if rule != "" {
			byRule[rule]++
		} else {
			equal++
		}
		if err != nil {
			t.Errorf("step %d %s%s%q %s (%s): %.900v", i, s.Method, s.Path, s.Tool, s.Body, rule, err)
		}
	}
	checkTreeCells(t, b.Store, r.RowsEnd, nil)
	t.Logf("%d of %d steps are equal; by a rule: %v", equal, len(r.Steps), byRule)
}

// failedSeries returns cells that OpenTSDB never writes: the series that are not matched by a tree,
// because they yield one name only (tree 2) or, with strictMatch, lack one (tree 3).
func failedSeries(t *testing.T, r *treeRecording) (cells []conformance.Cell) {
	t.Helper()
	uids, next := map[string]string{}, map[string]int{}
	for _, a := range r.Assign {
		next[a[0]]++
		uids[a[0]+" "+a[1]] = fmt.Sprintf("%06x", next[a[0]])
	}
	add := func(id, tsuid, rules string) {
		qualifier := hex.EncodeToString([]byte("tree_not_matched:"))
		cells = append(cells, conformance.Cell{
			Table:     "tsdb-tree",
			Row:       "000" + id + "02",
			Family:    "t",
			Qualifier: qualifier + tsuid,
			Value:     hex.EncodeToString([]byte(rules)),
		})
	}
	for _, s := range r.Steps {
		if !strings.HasPrefix(s.Path, "/api/put") {
			continue
		}
		var points []struct {
			Metric string
			Tags   map[string]string
		}
		if err := json.Unmarshal([]byte(s.Body), &points); err != nil {
			t.Fatal(err)
		}
		p := points[0]
		tsuid := uids["metric "+p.Metric]
		for _, k := range []string{"host", "dc", "owner"} { // in the order of their UIDs
			if v, ok := p.Tags[k]; ok {
				tsuid += uids["tagk "+k] + uids["tagv "+v]
			}
		}

		// Tree 3 wants all parts of the metric, an owner and a host, and no series has both.
		rules := "[3:1:0:TAGK]"
		if p.Tags["host"] == "" {
			rules = "[3:2:0:TAGK]"
		}
		if strings.Contains(p.Metric, "..") {
			rules = "[3:0:0:METRIC] " + rules
		}
		add("3", tsuid, rules)
		if !strings.Contains(p.Metric, ".") && p.Tags["host"] == "" {
			add("2", tsuid, "[2:1:0:TAGK]")
		}
	}
	return cells
}

// checkTreeStep sends a request. After a put it waits until the series is in the trees.
func checkTreeStep(t *testing.T, b *bench, s treeStep, failed []conformance.Cell) (rule string, err error) {
	t.Helper()
	status, body := gatewaytest.Ask(t, s.Method, b.Gateway.URL()+strings.TrimPrefix(s.Path, "/"), s.Body)
	if strings.HasPrefix(s.Path, "/api/put") {
		b.Get("api/tree/branch?treeid=1")
	}

	want, rule := expectTreeStep(s, failed)
	if want.Body == nil || string(want.Body) == "null" {
		if status != want.Status || want.Text != "" && !strings.Contains(compare.ErrorMessage(body), want.Text) {
			err = fmt.Errorf("want status %d and %q, got %d %s", want.Status, want.Text, status, body)
		}
		return rule, err
	}

	body, shown, err := withoutHidden(want.Body, body)
	if err != nil {
		return rule, err
	}
	if shown {
		rule = "names that are equal but for their case are all shown"
	}
	permits := []compare.Permit{
		{Path: compare.Path{"error", "details"}, Reason: "free"},
		{Path: compare.Path{"error", "cut"}, Kinds: []compare.Kind{compare.Missing}, Reason: "marks a recording"},
		{Path: compare.Path{"**", "created"}, Kinds: []compare.Kind{compare.Value}, Reason: "the clock"},
		{Path: compare.Path{"**", "lastReceived"}, Kinds: []compare.Kind{compare.Value}, Reason: "the clock"},
	}
	if strings.HasPrefix(s.Path, "/api/tree/test") && s.Status == http.StatusOK {
		if want.Body, body, rule, err = lastTrial(s, want.Body, body); err != nil {
			return rule, err
		}
	}
	report, err := compare.Comparer{Permits: permits}.Answers(compare.Answer{Status: want.Status, Body: want.Body},
		compare.Answer{Status: status, Body: body})
	if err == nil && !report.Equal() {
		err = fmt.Errorf("%s", report)
	}
	return rule, err
}

// expectTreeStep returns the answer that is wanted for a step, and the rule by which it is not the
// recorded one. compatibility.md has the same rules.
func expectTreeStep(s treeStep, failed []conformance.Cell) (want gatewaytest.Expected, rule string) {
	message := compare.ErrorMessage(s.Response)
	if s.Status == http.StatusInternalServerError {
		rule = "bad JSON is the client's fault"
		for _, f := range []struct{ theirs, ours string }{
			{"Unrecognized rule type", "Unrecognized rule type"},
			{"Negative levels are not allowed", "Negative levels are not allowed"},
			{"Unclosed group", "bad regular expression '(('"},
			{"ClassCastException", "Missing or invalid Tree ID"},
		} {
			if strings.Contains(message, f.theirs) {
				return gatewaytest.Expected{Status: http.StatusBadRequest, Text: f.ours}, rule
			}
		}
	}
	for _, id := range []string{"2", "3"} {
		if s.Path+s.Body == "/api/tree/notmatched?treeid="+id ||
			s.Path+s.Body == `/api/tree/notmatched{"treeId": `+id+"}" {
			return gatewaytest.Expected{Status: s.Status, Body: failedAnswer(id, failed)},
				"series that are left out are reported"
		}
	}
	return gatewaytest.Expected{Status: s.Status, Body: s.Response}, ""
}

// failedAnswer is the answer about series that are not matched by a tree. OpenTSDB's is always
// empty.
func failedAnswer(id string, failed []conformance.Cell) json.RawMessage {
	out := map[string]string{}
	for _, c := range failed {
		if c.Row == "000"+id+"02" {
			rules, _ := hex.DecodeString(c.Value)
			out[strings.ToUpper(strings.TrimPrefix(c.Qualifier, hex.EncodeToString([]byte("tree_not_matched:"))))] =
				string(rules)
		}
	}
	text, _ := json.Marshal(out)
	return text
}

// withoutHidden removes from our branch what OpenTSDB hides: of names that differ only in case it
// shows one. shown reports whether there was any.
func withoutHidden(want, got []byte) (out []byte, shown bool, err error) {
	var w, g map[string]json.RawMessage
	if json.Unmarshal(want, &w) != nil || json.Unmarshal(got, &g) != nil || g["branchId"] == nil {
		return got, false, nil
	}
	for _, list := range []string{"branches", "leaves"} {
		var theirs, ours, kept []map[string]json.RawMessage
		if err := json.Unmarshal(w[list], &theirs); err != nil {
			return nil, false, err
		}
		if err := json.Unmarshal(g[list], &ours); err != nil {
			return nil, false, err
		}
		has := func(all []map[string]json.RawMessage, name string, same func(a, b string) bool) bool {
			return slices.ContainsFunc(all, func(x map[string]json.RawMessage) bool {
				return same(string(x["displayName"]), name)
			})
		}
		for _, x := range ours {
			name := string(x["displayName"])
			if !has(theirs, name, func(a, b string) bool { return a == b }) && has(theirs, name, strings.EqualFold) {
				shown = true
				continue
			}
			kept = append(kept, x)
		}
		if g[list], err = json.Marshal(kept); err != nil {
			return nil, false, err
		}
	}
	out, err = json.Marshal(g)
	return out, shown, err
}

// emptied is a list of branches that OpenTSDB has left empty after an earlier series of a trial.
var emptied = regexp.MustCompile(`"branches": *\[\]`)

// lastTrial leaves only the last series' branch of a trial to be compared. OpenTSDB shows that
// branch for all series of a request, because they share one object, with an empty list where an
// earlier series had added something.
func lastTrial(s treeStep, want, got []byte) (theirs, ours []byte, rule string, err error) {
	var w, g map[string]map[string]json.RawMessage
	if err := json.Unmarshal(want, &w); err != nil {
		return nil, nil, "", err
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return nil, nil, "", err
	}
	last := ""
	for tsuid := range w {
		if strings.LastIndex(s.Path+s.Body, tsuid) > strings.LastIndex(s.Path+s.Body, last) || last == "" {
			last = tsuid
		}
	}
	for tsuid := range w {
		if tsuid == last {
			w[tsuid]["branch"] = []byte(emptied.ReplaceAllString(string(w[tsuid]["branch"]), `"branches":null`))
			continue
		}
		rule = "a trial shows its own branches"
		var root struct {
			BranchID string
			Branches []any
			Leaves   []struct{ TSUID string }
		}
		if err := json.Unmarshal(g[tsuid]["branch"], &root); err != nil || root.BranchID == "" ||
			strings.Contains(string(g[tsuid]["branch"]), last) {
			return nil, nil, rule, fmt.Errorf("%s is not the branch of %s alone (%v)", g[tsuid]["branch"], tsuid, err)
		}
		delete(w[tsuid], "branch")
		delete(g[tsuid], "branch")
	}
	theirs, _ = json.Marshal(w)
	ours, _ = json.Marshal(g)
	return theirs, ours, rule, nil
}

// runTreeTool runs treesync or treepurge through the gateway, which has the store open.
func runTreeTool(t *testing.T, b *bench, s treeStep) error {
	t.Helper()
	settings, err := tools.ForConfig(b.Config)
	if err != nil {
		return err
	}
	settings.Gateway = strings.TrimSuffix(b.Gateway.URL(), "/")
	var out, errs strings.Builder
	env := &tools.Env{
		Settings: settings,
		Out:      &out,
		Err:      &errs,
		Open:     func(bool) (tools.Store, error) { return nil, store.ErrLocked },
	}
	i := slices.IndexFunc(tools.Commands(), func(c tools.Command) bool { return c.Name == s.Tool[0] })
	failed := tools.Commands()[i].Run(t.Context(), env, s.Tool[1:])
	if (failed != nil) != (s.Exit != 0) {
		return fmt.Errorf("got %w and %s, want exit %d", failed, out.String(), s.Exit)
	}
	return nil
}

// checkMetaCells compares the meta data of series and UIDs with what was recorded, except for
// the times of creation.
func checkMetaCells(t *testing.T, st store.Reader, recorded []conformance.Cell) {
	t.Helper()
	var want, got []string
	for _, c := range recorded {
		qualifier, err1 := hex.DecodeString(c.Qualifier)
		value, err2 := hex.DecodeString(c.Value)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if c.Table == "tsdb-meta" || strings.HasSuffix(string(qualifier), "_meta") {
			want = append(want, fmt.Sprintf("%s %s %s %s", c.Table, c.Row, qualifier, timeless(value)))
		}
	}
	for _, table := range []string{"tsdb-meta", "tsdb-uid"} {
		for row, err := range store.Rows(t.Context(), st, store.Scan{Table: table, Family: encoding.FamilyName}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range row.Cells {
				if table == "tsdb-meta" || strings.HasSuffix(string(c.Qualifier), "_meta") {
					got = append(got, fmt.Sprintf("%s %x %s %s", table, row.Key, c.Qualifier, timeless(c.Value)))
				}
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("meta data: -recorded +ours\n%.3000s", d)
	}
}

// checkTreeCells compares the cells of the tree table with those recorded and more.
func checkTreeCells(t *testing.T, st store.Reader, recorded, more []conformance.Cell) {
	t.Helper()
	var got []conformance.Cell
	for row, err := range store.Rows(t.Context(), st, store.Scan{Table: "tsdb-tree"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range row.Cells {
			got = append(got, conformance.Cell{
				Table:     "tsdb-tree",
				Row:       hex.EncodeToString(row.Key),
				Family:    encoding.FamilyData,
				Qualifier: hex.EncodeToString(c.Qualifier),
				Value:     timeless(c.Value),
			})
		}
	}
	var want []conformance.Cell
	for _, c := range slices.Concat(recorded, more) {
		if c.Table == "tsdb-tree" {
			value, err := hex.DecodeString(c.Value)
			if err != nil {
				t.Fatal(err)
			}
			c.Value = timeless(value)
			want = append(want, c)
		}
	}

	order := func(a, b conformance.Cell) int { return strings.Compare(a.Row+" "+a.Qualifier, b.Row+" "+b.Qualifier) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-recorded +ours\n%.5000s", d)
	}
}

// timeless returns a cell's value as text, without the time of its creation.
func timeless(value []byte) string {
	before, rest, found := strings.Cut(string(value), `,"created":`)
	if !found {
		return string(value)
	}
	digits := strings.IndexByte(rest, ',')
	if rest[:digits] == "0" {
		return string(value)
	}
	return before + `,"created":…` + rest[digits:]
}
