package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Python runs a script, given by its path in the module, in the environment
// with pyarrow that setup made, and returns what it wrote to standard output.
func Python(ctx context.Context, script string, args ...string) ([]byte, error) {
	return pythonOf(ctx, "venv", script, args)
}

// PythonClients runs a script as Python does, in the environment with the client
// libraries of OpenTSDB.
func PythonClients(ctx context.Context, script string, args ...string) ([]byte, error) {
	return pythonOf(ctx, "clients-venv", script, args)
}

// PythonOpenAPI runs a script as Python does, in the environment with a validator of OpenAPI.
func PythonOpenAPI(ctx context.Context, script string, args ...string) ([]byte, error) {
	return pythonOf(ctx, "openapi-venv", script, args)
}

// PythonIn runs the interpreter of the environment build/NAME that setup made with these
// arguments, and variables in addition to those of this process, and returns what it
// wrote to standard output.
func PythonIn(ctx context.Context, name string, env []string, args ...string) ([]byte, error) {
	python, err := interpreter(name)
	if err != nil {
		return nil, err
	}
	return runScript(ctx, env, python, args)
}

func pythonOf(ctx context.Context, environment, script string, args []string) ([]byte, error) {
	dir, err := Root()
	if err != nil {
		return nil, err
	}
	return interpret(ctx, environment, filepath.Join(dir, script), args)
}

// PythonFile is Python for a script anywhere.
func PythonFile(ctx context.Context, script string, args ...string) ([]byte, error) {
	return interpret(ctx, "venv", script, args)
}

// interpret runs a script in one of the Python environments that setup made.
func interpret(ctx context.Context, environment, script string, args []string) ([]byte, error) {
	return PythonIn(ctx, environment, nil, append([]string{script}, args...)...)
}

// interpreter returns the Python of an environment that setup made.
func interpreter(environment string) (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	python := filepath.Join(dir, "build", environment, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return "", fmt.Errorf("%s: %w", python, ErrNotSetUp)
	}
	return python, nil
}

// JavaWriters runs a Java program of one source file, given by its path in the module, with the metrics
// libraries that report to OpenTSDB, and returns what it wrote to standard output.
func JavaWriters(ctx context.Context, source string, args ...string) ([]byte, error) {
	class, err := classPath("writers")
	if err != nil {
		return nil, err
	}
	dir, main, err := javaClasses(ctx, source, class)
	if err != nil {
		return nil, err
	}
	return runScript(ctx, nil, "java",
		append([]string{"-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp", dir + ":" + class, main}, args...))
}

// Node runs a script of integration/browser, given by its path in the module,
// and returns what it wrote to standard output. The scripts drive Chromium
// through playwright-core; the variable CHROMIUM says where it is.
func Node(ctx context.Context, script string, args ...string) ([]byte, error) {
	dir, err := Root()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "integration", "browser", "node_modules", "playwright-core")); err != nil {
		return nil, fmt.Errorf("playwright-core: %w", ErrNotSetUp)
	}
	const shell = "chromium-headless-shell"
	chromium, err := exec.LookPath(shell)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shell, ErrNotSetUp)
	}
	return runScript(ctx, []string{"CHROMIUM=" + chromium}, "node",
		append([]string{filepath.Join(dir, script)}, args...))
}

// runScript runs an interpreter in a process group of its own, so that ending
// it at ctx's end also ends the browser it started. args begins with the script.
func runScript(ctx context.Context, env []string, interpreter string, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, interpreter, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s",
			filepath.Base(args[0]), errors.Join(err, context.Cause(ctx)), out.Bytes(), errs.Bytes())
	}
	return out.Bytes(), nil
}
