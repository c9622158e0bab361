package tree

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"downpour/gateway/query"
)

// Compiled is a tree whose rules can be applied to series. It may be used by several
// goroutines.
type Compiled struct {
	Tree
	levels [][]rule // ascending; those without rules are left out
	custom bool
	steps  int
}

// rule is a rule whose regular expressions are compiled.
type rule struct {
	*Rule
	regex     *regexp.Regexp // nil without one
	separator *regexp.Regexp // nil without one, and with a regex, which wins
	steps     int
}

// Compile compiles the rules of a tree. Its error names the rule that cannot be applied
// here.
func Compile(t Tree) (*Compiled, error) {
	if len(t.Rules) > MaxRules {
		return nil, fmt.Errorf("Tree %d has %d rules, want at most %d", t.ID, len(t.Rules), MaxRules)
	}

	c := &Compiled{Tree: t}
	for i := range c.Rules {
		compiled, err := compileRule(&c.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", &c.Rules[i], err)
		}
		if c.steps += compiled.steps; c.steps > MaxSteps {
			return nil, fmt.Errorf("The regular expressions of tree %d have more than %d steps together", t.ID,
				MaxSteps)
		}

		c.custom = c.custom || compiled.Type.custom()
		// Rules ascend by level, so those of one level follow each other.
		if last := len(c.levels) - 1; last >= 0 && c.levels[last][0].Level == compiled.Level {
			c.levels[last] = append(c.levels[last], compiled)
		} else {
			c.levels = append(c.levels, []rule{compiled})
		}
	}
	return c, nil
}

// NeedsCustom reports whether a rule reads custom fields.
func (c *Compiled) NeedsCustom() bool { return c.custom }

// Bytes returns about the memory that a compiled tree takes.
func (c *Compiled) Bytes() int {
	n := 64 * c.steps
	for i := range c.Rules {
		r := &c.Rules[i]
		n += 300 + len(r.Field) + 2*len(r.Regex) + 2*len(r.Separator) + len(r.Description) + len(r.Notes) +
			len(r.CustomField) + len(r.DisplayFormat)
	}
	return n
}

// compileRule compiles a rule's regular expressions.
func compileRule(r *Rule) (out rule, err error) {
	out.Rule = r
	if r.Regex != "" { // as in OpenTSDB it wins over a separator
		out.regex, out.steps, err = query.CompileJava(r.Regex)
		return out, err
	}
	if r.Separator == "" {
		return out, nil
	}

	out.separator, out.steps, err = query.CompileJava(r.Separator)
	switch {
	case err != nil:
		return out, err
	case out.steps > MaxSeparatorSteps:
		return out, fmt.Errorf("Unsupported separator '%s': it has %d steps, want at most %d", r.Separator, out.steps,
			MaxSeparatorSteps)
	case mayMatchEmpty(out.separator):
		// Where such an expression matches between two others, Java and RE2 differ.
		return out, fmt.Errorf("Unsupported separator '%s': it matches an empty text; a character with a meaning in "+
			"regular expressions needs a backslash", r.Separator)
	}
	return out, nil
}

// mayMatchEmpty reports whether an expression may match an empty text somewhere.
func mayMatchEmpty(re *regexp.Regexp) bool {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	return err != nil || mayBeEmpty(parsed)
}

// mayBeEmpty reports whether a part of an expression may match an empty text.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpNoMatch, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !mayBeEmpty(sub) {
				return false
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if mayBeEmpty(sub) {
				return true
			}
		}
		return false
	}
	// Stars, question marks, what matches between characters, and sequences of these alone.
	return true
}
