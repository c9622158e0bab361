package replay

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway"
	"downpour/gateway/extra"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/differential"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/pebble"
)

// seed is that of the recordings. The numbers of questions are those of the short form of TestDifferential.
const (
	seed        = 1
	queries     = 300 // of all arrangements
	expressions = 500 // the same
	ofPuts      = 500 // about rollups, and about histograms
)

// patience is how long a test waits for what must come. Only a hang takes so long.
const patience = 5 * time.Minute

// A gateway answers drawn questions as OpenTSDB has answered them, to the last bit, except for the
// rules of compare: the questions are asked by turns on the embedded store, sealed or not, and on
// HBase.
func TestReplay_drawn(t *testing.T) {
	for _, a := range differential.Arrangements(seed) {
		t.Run(a.String(), func(t *testing.T) {
			t.Parallel()
			d := a.Data()
			r := load(t, a.Recording(seed), d.Digest())
			at := r.bothStores(t, a.Schema, func(cfg *gateway.Config) {
				if cfg.FixDuplicates = a.Lenient; a.Lenient {
					cfg.SkipUnresolved, cfg.ExpansionLimit = true, differential.ExpansionLimit
				}
			}, func(st gateway.Store, cfg *gateway.Config) {
				apply(t, st, cfg.TableUID, d.UID)
				apply(t, st, cfg.TableData, d.Rows)
			})
			at.append(a.Schema, a.Lenient)
			at.seal()
			qs, es := a.Questions(d, queries/4, expressions/4)
			for i, q := range qs {
				at.ask(i, q.Request(), func(p differential.Pair) differential.Comparison { return p.Compare(q) })
			}
			for i, e := range es {
				at.ask(i, e.Request(), func(p differential.Pair) differential.Comparison { return p.CompareExp(e) })
			}
		})
	}
}

// Rollups and histograms that were put into a gateway are answered as OpenTSDB has answered them over the same ones, of
// which it had taken every other itself. The UIDs are those that it had given.
func TestReplay_rollupsAndHistograms(t *testing.T) {
	rolled, puts := differential.Rollups(seed)
	histograms, more := differential.Histograms(seed)
	puts = append(puts, more...)
	r := load(t, "drawn_rollups_seed1", differential.PutDigest(puts))
	at := r.bothStores(t, encoding.DefaultSchema(), func(cfg *gateway.Config) {
		cfg.Rollups, cfg.Histograms = differential.RollupConfig(cfg.TableData), differential.HistogramConfig
	}, func(st gateway.Store, cfg *gateway.Config) {
		var cells []differential.Cell
		for _, c := range r.UID {
			cells = append(cells, differential.Cell{Cell: encoding.Cell{
				Row:       bytesOf(t, c[0]),
				Family:    c[1],
				Qualifier: bytesOf(t, c[2]),
				Value:     bytesOf(t, c[3]),
			}})
		}
		apply(t, st, cfg.TableUID, cells)
	})
	for _, p := range puts {
		for _, f := range at.fronts {
			a := f.ask(t, differential.Request(p))
			var stored struct{ Success, Failed int }
			if err := json.Unmarshal(a.Body, &stored); err != nil || stored.Failed > 0 || stored.Success == 0 {
				t.Fatalf("%s %s: status %d, want all stored: %.600s", f.store, p.Path, a.Status, a.Body)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	ask := func(i int, q differential.Query) {
		at.ask(i, q.Request(), func(p differential.Pair) differential.Comparison { return p.Compare(q) })
	}
	for i := range ofPuts {
		ask(i, differential.RandomRollupQuery(rng, rolled))
	}
	for i := range ofPuts {
		ask(i, differential.RandomHistogramQuery(rng, histograms, false))
	}
}

func bytesOf(t *testing.T, text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recording is what OpenTSDB has answered.
type recording struct {
	*testing.T
	conformance.Answers
}

// load reads the recording of a name, which must be of these rows.
func load(t *testing.T, name, rows string) *recording {
	t.Helper()
	r := &recording{T: t}
	if err := conformance.Decode(name, &r.Answers); err != nil {
		t.Fatal(err)
	}
	if r.Rows != rows {
		t.Fatalf("%s is of the rows %s, got %s of the generator: TestDifferential records it again with -update",
			name, r.Rows, rows)
	}
	return r
}

// answer is OpenTSDB's to a question.
func (r *recording) answer(q differential.Request) compare.Answer {
	a, ok := r.Asked[conformance.Key(q.Path, q.Body)]
	if !ok {
		r.Fatalf("nothing is recorded of %s %s: TestDifferential records it with -update", q.Path, q.Body)
	}
	return compare.Answer{Status: a.Status, Body: []byte(a.Body)}
}

// front is a gateway on a store.
type front struct {
	store, url string
	tables     gateway.Store
}

// fronts share out the questions of a recording.
type fronts struct {
	*recording
	fronts []front
}

// bothStores starts gateways on two empty embedded stores, one for seal to seal, and one on an empty HBase, each after
// the store is filled.
func (r *recording) bothStores(
	t *testing.T, schema encoding.Schema, change func(*gateway.Config),
	fill func(gateway.Store, *gateway.Config),
) fronts {
	t.Helper()
	at := fronts{recording: r}
	for _, name := range []string{"embedded", "HBase", sealedStore} {
		cfg, st := empty(t, name == "HBase", schema, change)
		fill(st, cfg)
		at.fronts = append(at.fronts, front{name, start(t, cfg, st), st})
	}
	return at
}

const sealedStore = "embedded, sealed"

// seal seals what is in the store whose rows are to be sealed.
func (f fronts) seal() {
	f.Helper()
	for _, at := range f.fronts {
		if at.store != sealedStore {
			continue
		}
		report, err := at.tables.Features().Seal(f.Context(), "tsdb", time.Time{},
			time.Unix(math.MaxUint32, 0), func(store.SealReport) error { return nil })
		if err != nil || report.Sealed == 0 {
			f.Fatalf("sealing: %+v, %v, want some rows sealed", report, err)
		}
		f.Logf("%d rows are sealed: %d bytes, %d before", report.Sealed, report.After, report.Before)
	}
}

// append writes the points of rows as they would be if a gateway had put them into the store whose rows are to be
// sealed: into append columns. Rows that cannot be read stay as they are.
func (f fronts) append(schema encoding.Schema, fixDuplicates bool) {
	f.Helper()
	for _, at := range f.fronts {
		if at.store != sealedStore {
			continue
		}
		var changes []store.Mutation
		d := encoding.RowDecoder{FixDuplicates: fixDuplicates}
		for rows, err := range store.Blocks(f.Context(), at.tables, store.Scan{Table: "tsdb", Family: "t"}) {
			if err != nil {
				f.Fatal(err)
			}
			for _, row := range rows {
				changes = append(changes, asAppended(&d, schema, row)...)
			}
		}
		if err := at.tables.Apply(f.Context(), "tsdb", changes); err != nil {
			f.Fatal(err)
		}
	}
}

// asAppended returns the changes that make one append column of a row's cells with points.
func asAppended(d *encoding.RowDecoder, schema encoding.Schema, row store.Row) (changes []store.Mutation) {
	key, err := schema.ParseRowKey(row.Key)
	if err != nil {
		return nil
	}
	d.Reset(key.BaseTime)
	id := bytes.Clone(row.Key)
	for _, c := range row.Cells {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return nil
		}
		if len(c.Qualifier)%2 == 0 || bytes.Equal(c.Qualifier, encoding.AppendColumn) {
			changes = append(changes, store.Mutation{
				Kind:      store.DeleteCell,
				Row:       id,
				Family:    "t",
				Qualifier: bytes.Clone(c.Qualifier),
			})
		}
	}
	var p encoding.Points
	if err := d.Finish(&p); err != nil || p.Len() == 0 {
		return nil
	}
	var entries []byte
	for i, ms := range p.Time {
		q := encoding.Qualifier{OffsetMS: int32(ms - int64(key.BaseTime)*1000), Float: p.Float[i]}
		q.Milli = q.OffsetMS%1000 != 0
		value := encoding.AppendInt(nil, int64(p.Bits[i]))
		if q.Float {
			value = encoding.AppendShortFloat(nil, math.Float64frombits(p.Bits[i]))
		}
		q.Width = len(value)
		entries = encoding.AppendEntry(entries, q, value)
	}
	return append(changes, store.Mutation{
		Kind:      store.Append,
		Row:       id,
		Family:    "t",
		Qualifier: encoding.AppendColumn,
		Value:     entries,
	})
}

// empty opens a store with empty tables.
func empty(
	t *testing.T, onHBase bool, schema encoding.Schema, change func(*gateway.Config),
) (*gateway.Config, gateway.Store) {
	t.Helper()
	cfg := &gateway.Config{
		Common: settings.Common{
			Store:       "pebble:test",
			TableData:   "tsdb",
			TableUID:    "tsdb-uid",
			TableMeta:   "tsdb-meta",
			TableTree:   "tsdb-tree",
			SaltWidth:   schema.SaltWidth,
			SaltBuckets: schema.SaltBuckets,
			MetricWidth: schema.MetricWidth,
			TagKWidth:   schema.TagKWidth,
			TagVWidth:   schema.TagVWidth,
		},
		Listen:           "127.0.0.1:0",
		PutCells:         "single",
		QueryTimeout:     patience,
		PutTimeout:       patience,
		PushdownPatience: patience,
		Extras:           extra.All(),
	}
	gateway.SettingsOf[hostmetrics.Settings](cfg).SelfMetrics = "0"
	var st gateway.Store
	var err error
	if onHBase {
		fake := hbasefake.For(t, hbasefake.Options{})
		cfg.Store, cfg.AutoMetrics = "hbase:"+fake.Address(), "true"
		st, err = hbase.Open(hbase.Config{Quorum: fake.Address(), VersionTimeout: patience})
	} else {
		st, err = pebble.Open("db", pebble.Options{FS: vfs.NewMem(), Grouping: schema.RowHours()})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	change(cfg)
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	return cfg, st
}

// start starts a gateway and returns its URL.
func start(t *testing.T, cfg *gateway.Config, st gateway.Store) string {
	t.Helper()
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSuffix(g.URL(), "/")
}

func apply(t *testing.T, st store.Writer, table string, cells []differential.Cell) {
	t.Helper()
	var all []store.Mutation
	for _, c := range cells {
		all = append(all, store.Mutation{
			Kind:      store.Put,
			Row:       c.Row,
			Family:    c.Family,
			Qualifier: c.Qualifier,
			Value:     c.Value,
			Timestamp: c.Timestamp,
		})
	}
	if err := st.Apply(t.Context(), table, all); err != nil {
		t.Fatal(err)
	}
}

// ask compares the answer to question i with the recorded one.
func (f fronts) ask(i int, q differential.Request, compared func(differential.Pair) differential.Comparison) {
	f.Helper()
	for j, at := range f.fronts {
		if !*gatewaytest.Whole && i%len(f.fronts) != j {
			continue
		}
		c := compared(differential.Pair{
			Theirs: f.answer,
			Ours:   func(q differential.Request) compare.Answer { return at.ask(f.T, q) },
		})
		if !c.Equal() {
			f.Errorf("%s, question %d, %s %s: error %v, %v\nOpenTSDB: %d %.1000s\nours:     %d %.1000s",
				at.store, i, q.Path, q.Body, c.Err, c.Report, c.Want.Status, c.Want.Body, c.Got.Status, c.Got.Body)
		}
	}
}

// ask asks the gateway.
func (f front) ask(t *testing.T, q differential.Request) compare.Answer {
	t.Helper()
	return f.send(t, "", q)
}

// send sends a request. Without a method it is a POST if it has a body, else a GET.
func (f front) send(t *testing.T, method string, q differential.Request) compare.Answer {
	t.Helper()
	switch {
	case method != "":
	case q.Body == "":
		method = http.MethodGet
	default:
		method = http.MethodPost
	}
	status, body := gatewaytest.Ask(t, method, f.url+q.Path, q.Body)
	return compare.Answer{Status: status, Body: body}
}
