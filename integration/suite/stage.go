package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stage is a step of make test: a command, and the processor time that it may take. Time of the
// processor, and not of the clock, so that a busy machine breaks no budget.
type stage struct {
	name    string
	command []string
	budget  time.Duration
	// Begins a line of the output for each unit of its work; empty if a change does not decide how
	// much there is.
	unit  string
	each  time.Duration // is added to the budget for each unit
	needs []string      // stages that must have passed
	tests bool          // the command is go test -json
}

// atOnce is how many stages run side by side: some wait for the network and for servers while others
// compile.
const atOnce = 2

// result is what a stage came to.
type result struct {
	stage     stage
	wall, cpu time.Duration
	summary   summary
	err       error
}

// runner runs stages in the module at root.
type runner struct {
	root string
	out  io.Writer
	mu   sync.Mutex // of out: the text of one stage stays together
}

// runAll runs the stages in their order, atOnce at a time, each after those that it needs. After a failure
// no further stage begins. It returns the results of those that ran, in the order in which they ended.
func (r *runner) runAll(ctx context.Context, stages []stage) ([]result, error) {
	var (
		results []result
		failed  error
		ended   = make(chan result)
		waiting = slices.Clone(stages)
		running int
	)
	for {
		for failed == nil && running < atOnce {
			i := slices.IndexFunc(waiting, func(s stage) bool { return ready(s, stages, results) })
			if i < 0 {
				break
			}
			s := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			running++
			go func() { ended <- r.run(ctx, s) }()
		}
		if running == 0 {
			break
		}
		done := <-ended
		running--
		results = append(results, done)
		if done.err != nil && failed == nil {
			failed = fmt.Errorf("stage %s: %w", done.stage.name, done.err)
		}
	}
	if failed == nil && len(waiting) > 0 {
		failed = fmt.Errorf("stage %s needs %v, which are not among the stages", waiting[0].name, waiting[0].needs)
	}
	return results, failed
}

// ready reports whether all stages that s needs have ended. A needed stage that is not part of the run counts
// as done: the developer chose the stages.
func ready(s stage, all []stage, ended []result) bool {
	for _, need := range s.needs {
		part := slices.ContainsFunc(all, func(o stage) bool { return o.name == need })
		done := slices.ContainsFunc(ended, func(o result) bool { return o.stage.name == need })
		if part && !done {
			return false
		}
	}
	return true
}

// run runs one stage, and prints what it wrote when it has ended.
func (r *runner) run(ctx context.Context, s stage) result {
	var text strings.Builder
	res := result{stage: s}
	began := time.Now()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Dir = r.root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if s.tests {
		res.summary, res.err = readTests(cmd, &text)
	} else {
		cmd.Stdout, cmd.Stderr = &text, &text
		res.err = cmd.Run()
	}
	res.wall = time.Since(began)
	if state := cmd.ProcessState; state != nil {
		res.cpu = state.UserTime() + state.SystemTime() // of its children, too
	}
	if s.unit != "" {
		res.stage.budget += time.Duration(strings.Count("\n"+text.String(), "\n"+s.unit)) * s.each
	}
	if budget := res.stage.budget; res.err == nil && budget > 0 && res.cpu > 2*budget {
		res.err = fmt.Errorf("took %.0f s of the processor, more than twice its budget of %.0f s",
			res.cpu.Seconds(), budget.Seconds())
	}
	if err := r.keepList(res); res.err == nil {
		res.err = err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(res, text.String())
	return res
}

// readTests runs go test -json.
func readTests(cmd *exec.Cmd, out io.Writer) (summary, error) {
	events, err := cmd.StdoutPipe()
	if err != nil {
		return summary{}, err
	}
	cmd.Stderr = cmd.Stdout // lines that are no events
	if err := cmd.Start(); err != nil {
		return summary{}, err
	}
	s, readErr := summarize(events, out)
	err = cmd.Wait()
	if err == nil {
		err = readErr
	}
	if err == nil && len(s.tests) == 0 {
		err = fmt.Errorf("no test ran")
	}
	return s, err
}

func (r *runner) print(res result, text string) {
	fmt.Fprintf(r.out, "== %s: %s ==\n%s", res.stage.name, strings.Join(res.stage.command, " "), text)
	for _, failed := range res.summary.failed {
		fmt.Fprintln(r.out, "FAILED", failed)
	}
	if len(res.summary.tests) > 0 {
		fmt.Fprintf(r.out, "%d tests; the slowest:\n", len(res.summary.tests))
		for _, t := range res.summary.slowest(20) {
			fmt.Fprintf(r.out, "%8.2f s  %s\n", t.seconds, t)
		}
	}
	fmt.Fprintln(r.out, res)
}

func (res result) String() string {
	verdict := "passed"
	if res.err != nil {
		verdict = "FAILED: " + res.err.Error()
	} else if res.stage.budget > 0 && res.cpu > res.stage.budget {
		verdict = "passed, WARNING: over its budget"
	}
	return fmt.Sprintf("stage %-12s %6.1f s, processor %6.1f of %.0f s, %s",
		res.stage.name, res.wall.Seconds(), res.cpu.Seconds(), res.stage.budget.Seconds(), verdict)
}

// keepList writes the names of the stage's tests to build/tests/NAME.txt, so that two runs can be compared.
func (r *runner) keepList(res result) error {
	if !res.stage.tests {
		return nil
	}
	dir := filepath.Join(r.root, "build", "tests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := strings.Join(res.summary.list(), "\n") + "\n"
	return os.WriteFile(filepath.Join(dir, res.stage.name+".txt"), []byte(text), 0o644)
}
