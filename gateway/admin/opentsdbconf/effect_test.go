package opentsdbconf_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/gateway/admin/opentsdbconf"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// server is a gateway on a fake HBase with the settings of an OpenTSDB configuration file.
type server struct {
	*gatewaytest.Bench
	st *hbase.Store
}

func start(t *testing.T, conf string) *server {
	t.Helper()
	fake := hbasefake.For(t, hbasefake.Options{})
	c, err := opentsdbconf.Parse("conf",
		[]byte("tsd.core.auto_create_metrics=true\ntsd.storage.hbase.zk_quorum="+fake.Address()+"\n"+conf))
	if err != nil {
		t.Fatal(err)
	}
	variables, notes, err := c.Environment(map[string]string{"DOWNPOUR_LISTEN": "127.0.0.1:0"})
	if err != nil || len(notes) > 0 {
		t.Fatalf("notes %q, error %v", notes, err)
	}
	cfg, err := gatewaytest.Parse(variables)
	if err != nil {
		t.Fatal(err)
	}
	st, err := hbase.Open(hbase.Config{Quorum: strings.TrimPrefix(strings.TrimSuffix(cfg.Store, "/hbase"), "hbase:")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	return &server{gatewaytest.Serve(t, cfg, st), st}
}

// ask posts a body and wants a status and an answer that contains a text.
func (s *server) ask(path, body string, status int, want string) {
	s.Helper()
	a := s.Post(path, body, "Content-Type", "application/json")
	if a.Status != status || !strings.Contains(a.Body, want) {
		s.Errorf("%s %s: %d %s, want %d %s", path, body, a.Status, a.Body, status, want)
	}
}

func (s *server) put(name, tags string, status int, want string) {
	s.Helper()
	s.ask("api/put?details",
		fmt.Sprintf(`{"metric":%q,"timestamp":1356998400,"value":1,"tags":{%s}}`, name, tags), status, want)
}

const query = `{"start":1356998400,"end":1356998500,"queries":[{"aggregator":"sum","metric":"m","tags":{"a":%q}}]}`

// Each honoured key has the effect that it has in OpenTSDB, and without the key the gateway does
// the opposite.
func TestHonoured_effect(t *testing.T) {
	for name, f := range map[string]struct {
		key  string
		test func(s *server, on bool)
	}{
		"max_tags": {"tsd.storage.max_tags=1", func(s *server, on bool) {
			s.put("m", `"a":"b","c":"d"`, map[bool]int{true: 400, false: 200}[on],
				map[bool]string{true: "Too many tags", false: `"success":1`}[on])
		}},
		"allow_specialchars": {"tsd.core.tag.allow_specialchars=\\:", func(s *server, on bool) {
			s.put("m:n", `"a":"b"`, map[bool]int{true: 200, false: 400}[on], "")
		}},
		"auto_create_tagks": {"tsd.core.auto_create_tagks=false", func(s *server, on bool) {
			s.put("m", `"a":"b"`, map[bool]int{true: 400, false: 200}[on], "")
		}},
		"auto_create_tagvs": {"tsd.core.auto_create_tagvs=false", func(s *server, on bool) {
			s.put("m", `"a":"b"`, map[bool]int{true: 400, false: 200}[on], "")
		}},
		"enable_appends": {"tsd.storage.enable_appends=true", func(s *server, on bool) {
			s.put("m", `"a":"b"`, 200, "")
			if got := bytes.Equal(s.qualifier(), encoding.AppendColumn); got != on {
				s.Errorf("the point's qualifier is %x, want an append column: %t", s.qualifier(), on)
			}
		}},
		"skip_unresolved_tagvs": {"tsd.query.skip_unresolved_tagvs=true", func(s *server, on bool) {
			s.put("m", `"a":"b"`, 200, "")
			s.ask("api/query", fmt.Sprintf(query, "b|never"), map[bool]int{true: 200, false: 400}[on],
				map[bool]string{true: `"1356998400":1`, false: "never"}[on])
		}},
		"fix_duplicates": {"tsd.storage.fix_duplicates=true", func(s *server, on bool) {
			s.put("m", `"a":"b"`, 200, "")
			s.ask("api/put?details", `{"metric":"m","timestamp":1356998400000,"value":2,"tags":{"a":"b"}}`, 200, "")
			s.ask("api/query", fmt.Sprintf(query, "b"), map[bool]int{true: 200, false: 400}[on],
				map[bool]string{true: `"dps"`, false: "uplicate"}[on])
		}},
		"mode ro": {"tsd.mode=ro", func(s *server, on bool) {
			s.put("m", `"a":"b"`, map[bool]int{true: 404, false: 200}[on], "")
		}},
		"mode wo": {"tsd.mode=wo", func(s *server, on bool) {
			s.put("m", `"a":"b"`, 200, "")
			s.ask("api/v1/query", fmt.Sprintf(query, "b"), map[bool]int{true: 404, false: 200}[on], "")
		}},
		"salt": {"tsd.storage.salt.width=1\ntsd.storage.uid.width.tagv=4", func(s *server, on bool) {
			s.put("m", `"a":"b"`, 200, "")
			s.ask("api/query", fmt.Sprintf(query, "b"), 200, `"1356998400":1`)
			if got, want := len(s.row().Key), map[bool]int{true: 15, false: 13}[on]; got != want {
				s.Errorf("the row key has %d bytes, want %d", got, want)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f.test(start(t, f.key), true)
			f.test(start(t, ""), false)
		})
	}
}

// row returns the first row of the data table.
func (s *server) row() store.Row {
	s.Helper()
	sc, err := s.st.Scan(s.Context(), store.Scan{Table: "tsdb", Family: "t"})
	if err != nil {
		s.Fatal(err)
	}
	defer sc.Close()
	rows, err := sc.Next()
	if err != nil {
		s.Fatal(err)
	}
	r := store.Row{Key: bytes.Clone(rows[0].Key)}
	for _, c := range rows[0].Cells {
		r.Cells = append(r.Cells, store.Cell{Qualifier: bytes.Clone(c.Qualifier)})
	}
	return r
}

func (s *server) qualifier() []byte { return s.row().Cells[0].Qualifier }
