package chaos

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"downpour/integration/conformance"
	"downpour/integration/e2e"
)

// Site is one recording in tables of its own on a cluster, with a gateway and a
// pushdown server next to each region server.
type Site struct {
	Recording *Recording
	Tables    e2e.Tables
	Gateway   *e2e.Program
	Pushdown  []*e2e.Program // by region server
	// Tokens are of a gateway that finds its pushdown servers; without a file it has a list of them.
	Tokens Tokens

	cluster *e2e.HBase
	probes  []conformance.Query
	rows    [][]byte // row keys of the data table, ascending
}

// Tokens are a token file, and a token in it of scope admin.
type Tokens struct{ File, Admin string }

// OpenSite makes the tables, cut at the given keys, fills them and starts the
// servers. What it has started is in the site even if it fails; see Close.
func OpenSite(ctx context.Context, h *e2e.HBase, r *Recording, tokens Tokens, splits ...[]byte) (*Site, error) {
	s := &Site{
		Recording: r,
		Tokens:    tokens,
		cluster:   h,
		probes:    r.probes(),
		Tables:    e2e.TablesWithPrefix(strings.ReplaceAll(r.Name, "_", "")),
	}
	// The gateway needs the addresses of the pushdown servers, unless it finds them, and takes names and points.
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return h.Admin.CreateOpenTSDBTables(ctx, s.Tables, splits...) },
		s.startPushdown, s.startGateway, s.assign, s.put, s.listRows, s.flush,
	} {
		if err := step(ctx); err != nil {
			return s, fmt.Errorf("site %s: %w", r.Name, err)
		}
	}
	return s, nil
}

// env are the settings that gateway and pushdown servers share.
func (s *Site) env() map[string]string {
	env := map[string]string{
		"DOWNPOUR_RESULT_CACHE": "off", // remembered answers would keep the faults away from the rows
		"DOWNPOUR_STORE":        "hbase:" + s.cluster.Quorum(),
		"DOWNPOUR_TABLE_DATA":   s.Tables.Data, "DOWNPOUR_TABLE_UID": s.Tables.UID,
		"DOWNPOUR_TABLE_META": s.Tables.Meta, "DOWNPOUR_TABLE_TREE": s.Tables.Tree,
	}
	if strings.HasSuffix(s.Recording.Name, "_salted") {
		env["DOWNPOUR_SALT_WIDTH"] = "1"
	}
	if s.finds() {
		env["DOWNPOUR_TOKEN_FILE"] = s.Tokens.File
		env["DOWNPOUR_TABLE_STATE"] = s.Tables.Data + "-state"
	}
	return env
}

// finds reports whether the gateway finds its pushdown servers.
func (s *Site) finds() bool { return s.Tokens.File != "" }

// post and get send requests to the gateway with the token that it wants.
func (s *Site) post(ctx context.Context, path string, body any) (e2e.Answer, error) {
	return e2e.Post(ctx, s.Gateway.URL+path, body, "Authorization", "Bearer "+s.Tokens.Admin)
}

func (s *Site) get(ctx context.Context, path string) (e2e.Answer, error) {
	return e2e.Get(ctx, s.Gateway.URL+path, "Authorization", "Bearer "+s.Tokens.Admin)
}

// startPushdown starts a pushdown server next to each region server.
func (s *Site) startPushdown(ctx context.Context) error {
	for i := range s.cluster.Len() {
		env := s.env()
		env["DOWNPOUR_BESIDE"] = s.cluster.RegionServerAddr(i)
		if s.finds() {
			port, err := e2e.FreePort()
			if err != nil {
				return err
			}
			address := fmt.Sprintf("127.0.0.1:%d", port)
			env["DOWNPOUR_PUSHDOWN_LISTEN"], env["DOWNPOUR_ANNOUNCE"] = address, address
		}
		p, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env})
		if err != nil {
			return err
		}
		s.Pushdown = append(s.Pushdown, p)
	}
	return nil
}

// startGateway starts a gateway that knows the site's pushdown servers, or finds them.
func (s *Site) startGateway(ctx context.Context) (err error) {
	env := s.env()
	var servers []string
	for _, p := range s.Pushdown {
		servers = append(servers, p.Addr)
	}
	if s.finds() {
		servers = []string{"auto"}
	}
	maps.Copy(env, map[string]string{"DOWNPOUR_PUSHDOWN": strings.Join(servers, ","), "DOWNPOUR_AUTO_METRICS": "true"})
	s.Gateway, err = e2e.StartGateway(ctx, e2e.ProgramOptions{Env: env})
	return err
}

// assign gives the names their UIDs in the recorded order, for the salts are made of the UIDs.
func (s *Site) assign(ctx context.Context) error {
	for _, a := range s.Recording.Assign {
		kind := strings.TrimSuffix(a[0], "s")
		answer, err := s.post(ctx, "/api/uid/assign", map[string][]string{kind: {a[1]}})
		if err == nil && answer.Status != 200 {
			err = fmt.Errorf("assign %s %s: status %d: %s", a[0], a[1], answer.Status, answer.Body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put puts the recorded points.
func (s *Site) put(ctx context.Context) error {
	for points := s.Recording.Points; len(points) > 0; {
		n := min(len(points), 2000)
		a, err := s.post(ctx, "/api/put", points[:n])
		if err == nil && a.Status != 204 {
			err = fmt.Errorf("put: status %d: %s", a.Status, a.Body)
		}
		if err != nil {
			return err
		}
		points = points[n:]
	}
	return nil
}

// listRows lists the row keys of the data table, for splits at them.
func (s *Site) listRows(ctx context.Context) error {
	cells, err := s.cluster.Admin.Scan(ctx, s.Tables.Data)
	for _, c := range cells {
		if n := len(s.rows); n == 0 || !bytes.Equal(s.rows[n-1], c.Row) {
			s.rows = append(s.rows, c.Row)
		}
	}
	return err
}

// flush writes the tables to files where a killed region server may lose what is
// in its log alone.
func (s *Site) flush(ctx context.Context) error {
	if s.cluster.Durable() {
		return nil
	}
	return errors.Join(s.cluster.Admin.Flush(ctx, s.Tables.Data), s.cluster.Admin.Flush(ctx, s.Tables.UID))
}

// Close ends the site's processes. With keep their files stay, and it returns
// where they are.
func (s *Site) Close(keep bool) (files []string, err error) {
	programs := s.Pushdown
	if s.Gateway != nil {
		programs = append(programs, s.Gateway)
	}
	for _, p := range programs {
		if !keep {
			err = errors.Join(err, p.Close())
			continue
		}
		dir, closeErr := p.CloseKeeping()
		files, err = append(files, dir), errors.Join(err, closeErr)
	}
	return files, err
}

// answered puts the fixed questions and returns an error unless all are
// answered as recorded.
func (s *Site) answered(ctx context.Context) error {
	for _, q := range s.probes {
		if o := s.ask(ctx, q); o.Kind != Equal {
			return fmt.Errorf("site %s: %s: %s", s.Recording.Name, o.Kind, o.Detail)
		}
	}
	return nil
}

// placement is a part of a plan as explain=true shows it.
type placement struct {
	Range  [2]string
	Server string
}

// placed returns an error unless every part of queries over all rows would go to
// the pushdown server next to its region.
func (s *Site) placed(ctx context.Context) error {
	regions, err := s.cluster.Admin.Regions(ctx, s.Tables.Data)
	if err != nil {
		return err
	}
	for _, metric := range s.Recording.metrics() {
		parts, err := s.explain(ctx, metric)
		if err != nil {
			return err
		}
		for _, p := range parts {
			start, err := hex.DecodeString(p.Range[0])
			if err != nil {
				return err
			}
			if want := s.beside(serverOf(regions, start)); p.Server != want {
				return fmt.Errorf("site %s: part %v is placed at %s, want %s",
					s.Recording.Name, p.Range, p.Server, want)
			}
		}
	}
	return nil
}

// explain returns the parts of a query over all rows of a metric, as the gateway would place them now.
func (s *Site) explain(ctx context.Context, metric string) ([]placement, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a, err := s.get(ctx, "/api/query?start=1&end="+strconv.Itoa(1<<31-1)+"&explain=true&m=sum:"+metric)
	if err != nil {
		return nil, err
	}
	var e struct{ Parts []placement }
	if err := json.Unmarshal(a.Body, &e); err != nil || len(e.Parts) == 0 {
		return nil, fmt.Errorf("explain of %s: status %d: %.200s", metric, a.Status, a.Body)
	}
	return e.Parts, nil
}

// serverOf returns the server of the region that has a key, "" if none has.
func serverOf(regions []e2e.Region, key []byte) string {
	for _, r := range regions {
		if bytes.Compare(key, r.Start) >= 0 && (len(r.Stop) == 0 || bytes.Compare(key, r.Stop) < 0) {
			return r.Server
		}
	}
	return ""
}

// beside is the address of the pushdown server next to a region server; "none", where no part
// is ever placed, if there is none.
func (s *Site) beside(regionServer string) string {
	for i := range s.Pushdown {
		if s.cluster.RegionServerAddr(i) == regionServer {
			return s.Pushdown[i].Addr
		}
	}
	return "none"
}
