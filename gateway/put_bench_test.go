package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/store/pebble"
)

// putFrom is the first time of the benchmarks' points, a full hour.
const putFrom = 1700000000 - 1700000000%3600

// spelled has the points of one sender, as text of 1,000 points each.
type spelled [][]byte

// spell returns points of 1,000 series with three tags, a point every 10 s, in time order, dealt to
// senders by series. Every second series has floats.
func spell(
	points, senders int, format func(dst []byte, host int, at int64, value string) []byte,
	join func([]byte) []byte,
) []spelled {
	const series = 1000
	out := make([]spelled, senders)
	text, held := make([][]byte, senders), make([]int, senders)
	for i := range points {
		host, tick := i%series, i/series
		value := strconv.Itoa((i*7919 + tick*31) % 101)
		if host%2 == 1 {
			value += "." + strconv.Itoa(10+(i*104729)%90)
		}
		k := host % senders
		text[k] = format(text[k], host, putFrom+int64(tick)*10, value)
		if held[k]++; held[k] == 1000 || i >= points-senders {
			out[k] = append(out[k], join(text[k]))
			text[k], held[k] = nil, 0
		}
	}
	return out
}

func telnetLine(dst []byte, host int, at int64, value string) []byte {
	return fmt.Appendf(dst, "put cpu.user %d %s host=host-%06d region=region-%d dc=dc-%02d\n",
		at, value, host, host%9, host%27)
}

func jsonPoint(dst []byte, host int, at int64, value string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return fmt.Appendf(dst, `{"metric":"cpu.user","timestamp":%d,"value":%s,"tags":{"host":"host-%06d",`+
		`"region":"region-%d","dc":"dc-%02d"}}`,
		at, value, host, host%9, host%27)
}

// BenchmarkPut measures the whole path of points from two senders over loopback into the embedded
// store on disk, until all are acknowledged.
func BenchmarkPut(b *testing.B) {
	b.Run("telnet", func(b *testing.B) {
		lines := spell(b.N, 2, telnetLine, func(text []byte) []byte { return text })
		putAll(b, lines, sendLines)
	})
	b.Run("http", func(b *testing.B) {
		bodies := spell(b.N, 2, jsonPoint, func(text []byte) []byte {
			return append(append([]byte{'['}, text...), ']')
		})
		putAll(b, bodies, sendBodies)
	})
}

func putAll(b *testing.B, all []spelled, send func(*gateway.Server, spelled) error) {
	g := onDisk(b)
	b.ReportAllocs()
	b.ResetTimer()
	var work sync.WaitGroup
	for _, mine := range all {
		work.Go(func() {
			if err := send(g, mine); err != nil {
				b.Error(err)
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
}

// onDisk starts a gateway over an embedded store in a temporary directory.
func onDisk(b *testing.B) *gateway.Server {
	cfg := config(0)
	st, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	if err := tables.Create(b.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.Start(b.Context(), cfg, st, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close() })
	return g
}

func sendLines(g *gateway.Server, lines spelled) error {
	c, err := net.Dial("tcp", gatewaytest.Address(g))
	if err != nil {
		return err
	}
	defer c.Close()
	for _, text := range lines {
		if _, err := c.Write(text); err != nil {
			return err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if said, err := io.ReadAll(c); err != nil || len(said) > 0 {
		return fmt.Errorf("got %.100q, %v, want silence", said, err)
	}
	return nil
}

func sendBodies(g *gateway.Server, bodies spelled) error {
	for _, body := range bodies {
		resp, err := http.Post(g.URL()+"api/put", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		said, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusNoContent {
			return fmt.Errorf("status %d, %.100q, %v, want 204", resp.StatusCode, said, err)
		}
	}
	return nil
}
