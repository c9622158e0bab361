package backtrack

// op is the operation of an instruction.
type op int

const (
	opSet      op = iota // take a character of set, which costs x
	opSplit              // continue at x and, if that finds nothing, at y
	opJump               // continue at x
	opKeep               // keep the place in register x
	opTurn               // go on at y if the place is the one in register x: a turn of a loop has taken nothing
	opSub                // run what follows by itself, up to its opDone, and go on at y: an atomic group, or a look
	opRef                // take what the group x has found
	opBegin              // be at the start
	opEnd                // be at the end
	opBorder             // be at the border of a word
	opNoBorder           // be at none
	opDone               // the end of what is run by itself
)

// instruction is a step of a program.
type instruction struct {
	op   op
	set  *set
	x, y int
	look *look // of opSub, nil for an atomic group
}

// look is what an opSub looks at.
type look struct {
	behind, negative bool
	least, most      int // characters that are looked at behind
}

// compiler makes the program of an expression.
type compiler struct {
	program   []instruction
	registers int
	captures  bool // what groups find is referred to
	turns     bool // there is an opTurn
}

// add adds an instruction and returns where it is.
func (c *compiler) add(i instruction) int {
	c.program = append(c.program, i)
	return len(c.program) - 1
}

// operations are those of nodes that take no character.
var operations = map[kind]op{nodeBegin: opBegin, nodeEnd: opEnd, nodeBorder: opBorder, nodeNoBorder: opNoBorder}

// tooLong is the error of a program of more than maxInstructions.
var tooLong = unsupported("more than %d instructions once it is compiled", maxInstructions)

// emit adds the instructions of a node.
func (c *compiler) emit(n *node) error {
	if len(c.program) > maxInstructions {
		return tooLong
	}
	switch n.kind {
	case nodeSequence:
		for _, sub := range n.subs {
			if err := c.emit(sub); err != nil {
				return err
			}
		}
	case nodeChoice:
		return c.choice(n.subs)
	case nodeSet:
		c.add(instruction{op: opSet, set: n.set, x: n.set.cost()})
	case nodeRepeat:
		return c.repeat(n)
	case nodeCapture:
		if !c.captures {
			return c.emit(n.subs[0])
		}
		c.add(instruction{op: opKeep, x: 2 * n.n})
		err := c.emit(n.subs[0])
		c.add(instruction{op: opKeep, x: 2*n.n + 1})
		return err
	case nodeAtomic, nodeLook:
		return c.sub(n)
	case nodeReference:
		c.add(instruction{op: opRef, x: n.n})
	default:
		c.add(instruction{op: operations[n.kind]})
	}
	return nil
}

func (c *compiler) choice(ways []*node) error {
	var ends []int
	for i, way := range ways {
		split := -1
		if i < len(ways)-1 {
			split = c.add(instruction{op: opSplit})
			c.program[split].x = split + 1
		}
		if err := c.emit(way); err != nil {
			return err
		}
		if split >= 0 {
			ends = append(ends, c.add(instruction{op: opJump}))
			c.program[split].y = len(c.program)
		}
	}
	for _, end := range ends {
		c.program[end].x = len(c.program)
	}
	return nil
}

// sub adds a subprogram.
func (c *compiler) sub(n *node) error {
	at := c.add(instruction{op: opSub})
	if n.kind == nodeLook {
		l := &look{behind: n.behind, negative: n.negative}
		if n.behind {
			l.least, l.most, _ = n.subs[0].length()
		}
		c.program[at].look = l
	}
	err := c.emit(n.subs[0])
	c.add(instruction{op: opDone})
	c.program[at].y = len(c.program)
	return err
}

// repeat adds a repetition: as often as it must be, and then as often as it may.
func (c *compiler) repeat(n *node) error {
	// Java ends a repetition at an iteration that matches nothing, even before the minimum.
	if of := n.subs[0]; n.min > 1 && of.least() == 0 && !of.certain() {
		return &Unsupported{What: "a repetition, more than once, of what may take nothing", Otherwise: true}
	}
	for range n.min {
		before := len(c.program)
		if err := c.emit(n.subs[0]); err != nil {
			return err
		}
		if len(c.program) == before { // an empty expression, however often
			break
		}
	}
	if n.max == endless {
		return c.loop(n)
	}

	var ends []int
	for range n.max - n.min {
		ends = append(ends, c.split(n.lazy))
		before := len(c.program)
		if err := c.emit(n.subs[0]); err != nil {
			return err
		}
		if len(c.program) == before {
			break
		}
	}
	for _, at := range ends {
		c.exit(at, n.lazy, len(c.program))
	}
	return nil
}

// split adds the choice between another iteration, which follows, and the end, see exit.
func (c *compiler) split(lazy bool) int {
	at := c.add(instruction{op: opSplit})
	c.exit(at, !lazy, at+1)
	return at
}

// exit sets one of the two ways of a split: the second one, or the first where it is lazy.
func (c *compiler) exit(at int, lazy bool, to int) {
	if lazy {
		c.program[at].x = to
	} else {
		c.program[at].y = to
	}
}

// loop adds a repetition without a maximum.
func (c *compiler) loop(n *node) error {
	at := c.split(n.lazy)
	if n.subs[0].least() > 0 {
		err := c.emit(n.subs[0])
		c.add(instruction{op: opJump, x: at})
		c.exit(at, n.lazy, len(c.program))
		return err
	}

	// An iteration that matches nothing ends the repetition.
	register := c.registers
	c.registers++
	c.turns = true
	c.add(instruction{op: opKeep, x: register})
	err := c.emit(n.subs[0])
	turn := c.add(instruction{op: opTurn, x: register})
	c.add(instruction{op: opJump, x: at})
	c.program[turn].y = len(c.program)
	c.exit(at, n.lazy, len(c.program))
	return err
}
