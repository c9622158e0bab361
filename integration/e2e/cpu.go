package e2e

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that the process has used so far, all its threads
// together, exact to far below a millisecond; /proc counts in hundredths of a
// second. It is an error once the process has ended.
func (p *Process) CPU() (time.Duration, error) {
	// The id of a process's clock as clock_getcpuclockid makes it: Linux,
	// include/linux/posix-timers_types.h, CPUCLOCK_SCHED.
	const ofScheduler = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID()<<3|ofScheduler), &t); err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.Name, err)
	}
	return time.Duration(t.Nano()), nil
}

// CPU is the processor time that the region servers have used so far.
func (h *HBase) CPU() (sum time.Duration, err error) {
	for _, r := range h.regions {
		used, err := r.process.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}
