package story

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Script is a story as it is written.
type Script struct {
	Path  string
	Steps []*Step
	tail  []string // lines behind the last step
}

// Step is one command of a story, and what it prints.
type Step struct {
	Line    int // in the file, from 1
	Command string
	Args    string // the rest of its line
	Input   []string
	Want    string // lines, each with its end

	before []string // comments and empty lines
}

const divider = "----"

// Read reads a story.
func Read(path string) (*Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Script{Path: path}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := 0; i < len(lines); {
		if isBetween(lines[i]) {
			s.tail = append(s.tail, lines[i])
			i++
			continue
		}
		end := i
		for end < len(lines) && lines[end] != "" {
			end++
		}
		block := lines[i:end]
		command, args, _ := strings.Cut(block[0], " ")
		step := &Step{Line: i + 1, Command: command, Args: args, Input: block[1:], before: s.tail}
		if at := slices.Index(block, divider); at >= 0 {
			step.Input, step.Want = block[1:at], joined(block[at+1:])
		}
		s.Steps, s.tail = append(s.Steps, step), nil
		i = end
	}
	return s, nil
}

// isBetween reports whether a line stands between steps.
func isBetween(line string) bool { return line == "" || strings.HasPrefix(line, "#") }

// Write writes a story with what its steps want.
func (s *Script) Write() error {
	var out bytes.Buffer
	for _, step := range s.Steps {
		out.WriteString(joined(step.before))
		fmt.Fprintln(&out, strings.TrimSuffix(step.Command+" "+step.Args, " "))
		out.WriteString(joined(step.Input))
		if step.Want != "" {
			fmt.Fprintln(&out, divider)
			out.WriteString(step.Want)
		}
	}
	out.WriteString(joined(s.tail))
	return os.WriteFile(s.Path, out.Bytes(), 0o644)
}

// The places that a story can name.
const (
	Embedded   = "embedded"   // a gateway on an embedded store
	HBase      = "hbase"      // gateways on a simulated HBase
	Simulation = "simulation" // these two, in simulated time
	OpenTSDB   = "opentsdb"   // a real OpenTSDB
	RealHBase  = "real hbase" // a gateway on a real HBase
)

// On reports whether the story runs in a place.
func (s *Script) On(place string) bool {
	named := map[string]bool{}
	for _, step := range s.Steps {
		if step.Command == "on" {
			named[step.Args] = true
		}
	}
	switch place {
	case OpenTSDB:
		return named[OpenTSDB]
	case RealHBase:
		return !named[Embedded] && !named[Simulation] && !s.uses("advance", "fault", "gateway")
	case Embedded:
		return !named[HBase]
	case HBase:
		return !named[Embedded]
	}
	return false
}

// settings returns those that the story begins with.
func (s *Script) settings() (map[string]string, error) {
	all := map[string]string{}
	for _, step := range s.Steps {
		if step.Command == "settings" {
			if err := addSettings(all, step.Input); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", s.Path, step.Line, err)
			}
		}
	}
	return all, nil
}

func addSettings(to map[string]string, lines []string) error {
	for _, line := range lines {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("got %q, want NAME=value", line)
		}
		to[name] = value
	}
	return nil
}

// Faulty reports whether the story lets the store fail.
func (s *Script) Faulty() bool { return s.uses("fault") }

func (s *Script) uses(commands ...string) bool {
	return slices.ContainsFunc(s.Steps, func(step *Step) bool { return slices.Contains(commands, step.Command) })
}

// joined returns lines as a text.
func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
