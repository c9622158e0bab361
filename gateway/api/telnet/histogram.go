package telnet

import (
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/java"
	"downpour/gateway/write"
)

// histogram handles a line of words "histogram metric time [codec] value tagk=tagv …".
// Source: HistogramDataPointRpc.importDataPoint.
func (c *conn) histogram() {
	if !c.mayWrite("histogram") {
		return
	}
	if err := c.tryHistogram(); err != nil {
		c.counted.bad++
		c.refuseLine("histogram", reasonOf(err), err, histogramErrorText(err))
	}
}

// tryHistogram parses the line and adds its histogram to a batch.
func (c *conn) tryHistogram() error {
	codec := c.cfg.Writer.Histograms()
	if !codec.Enabled() {
		return write.ErrNoHistograms
	}
	if len(c.words) < 5 { // OpenTSDB's words: the command is one of the 5, and not of those it got
		return fmt.Errorf("not enough arguments (need least 5, got %d)", len(c.words)-1)
	}

	metric, at, words := latin1(c.words[1]), latin1(c.words[2]), c.words[3:]
	if metric == "" {
		return errors.New("empty metric name")
	}
	t, err := write.ParseTime(at)
	if err != nil {
		return timeError(at)
	}

	// A number before the value is a codec; then the value is binary.
	id, err := java.ParseInt(string(words[0]))
	binary := err == nil
	if binary {
		words = words[1:]
	} else {
		id = int32(codec)
	}
	if len(words) == 0 || len(words[0]) == 0 {
		return errors.New("empty histogram value")
	}

	tags, err := parseTags(nil, words[1:])
	if err != nil {
		return err
	}
	value, err := histogramValue(codec, int(id), binary, string(words[0]))
	if err != nil {
		return err
	}
	// OpenTSDB finds this only when it stores, and reports it as an error of HBase.
	if len(tags) == 0 {
		return lateError{fmt.Errorf("Need at least one tag (metric=%s, tags={})", metric)}
	}
	return c.addHistogram(&write.Point{Metric: metric, Tags: tags, Time: t}, value)
}

// histogramValue returns the value of a histogram's cell. text is its base64 if binary is
// set, otherwise words. Errors of base64 are late, for OpenTSDB decodes it as it stores.
func histogramValue(codec write.Codec, id int, binary bool, text string) ([]byte, error) {
	if !binary {
		h, err := write.ParseHistogramWords(text)
		if err != nil {
			return nil, err
		}
		return codec.Cell(id, &h)
	}

	// OpenTSDB looks the codec up before it decodes.
	if id != int(codec) {
		return nil, lateError{fmt.Errorf("No codec found mapped to ID %d", id)}
	}
	var h encoding.Histogram
	h, err := write.ParseHistogram(text)
	if err != nil {
		return nil, lateError{err}
	}
	return codec.Cell(id, &h)
}

// addHistogram adds a histogram of a series to a batch.
func (c *conn) addHistogram(p *write.Point, value []byte) error {
	if err := c.cfg.Writer.Validate(p); err != nil {
		return err
	}
	// The connection's own resolver would remember the series by the text of its last
	// put.
	s, err := c.cfg.Writer.Resolver(write.TelnetSpelling).Resolve(c.ctx, p.Metric, p.Tags)
	if err != nil {
		return err
	}
	batch, err := c.cfg.Writer.AddHistogram(c.ctx, s, p.Time, value)
	if err != nil {
		return err
	}
	c.addPending("histogram", batch)
	c.counted.ok++
	return nil
}

// lateError is an error that OpenTSDB treats as one of HBase, because it finds it only
// when it stores the histogram.
type lateError struct{ error }

// histogramErrorText words the error of a histogram as OpenTSDB does.
func histogramErrorText(err error) string {
	var late lateError
	if errors.As(err, &late) {
		return "HBase error: " + err.Error()
	}
	return putErrorText(err)
}
