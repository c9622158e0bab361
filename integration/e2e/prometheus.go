package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a running Prometheus of the system's packages, with storage of its own.
type Prometheus struct {
	URL     string // http://127.0.0.1:PORT
	Addr    string // 127.0.0.1:PORT
	Process *Process

	dir string
}

// StartPrometheus starts a Prometheus and returns when it answers. files are its configuration, prometheus.yml, and
// what that names; SELF in their texts is the server's own host:port.
func StartPrometheus(ctx context.Context, files map[string]string) (*Prometheus, error) {
	root, err := Root()
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	program := filepath.Join(root, "build", "setup", "prometheus", "usr", "bin", "prometheus")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("start Prometheus: %s: %w", program, ErrNotSetUp)
	}
	port, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	dir, err := runDir("prometheus")
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	p := &Prometheus{Addr: "127.0.0.1:" + strconv.Itoa(port), dir: dir}
	p.URL = "http://" + p.Addr
	if err = p.write(files); err == nil {
		p.Process, err = Start(ctx, Command{Name: "prometheus", Path: program, Dir: dir, Args: []string{
			"--config.file=" + filepath.Join(dir, "prometheus.yml"), "--web.listen-address=" + p.Addr,
			"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.enable-lifecycle",
		}})
	}
	if err == nil {
		err = UntilProcess(ctx, p.Process, 50*time.Millisecond, func(ctx context.Context) error {
			return answers(ctx, p.URL+"/-/ready")
		})
	}
	if err != nil {
		if p.Process != nil {
			p.Process.Kill()
		}
		return nil, fmt.Errorf("start Prometheus, files kept in %s: %w", dir, err)
	}
	return p, nil
}

func (p *Prometheus) write(files map[string]string) error {
	for name, text := range files {
		text = strings.ReplaceAll(text, "SELF", p.Addr)
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Reload changes its files, and returns once it has taken them.
func (p *Prometheus) Reload(ctx context.Context, files map[string]string) error {
	if err := p.write(files); err != nil {
		return fmt.Errorf("reload Prometheus: %w", err)
	}
	a, err := Post(ctx, p.URL+"/-/reload", "")
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", a.Status, a.Body)
	}
	if err != nil {
		return fmt.Errorf("reload Prometheus: %w", err)
	}
	return nil
}

// Close ends the server and removes its files.
func (p *Prometheus) Close() error {
	return errors.Join(stopWithin(p.Process, time.Minute), os.RemoveAll(p.dir))
}

// CloseKeeping is Close, but leaves the files and returns where they are.
func (p *Prometheus) CloseKeeping() (files string, err error) {
	return p.dir, stopWithin(p.Process, time.Minute)
}
