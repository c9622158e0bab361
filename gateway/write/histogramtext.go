package write

import (
	"fmt"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/java"
)

// leastHistogram is the length of the shortest body that OpenTSDB reads.
const leastHistogram = 6

// ParseHistogram reads a histogram as clients send it in binary: base64 of its cell
// without the codec. As in OpenTSDB, characters that are not of base64 are skipped, and
// so are up to three at the end that make no group of four: what is missing then is
// missing in the histogram, which is refused for it.
// Source: HistogramPojo.getBytes, SimpleHistogram.fromHistogram.
func ParseHistogram(base64 string) (h encoding.Histogram, err error) {
	body := decodeBase64(base64)
	if len(body) < leastHistogram {
		return h, fmt.Errorf("Byte array shorter than %d bytes detected: %s", leastHistogram, prettyBytes(body))
	}
	err = encoding.ParseHistogram(body, &h)
	return h, err
}

// decodeBase64 decodes as javax.xml.bind.DatatypeConverter does, which passes over
// characters that are not of base64 and over an incomplete group at the end.
func decodeBase64(text string) (out []byte) {
	const padding = 127 // as Java's: above every digit, and the bits of a misplaced = get into the bytes
	var group [4]byte
	digits := 0 // of the group
	for i := range len(text) {
		var v byte
		switch c := text[i]; {
		case c >= 'A' && c <= 'Z':
			v = c - 'A'
		case c >= 'a' && c <= 'z':
			v = c - 'a' + 26
		case c >= '0' && c <= '9':
			v = c - '0' + 52
		case c == '+':
			v = 62
		case c == '/':
			v = 63
		case c == '=':
			v = padding
		default:
			continue
		}

		group[digits] = v
		if digits++; digits < len(group) {
			continue
		}
		digits = 0
		out = append(out, group[0]<<2|group[1]>>4)
		// A padded place yields no byte.
		if group[2] != padding {
			out = append(out, group[1]<<4|group[2]>>2)
		}
		if group[3] != padding {
			out = append(out, group[2]<<6|group[3])
		}
	}
	return out
}

// prettyBytes writes bytes as OpenTSDB's errors do: as text if at least half of them
// are printable, else as numbers, signed as Java's bytes are. Source: Bytes.pretty.
func prettyBytes(b []byte) string {
	printable := 0
	text := []byte{'"'}
	for _, c := range b {
		switch {
		case c >= ' ' && c <= '~':
			printable++
			text = append(text, c)
		case c == '\n':
			text = append(text, `\n`...)
		case c == '\t':
			text = append(text, `\t`...)
		default:
			text = fmt.Appendf(text, `\x%02X`, c)
		}
	}

	if printable >= len(b)/2 {
		return string(append(text, '"'))
	}

	numbers := make([]string, len(b))
	for i, c := range b {
		numbers[i] = strconv.Itoa(int(int8(c)))
	}
	return "[" + strings.Join(numbers, ", ") + "]"
}

// ParseBounds reads the bounds of a bucket, "0,1.75". A text that is no number is
// ErrValue. Source: HistogramPojo.toSimpleHistogram.
func ParseBounds(text string) (b encoding.HistogramBucket, err error) {
	lower, upper, ok := strings.Cut(text, ",")
	if !ok || strings.Contains(upper, ",") {
		return b, fmt.Errorf("Unable to parse bucket bounds: %s", text)
	}
	if b.Lower, err = parseBound(lower); err != nil {
		return b, err
	}
	b.Upper, err = parseBound(upper)
	return b, err
}

// parseBound reads a number. One that is too large for a float is infinite, which Codec.Cell
// refuses.
func parseBound(text string) (float32, error) {
	f, err := java.ParseFloat(text)
	if err != nil {
		return 0, ErrValue
	}
	return f, nil
}

// ParseHistogramWords reads a histogram as a telnet line has it: "u=0:o=1:0,1.75=12",
// underflow, overflow and buckets with their counts in any order.
// Source: HistogramDataPointRpc.parseTelnet.
func ParseHistogramWords(text string) (h encoding.Histogram, err error) {
	var buckets []encoding.HistogramBucket
	var underflow, overflow int64
	for word := range strings.SplitSeq(text, ":") {
		bounds, number, ok := strings.Cut(word, "=")
		if !ok || strings.Contains(number, "=") {
			return h, fmt.Errorf("Improperly formatted bucket: %s", word)
		}
		count, err := java.ParseLong(number)
		if err != nil {
			return h, fmt.Errorf("Improperly formatted bucket: %s: got the count %s, want an integer", word, number)
		}

		switch strings.ToLower(bounds) {
		case "u":
			underflow = count
		case "o":
			overflow = count
		default:
			b, err := ParseBounds(bounds)
			if err != nil {
				return h, fmt.Errorf("Improperly formatted bounds: %s", word)
			}
			b.Count = count
			buckets = append(buckets, b)
		}
	}
	return encoding.NewHistogram(buckets, underflow, overflow), nil
}
