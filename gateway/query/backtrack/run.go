package backtrack

// machine runs a program on a name.
type machine struct {
	program   []instruction
	text      []rune
	registers []int // two for each group, -1 for a place that is not known, then those of loops
	stepsLeft int64 // steps that it may still take; below 0 it has stopped
	stack     []choice
	stateless bool
	failed    []uint64 // a bit for each instruction and place from which there is no way, if stateless
}

// choice is another way to take or, on the way back to one, a register to restore or a failure to keep.
type choice struct {
	kind  int // one of those below
	at    int // of the program, or the register
	place int // in the text, or what the register was
}

const (
	another = iota
	restore
	failure
)

// find reports whether the program finds something, at any place.
func (m *machine) find(atStart bool) bool {
	for i := range m.registers {
		m.registers[i] = -1
	}
	for place := 0; place <= len(m.text) && m.stepsLeft >= 0; place++ {
		if _, ok := m.run(0, place, -1); ok {
			return true
		}
		if atStart {
			break
		}
	}
	return false
}

// run runs the program from an instruction and a place on, up to opDone, where the place must be the one of end unless
// that is -1. It returns the place at its end.
func (m *machine) run(at, place, end int) (int, bool) {
	base := len(m.stack)
	notesFailures := m.stateless && end < 0
	for {
		if m.stepsLeft--; m.stepsLeft < 0 {
			return 0, false
		}
		in := &m.program[at]
		ok := true
		at++
		switch in.op {
		case opSet:
			m.stepsLeft -= int64(in.x) //fault:classes-for-nothing TestExpression_stepsOfClasses
			ok = place < len(m.text) && in.set.has(m.text[place])
			place++
		case opSplit:
			if notesFailures {
				if ok = !m.hasFailed(at, place); !ok {
					break
				}
				m.push(choice{failure, at, place})
			}
			m.push(choice{another, in.y, place})
			at = in.x
		case opJump:
			at = in.x
		case opKeep:
			m.push(choice{restore, in.x, m.registers[in.x]})
			m.registers[in.x] = place
		case opTurn:
			if m.registers[in.x] == place {
				at = in.y
			}
		case opSub:
			place, ok = m.sub(at, place, in.look)
			at = in.y
		case opRef:
			place, ok = m.refer(in.x, place)
		case opDone:
			if ok = end < 0 || place == end; ok {
				m.commit(base)
				return place, true
			}
		default:
			ok = m.isAt(in.op, place)
		}
		if m.stepsLeft < 0 {
			return 0, false
		}
		if !ok {
			if at, place, ok = m.back(base); !ok {
				return 0, false
			}
		}
	}
}

// maxStack bounds the memory of a search, to 6 MiB. One that needs more ends as one of too many
// steps.
const maxStack = 1 << 18

func (m *machine) push(c choice) {
	if m.stack = append(m.stack, c); len(m.stack) > maxStack {
		m.stepsLeft = -1
	}
}

// back returns to the last choice above base, and restores the registers.
func (m *machine) back(base int) (at, place int, ok bool) {
	for len(m.stack) > base {
		last := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		switch last.kind {
		case another:
			return last.at, last.place, true
		case restore:
			m.registers[last.at] = last.place
		case failure:
			m.noteFailed(last.at, last.place)
		}
	}
	return 0, 0, false
}

// bit returns the bit of an instruction and a place.
func (m *machine) bit(at, place int) (word int, mask uint64) {
	n := at*(len(m.text)+1) + place
	return n / 64, 1 << (n % 64)
}

func (m *machine) hasFailed(at, place int) bool {
	word, mask := m.bit(at, place)
	return m.failed != nil && m.failed[word]&mask != 0
}

func (m *machine) noteFailed(at, place int) {
	if m.failed == nil {
		m.failed = make([]uint64, len(m.program)*(len(m.text)+1)/64+1)
	}
	word, mask := m.bit(at, place)
	m.failed[word] |= mask //fault:failure-of-another-place TestExpression_steps
}

// commit gives the other ways above base up, but keeps what the registers were.
func (m *machine) commit(base int) {
	kept := m.stack[:base]
	for _, c := range m.stack[base:] {
		if c.kind == restore {
			kept = append(kept, c)
		}
	}
	m.stack = kept
}

// sub runs what an opSub looks at, or an atomic group, and returns the place to go on at.
func (m *machine) sub(at, place int, l *look) (int, bool) {
	base := len(m.stack)
	after, ok := place, false
	switch {
	case l == nil:
		return m.run(at, place, -1)
	case l.behind:
		for begin := place - l.least; begin >= 0 && begin >= place-l.most && !ok && m.stepsLeft >= 0; begin-- {
			_, ok = m.run(at, begin, place)
		}
	default:
		_, ok = m.run(at, place, -1)
	}
	if l.negative { // its matches and its other paths do not count
		for ; len(m.stack) > base; m.stack = m.stack[:len(m.stack)-1] {
			if last := m.stack[len(m.stack)-1]; last.kind == restore {
				m.registers[last.at] = last.place
			}
		}
	}
	return after, ok != l.negative
}

// refer takes what a group has found.
func (m *machine) refer(group, place int) (int, bool) {
	begin, end := m.registers[2*group], m.registers[2*group+1]
	if begin < 0 || end < begin || place+end-begin > len(m.text) {
		return place, false
	}
	m.stepsLeft -= int64(end - begin)
	for i := begin; i < end; i++ {
		if m.text[i] != m.text[place+i-begin] {
			return place, false
		}
	}
	return place + end - begin, true
}

// isAt reports whether a place is what an instruction wants.
func (m *machine) isAt(op op, place int) bool {
	switch op {
	case opBegin:
		return place == 0
	case opEnd:
		return place == len(m.text)
	}
	before := place > 0 && isWord(m.text[place-1])
	behind := place < len(m.text) && isWord(m.text[place])
	return (before != behind) == (op == opBorder)
}
