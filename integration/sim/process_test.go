package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/process/network/networktest"
	"downpour/pushdown/store/hbase"
)

func gatewayAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", 42_420+i) }

// drawSettings draws the settings of a gateway, as its environment.
func drawSettings(r *rand.Rand) map[string]string {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	return map[string]string{
		"DOWNPOUR_AUTO_METRICS":  "true",
		"DOWNPOUR_ALLOW_DELETE":  "true",
		"DOWNPOUR_QUERY_TIMEOUT": pick("10s", "30s", "120s"),
		"DOWNPOUR_PUT_TIMEOUT":   pick("5s", "30s", "10m"),
		"DOWNPOUR_RESULT_CACHE":  pick("off", "128MiB", "64KiB"),
		"DOWNPOUR_SEEK":          pick("true", "false"),
		"DOWNPOUR_MEMORY":        "1GiB",
	}
}

// process is a program on a machine of its own, which is started again when it ends by itself, as a supervisor does.
type process struct {
	w    *World
	kind string
	name string // the kind and its number
	// run serves until ctx ends, and then ends as on a signal.
	run func(ctx context.Context, host *networktest.Host) error

	mu      sync.Mutex
	running *running
}

// running is what runs of a process.
type running struct {
	host *networktest.Host
	end  context.CancelFunc
	gone chan struct{}
}

// start starts the process, unless it runs.
func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{host: networktest.NewHost(&p.w.network), end: cancel, gone: make(chan struct{})}
	p.running = r
	go func() {
		defer close(r.gone)
		for ctx.Err() == nil {
			if err := p.run(ctx, r.host); err != nil {
				p.w.note("%s ends: %v", p.name, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
}

// stop ends the process as a signal does, and waits until it has ended.
func (p *process) stop() {
	if r := p.take(); r != nil {
		r.end()
		<-r.gone
	}
}

// kill ends the process: to others it is dead at once, and what it still does reaches nobody.
func (p *process) kill() {
	if r := p.take(); r != nil {
		r.host.Cut()
		p.w.ground.killed()
		r.end()
		p.w.dying.Go(func() { <-r.gone })
	}
}

// hang lets the process stand still for a time, with its connections open, as one that is suspended.
func (p *process) hang(d time.Duration) {
	p.mu.Lock()
	r := p.running
	p.mu.Unlock()
	if r != nil {
		r.host.Stall()
		p.w.rest(d)
		r.host.Resume()
	}
}

func (p *process) take() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running
	p.running = nil
	return r
}

// newGateway returns a gateway that does not run yet, with drawn settings.
func (w *World) newGateway(i int) *process {
	settings := drawSettings(w.rand(fmt.Sprint("gateway ", i)))
	settings["DOWNPOUR_LISTEN"] = gatewayAddress(i)
	maps.Copy(settings, w.ground.settings(w.rand(fmt.Sprint("ground of gateway ", i))))
	maps.Copy(settings, w.recorded.settings)
	maps.Copy(settings, w.jobs)
	cfg, err := gatewaytest.Parse(settings, extra.All()...)
	if err != nil {
		w.t.Fatal(err)
	}
	proof := hbase.ProofExact
	if cfg.ProofByTimestamps() {
		proof = hbase.ProofTimestamps
	}
	w.note("gateway %d: %v", i, settings)
	w.settings = cfg
	const kind = "gateway"
	name := fmt.Sprint(kind, " ", i)
	return &process{w: w, kind: kind, name: name, run: func(ctx context.Context, host *networktest.Host) error {
		mine := *cfg
		mine.Network = host
		st, err := w.ground.open(name, host, proof)
		if err != nil {
			return err
		}
		defer st.Close()
		g, err := gateway.Start(ctx, &mine, st, w.log(name))
		if err != nil {
			return err
		}
		<-ctx.Done()
		return g.Close()
	}}
}
