package tools

import (
	"fmt"
	"io"

	"downpour/gateway/extra/tools/fsck"
)

// fsckCounts are what fsck has seen and done. A gateway sends them as JSON.
type fsckCounts struct {
	Cells         int64 `json:"cells"`
	Rows          int64 `json:"rows"`
	Points        int64 `json:"points"`
	Annotations   int64 `json:"notes"`
	Histograms    int64 `json:"histograms"`
	AppendColumns int64 `json:"appendColumns"`
	SavedBytes    int64 `json:"savedBytes"`
	Changed       int64 `json:"changed"` // rows whose repair was left because of what others wrote
	Young         int64 `json:"young"`   // rows that are damaged and too young to be repaired
	// Found and Repaired count by kind, see fsck.Kind.
	Found    []int64 `json:"found"`
	Repaired []int64 `json:"repaired"`
}

// add counts what is found of a kind, and what of it is repaired.
func (n *fsckCounts) add(k fsck.Kind, found, repaired int) {
	if n.Found == nil {
		n.Found, n.Repaired = make([]int64, len(fsck.Kinds())), make([]int64, len(fsck.Kinds()))
	}
	n.Found[k] += int64(found)
	n.Repaired[k] += int64(repaired)
}

// merge adds the counts of a part.
func (n *fsckCounts) merge(o *fsckCounts) {
	n.Cells += o.Cells
	n.Rows += o.Rows
	n.Points += o.Points
	n.Annotations += o.Annotations
	n.Histograms += o.Histograms
	n.AppendColumns += o.AppendColumns
	n.SavedBytes += o.SavedBytes
	n.Changed += o.Changed
	n.Young += o.Young
	for k := range o.Found {
		n.add(fsck.Kind(k), int(o.Found[k]), int(o.Repaired[k]))
	}
}

// errors returns how many errors were found, repaired or not.
func (n *fsckCounts) errors() int64 { return sumOfErrors(n.Found) }

// left returns an error if not all that is damaged was repaired.
func (n *fsckCounts) left() error {
	switch found, repaired := n.errors(), sumOfErrors(n.Repaired); {
	case repaired >= found:
		return nil
	case repaired > 0:
		return fmt.Errorf("%d errors found, %d of them repaired", found, repaired)
	default:
		return fmt.Errorf("%d errors found", found)
	}
}

// sumOfErrors adds up the counts of those kinds that are damage.
func sumOfErrors(counts []int64) (sum int64) {
	for k, count := range counts {
		if fsck.Kind(k).IsError() {
			sum += count
		}
	}
	return sum
}

// print prints the counters, by OpenTSDB's names where it has them.
// Source: Fsck.logResults.
func (n *fsckCounts) print(w io.Writer) {
	n.add(0, 0, 0) // makes Found and Repaired if nothing was found
	line := func(name string, count int64) { fmt.Fprintf(w, "%s: %d\n", name, count) }
	line("Key Values Processed", n.Cells)
	line("Rows Processed", n.Rows)
	line("Valid Datapoints", n.Points)
	line("Annotations", n.Annotations)
	line("Histograms", n.Histograms)
	line("Append Columns", n.AppendColumns)
	for _, k := range fsck.Kinds() {
		found, repaired := k.Counters()
		line(found, n.Found[k])
		if repaired != "" {
			line(repaired, n.Repaired[k])
		}
	}
	line("Bytes Saved with VLE", n.SavedBytes)
	line("Rows Changed Meanwhile", n.Changed)
	line("Damaged Rows Too Young to Repair", n.Young)
	line("Total Errors", n.errors())
	line("Total Errors Fixed", sumOfErrors(n.Repaired))
}
