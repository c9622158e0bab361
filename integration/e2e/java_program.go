package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// JavaProgram is a running Java program of one source file with a cluster's classes and
// configuration. Commands go in and answers come out a line each: the words of a command are parted
// by tabs; its answer is any lines "-<tab>DATA" and then "ok" or "error<tab>REASON". Its methods
// may be called from several goroutines; calls run one after the other.
type JavaProgram struct {
	mu      sync.Mutex
	command Command
	process *Process
	answers *bufio.Reader
}

// StartJava starts a program whose source is a path in the repository, compiled before or now. The log NAME.log is
// in the cluster's directory.
func (h *HBase) StartJava(
	ctx context.Context, name, source string, heapMiB int, flags ...string,
) (*JavaProgram, error) {
	classes, main, err := javaClasses(ctx, source, h.class)
	if err != nil {
		return nil, err
	}
	args := append(append(javaFlags(h.dir, classes+":"+h.class, heapMiB), h.securedFlags()...), flags...)
	p := &JavaProgram{
		command: Command{Name: name, Path: "java", Dir: h.dir, Interactive: true, Args: append(args, main)},
	}
	return p, p.start(ctx)
}

// start starts the program, also again after it has ended.
func (p *JavaProgram) start(ctx context.Context) error {
	process, err := Start(ctx, p.command)
	if err != nil {
		return err
	}
	p.process, p.answers = process, bufio.NewReaderSize(process.Stdout, 1<<20)
	return nil
}

// Close ends the program. A call would start it again.
func (p *JavaProgram) Close() {
	if p.process == nil {
		return
	}
	p.process.Kill()
	_ = p.process.Stdin.Close()
	_ = p.process.Stdout.Close()
}

// errJava is an answer "error …" of the program.
var errJava = errors.New("Java program")

// Call sends one command and returns its data lines. When
// ctx ends first the program is killed, for its answer would be taken for that
// of the next call, which starts it again.
func (p *JavaProgram) Call(ctx context.Context, words ...string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process.Err() != nil {
		p.Close()
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, p.process.Kill)
	lines, err := p.call(words)
	if !stop() { // ctx has ended, and the program is being killed
		<-p.process.Done()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return lines, nil
}

// call sends one command and reads its answer: lines that begin with "-", then "ok", or "error" with a reason.
func (p *JavaProgram) call(words []string) ([]string, error) {
	if _, err := p.process.Stdin.Write([]byte(strings.Join(words, "\t") + "\n")); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.process.LogTail(20))
	}
	var lines []string
	for {
		line, err := p.answers.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, p.process.LogTail(20))
		}
		line = strings.TrimSuffix(line, "\n")
		switch status, rest, _ := strings.Cut(line, "\t"); status {
		case "ok":
			return lines, nil
		case "error":
			return nil, fmt.Errorf("%w: %s", errJava, rest)
		case "-":
			lines = append(lines, rest)
		default:
			return nil, fmt.Errorf("answer %q is none of ok, error, -", line)
		}
	}
}
