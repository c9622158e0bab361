package speed

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/workload"
)

// One host over all time: of a metric whose hours mostly have no row, and of one whose hours have
// very many. A query says start=0, and most of its hours lie before the data.
const (
	sparseHosts, sparseHours, sparseEach = 3, 455, 19 // a row of each host every so many hours
	denseHosts, denseHours               = 200, 1000
)

// hostOver is one host of a metric from a time on. Each round asks for another end.
func hostOver(metric string, start int64, rounds int) [][]workload.Query {
	end := sparseStart + sparseHours*sparseEach*3600
	batches := make([][]workload.Query, rounds+2)
	for i := range batches {
		batches[i] = []workload.Query{{Start: start, End: int64(end + 3600*24*365 + i), M: "sum:" + metric + "{host=h1}"}}
	}
	return batches
}

// sparseStart is when both metrics begin.
const sparseStart = 1_577_836_800

// allTime measures one host over all time next to OpenTSDB.
func allTime(ctx context.Context, s *stage, g group) error {
	return s.allTimeHBase(ctx, g, "", map[string]string{}, map[string]string{})
}

// allTimeSalted is allTime on tables with salt; each bucket is read.
func allTimeSalted(ctx context.Context, s *stage, g group) error {
	return s.allTimeHBase(ctx, g, ", 20 salt buckets", map[string]string{"DOWNPOUR_SALT_WIDTH": "1", "DOWNPOUR_SALT_BUCKETS": "20"},
		map[string]string{"tsd.storage.salt.width": "1", "tsd.storage.salt.buckets": "20"})
}

func (s *stage) allTimeHBase(ctx context.Context, g group, salt string, env, tsd map[string]string) (err error) {
	s.dropSet() // that of another row has other data
	s.set = tableSet{form: g.form, scale: g.scale}
	if s.set.tables, err = s.newTables(ctx); err != nil {
		return err
	}
	env["DOWNPOUR_RESULT_CACHE"] = "off"
	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: env, TSD: tsd}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return err
	}
	if err := putHosts(ctx, s.set.ours.Telnet); err != nil {
		return err
	}
	if err := s.hbase.Admin.Compact(ctx, s.set.tables.Data); err != nil {
		return err
	}
	if s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o)); err != nil {
		return err
	}
	for _, metric := range []string{"sparse", "dense"} {
		what := fmt.Sprintf("one host over all time, %s metric%s", metric, salt)
		if err := s.repeated(ctx, g, s.set.ours, hostOver(metric, 0, s.cfg.roundsAt(g.scale)), what, 1); err != nil {
			return err
		}
	}
	return nil
}

// allTimeEmbedded asks the embedded store for all time and for the hours from the first row on, which
// takes as long.
func allTimeEmbedded(ctx context.Context, s *stage, g group) (err error) {
	s.dropSet()
	s.set = tableSet{form: g.form, scale: g.scale}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, peer.Options{Env: map[string]string{"DOWNPOUR_RESULT_CACHE": "off"}})); err != nil {
		return err
	}
	if err := putHosts(ctx, s.set.ours.Telnet); err != nil {
		return err
	}
	rounds := 4 * s.cfg.roundsAt(g.scale) // of few milliseconds each
	for _, metric := range []string{"sparse", "dense"} {
		what := fmt.Sprintf("one host over all time, %s metric, embedded", metric)
		all, since := what+": all time", what+": since its first row"
		steps := []bench.Step{
			bench.Repeat(s.set.ours, "", since, hostOver(metric, sparseStart, rounds)),
			bench.Repeat(s.set.ours, since, all, hostOver(metric, 0, rounds)),
		}
		figures, err := s.measure(ctx, s.set.ours, steps, 1, rounds)
		if err != nil {
			return err
		}
		s.aim(within(g.rows[0], g, what, 1.5, figures[all], figures[since], "since the first row"))
	}
	return nil
}

// putHosts puts both metrics by telnet. Its answer to version says that they are stored.
func putHosts(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return err
	}
	w := bufio.NewWriter(c)
	for hour := range sparseHours {
		for host := range sparseHosts {
			fmt.Fprintf(w, "put sparse %d %d host=h%d\n", sparseStart+hour*sparseEach*3600, hour, host)
		}
	}
	for hour := range denseHours {
		for host := range denseHosts {
			fmt.Fprintf(w, "put dense %d %d host=h%d\n", sparseStart+hour*3600, hour, host)
		}
	}
	fmt.Fprint(w, "version\n")
	if err := w.Flush(); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if len(line) < 4 || line[:4] == "put:" {
		return fmt.Errorf("put: %s", line)
	}
	return nil
}
