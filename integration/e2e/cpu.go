package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc's times: Linux shows them in hundredths of a second
// on every architecture.
const tick = 10 * time.Millisecond

// CPU is the processor time that the process has taken, its threads together.
// Source: proc(5), fields 14 and 15 of stat.
func (p *Process) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // a command's name may hold anything but this
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: stat has %d fields, want 13 or more", p.Name, len(fields))
	}
	var sum int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: stat: %w", p.Name, err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

// CPU is the processor time that master and region servers have taken.
func (h *HBase) CPU() (sum time.Duration, err error) {
	all := []*Process{h.master}
	for _, r := range h.regions {
		all = append(all, r.process)
	}
	for _, p := range all {
		took, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}
