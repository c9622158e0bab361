package tools

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/extra/tools/pointfile"
	"downpour/gateway/write"
)

// form is one in which an answer is printed: what the gateway sends for it, and what becomes of that.
type form struct {
	accept     string
	parameters url.Values
	binary     bool
	write      func(out *bufio.Writer, body io.Reader) error
}

// formats are the names of all forms, in the order of the help text.
var formats = []string{"lines", "table", "json", "csv", "arrow", parquet}

var forms = map[string]form{
	"lines": {accept: jsonType, parameters: url.Values{"arrays": {"true"}}, write: writeAnswerLines},
	"json":  {accept: jsonType, parameters: url.Values{}, write: writeJSON},
	"table": {accept: batch.StreamMediaType, parameters: withIntegers, write: writeTable},
	"csv":   {accept: batch.StreamMediaType, parameters: withIntegers, write: writeCSV},
	"arrow": {accept: batch.StreamMediaType, parameters: withIntegers, binary: true, write: writeArrow},
	parquet: {accept: batch.StreamMediaType, parameters: withIntegers, binary: true, write: writeParquet},
}

const jsonType = "application/json"

// withIntegers are the parameters for an Arrow stream in which integers stay integers.
var withIntegers = url.Values{"integers": {"true"}}

// refuseTerminal refuses to write bytes that are no text to a terminal.
func (c *call) refuseTerminal() error {
	if !c.TerminalOut {
		return nil
	}
	return fmt.Errorf("-format %s: standard output is a terminal, and the bytes are no text: want a file or a pipe, "+
		"such as > FILE", c.format)
}

// writeJSON writes the gateway's JSON as it is.
func writeJSON(out *bufio.Writer, body io.Reader) error {
	if _, err := io.Copy(out, body); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// writeArrow writes the stream as it is, and reads it to see that it is whole.
func writeArrow(out *bufio.Writer, body io.Reader) error {
	return batch.ReadResults(io.TeeReader(body, out), func([]int64, []float64) error { return nil })
}

// writeParquet writes a Parquet file with the columns of the stream.
func writeParquet(out *bufio.Writer, body io.Reader) error {
	in, err := batch.NewResultReader(body)
	if err != nil {
		return err
	}
	file := pointfile.New(out, in.Columns)
	err = in.Each(func(g *batch.ResultGroup) error {
		of := pointfile.Series{Metric: g.Metric, Query: g.Query, NaNIsNull: g.NaNIsNull}
		for i, k := range g.TagKeys {
			of.Tags = append(of.Tags, write.Tag{K: k, V: g.TagValues[i]})
		}
		return file.Add(of, g.Points)
	})
	if err != nil {
		return err // without its footer no reader takes the file
	}
	return file.Close()
}

// writeCSV writes a line of names, and one for each point.
func writeCSV(out *bufio.Writer, body io.Reader) error {
	lines := csv.NewWriter(out)
	err := eachPoint(body, lines.Write)
	lines.Flush()
	return errors.Join(err, lines.Error())
}

// tableLines is how many lines of a table wait until they are printed, all as wide.
const tableLines = 10_000

// writeTable writes the same as columns for people.
func writeTable(out *bufio.Writer, body io.Reader) error {
	table, n := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), 0
	err := eachPoint(body, func(cells []string) error {
		for i, c := range cells {
			cells[i] = visible(c)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
		if n++; n%tableLines == 0 {
			return table.Flush()
		}
		return nil
	})
	return errors.Join(err, table.Flush())
}

// eachPoint calls line with the names of the columns, and then with the cells of each point: metric, tags, time, value,
// and the sub-query if there are several. What is not there is empty.
func eachPoint(body io.Reader, line func(cells []string) error) error {
	in, err := batch.NewResultReader(body)
	if err != nil {
		return err
	}
	names := append(append([]string{"metric"}, in.Columns.TagKeys...), "timestamp", "value")
	if in.Columns.Query {
		names = append(names, "query")
	}
	if err := line(slices.Clone(names)); err != nil {
		return err
	}
	cells := make([]string, len(names))
	at := 1 + len(in.Columns.TagKeys)
	return in.Each(func(g *batch.ResultGroup) error {
		clear(cells)
		cells[0] = g.Metric
		for i, k := range g.TagKeys {
			cells[1+slices.Index(in.Columns.TagKeys, k)] = g.TagValues[i]
		}
		if in.Columns.Query {
			cells[at+2] = strconv.Itoa(g.Query)
		}
		for i := range g.Points.Len() {
			ms, v := g.Points.At(i)
			cells[at] = time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
			if cells[at+1] = v.String(); g.NaNIsNull && math.IsNaN(v.Double()) {
				cells[at+1] = ""
			}
			if err := line(cells); err != nil {
				return err
			}
		}
		return nil
	})
}

// result is one group of an answer.
type result struct {
	Metric string
	Tags   map[string]string
	DPS    json.RawMessage // [[time in ms, value],…]
}

// writeAnswerLines prints the groups as they come.
func writeAnswerLines(out *bufio.Writer, body io.Reader) error {
	groups := json.NewDecoder(bufio.NewReaderSize(body, 64<<10))
	_, err := groups.Token() // the bracket that opens the list
	for err == nil && groups.More() {
		var g result
		if err = groups.Decode(&g); err == nil {
			err = printResult(out, &g)
		}
	}
	if err == nil {
		_, err = groups.Token() // the one that closes it
	}
	return err
}

// readNumber parses a number of an answer. It is an integer if it has neither a point nor
// an exponent. One that JSON does not have is a string, and the null of a fill policy is NaN, as in Java's iterators.
func readNumber(text string) (encoding.Value, error) {
	if text == "null" {
		return encoding.FloatValue(math.NaN()), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return encoding.IntValue(n), nil
	}
	f, err := strconv.ParseFloat(strings.Trim(text, `"`), 64)
	return encoding.FloatValue(f), err
}

// printResult prints the points of a group, one a line.
func printResult(out *bufio.Writer, r *result) error {
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		tags = append(tags, k+"="+r.Tags[k])
	}
	text := "{" + strings.Join(tags, ", ") + "}"
	for point := range strings.SplitSeq(strings.Trim(string(r.DPS), "[]"), "],[") {
		at, value, ok := strings.Cut(point, ",")
		if !ok && point == "" {
			continue // the group has no points
		}
		v, err := readNumber(value)
		if err != nil {
			return fmt.Errorf("point [%s]: %w", point, err)
		}
		fmt.Fprintf(out, "%s %s %s %s\n", r.Metric, at, formatValue(v), text)
	}
	return nil
}

// formatValue returns a number as Java's %d and %f write it.
func formatValue(v encoding.Value) string {
	if !v.Float {
		return strconv.FormatInt(v.Int(), 10)
	}
	switch d := v.Double(); {
	case math.IsInf(d, 1):
		return "Infinity"
	case math.IsInf(d, -1):
		return "-Infinity"
	default:
		return strconv.FormatFloat(d, 'f', 6, 64)
	}
}
