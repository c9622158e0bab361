package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"downpour/bench/progress"
	"downpour/bench/workload"
)

// Generate writes a data set as text, in time order, and returns the number of
// bytes written.
func Generate(
	ctx context.Context, d workload.Devops, format workload.Format, out io.Writer, p *progress.Progress,
) (n int64, err error) {
	if err := d.Validate(); err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	for c := range d.Text(format, 1000, nil) {
		if err := ctx.Err(); err != nil {
			return n, fmt.Errorf("after %d bytes: %w", n, err)
		}
		written, err := w.Write(c.Text)
		n += int64(written)
		if err != nil {
			return n, fmt.Errorf("after %d bytes: %w", n, err)
		}
		p.Add(int64(c.Points))
	}
	return n, w.Flush()
}
