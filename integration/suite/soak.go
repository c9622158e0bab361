package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// recordFile holds what soak came to, a line a run; see run.
const recordFile = "integration/soak.txt"

// soak gets what a target needs, runs a form of it with a seed, and returns the line of the record. What the target
// writes goes to the runner's output and to build/soak/NAME.log. The error is that of the run.
func (r *runner) soak(ctx context.Context, t target, form string, seed uint64, now time.Time) (run, error) {
	command := t.command(form)
	commit, err := r.commit(ctx)
	if err != nil {
		return run{}, err
	}
	line := run{target: t.name, form: form, commit: commit, seed: seed, day: now}
	logs := filepath.Join(r.root, "build", "soak")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return run{}, err
	}
	log, err := os.Create(filepath.Join(logs, t.name+"-"+form+".log"))
	if err != nil {
		return run{}, err
	}
	defer log.Close()
	both := io.MultiWriter(r.out, log)
	fmt.Fprintf(both, "== soak %s, %s form: TEST_SEED=%d %s ==\n", t.name, form, seed, strings.Join(command, " "))
	if len(t.setup) > 0 {
		if err := r.stream(ctx, both, 0, append([]string{"integration/setup/setup.sh"}, t.setup...)); err != nil {
			return run{}, fmt.Errorf("setup: %w", err)
		}
	}
	began := time.Now()
	err = r.stream(ctx, both, seed, command)
	line.minutes, line.passed = time.Since(began).Minutes(), err == nil
	if err != nil {
		line.note = firstFailure(log.Name(), err)
	} else if text, err := os.ReadFile(log.Name()); err == nil {
		line.note = whatCounted(string(text))
	}
	return line, err
}

// counts matches the line in which a test reports what it has counted, for the record.
var counts = regexp.MustCompile(`(?m)\bcounted: (\S+=.*)$`)

// whatCounted is what the log of a run reports as counted.
func whatCounted(log string) string {
	if m := counts.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}

// stream runs a command of soak to its end, or until ctx ends, and with it all that it started.
func (r *runner) stream(ctx context.Context, out io.Writer, seed uint64, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = r.root
	cmd.Stdout, cmd.Stderr = out, out
	if seed != 0 {
		cmd.Env = append(cmd.Environ(), "TEST_SEED="+strconv.FormatUint(seed, 10))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute // servers are ended in it
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// failing matches the line with which a test, a panic or a planted fault that survives announces itself.
var failing = regexp.MustCompile(`(?m)^\s*(--- FAIL: |panic: |fatal error: |SURVIVED |NOT RUN ).*`)

// firstFailure is the first line of a log that says what failed, else the error.
func firstFailure(log string, err error) string {
	text, readErr := os.ReadFile(log)
	if readErr != nil {
		return err.Error()
	}
	if line := failing.Find(text); line != nil {
		return strings.TrimSpace(string(line))
	}
	return err.Error()
}

// append adds lines to the record.
func (r *runner) record(lines ...run) error {
	f, err := os.OpenFile(filepath.Join(r.root, recordFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(f, line); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
