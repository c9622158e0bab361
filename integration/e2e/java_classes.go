package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// javaClasses compiles a Java program of one source file, given by its path in the module, once for this source,
// class path and Java, and returns the directory of its classes, build/java/NAME-KEY, and the class to start.
func javaClasses(ctx context.Context, source, class string) (dir, main string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	main = strings.TrimSuffix(filepath.Base(source), ".java")
	key, err := javaKey(filepath.Join(root, source), class)
	if err != nil {
		return "", "", fmt.Errorf("compile %s: %w", source, err)
	}
	dir = filepath.Join(root, "build", "java", main+"-"+key)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", "", err
	}
	unlock, err := lockFile(filepath.Join(filepath.Dir(dir), ".lock"))
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, main, err
	}
	if err := compileJava(ctx, filepath.Join(root, source), class, dir); err != nil {
		return "", "", fmt.Errorf("compile %s: %w", source, err)
	}
	return dir, main, nil
}

// javaKey identifies what the classes depend on: the source, the libraries, and which Java is installed.
func javaKey(source, class string) (string, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", err
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		return "", err
	}
	info, err := os.Stat(java)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %v", text, class, java, info.Size(), info.ModTime().UnixNano())
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// compileJava puts the classes into dir all at once, so that a compiler that was ended leaves nothing that looks
// like a program. The compiler is a module of every Java that can run a source file.
func compileJava(ctx context.Context, source, class, dir string) error {
	made, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made) // nothing is there any more if it went well
	args := append(append([]string{}, sparing...), "-XX:-UsePerfData", "-m", "jdk.compiler/com.sun.tools.javac.Main",
		"-proc:none", "-nowarn", "-cp", class, "-d", made, source)
	if out, err := exec.CommandContext(ctx, "java", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", errors.Join(err, context.Cause(ctx)), out)
	}
	return os.Rename(made, dir)
}
