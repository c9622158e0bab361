package gnuformat

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time is a format of times.
type Time struct{ pieces []timePiece }

// timePiece is literal text, and behind it a conversion unless it is nil.
type timePiece struct {
	text    string
	convert func(time.Time) string
}

// layouts are conversions that Go has too.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'y': "06", 'Y': "2006",
}

// others are conversions that it has not.
var others = map[byte]func(time.Time) string{
	'j': func(t time.Time) string { return fmt.Sprintf("%03d", t.YearDay()) },
	'k': func(t time.Time) string { return fmt.Sprintf("%2d", t.Hour()) },
	'l': func(t time.Time) string { return fmt.Sprintf("%2d", (t.Hour()+11)%12+1) },
	'q': func(t time.Time) string { return strconv.Itoa((int(t.Month())-1)/3 + 1) },
	's': func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
	'w': func(t time.Time) string { return strconv.Itoa(int(t.Weekday())) },
	'U': func(t time.Time) string { return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7) },
	'W': func(t time.Time) string { return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7) },
	'n': func(time.Time) string { return " " }, // a label has one line
}

// ParseTime reads a format, which has at least one conversion.
func ParseTime(text string) (*Time, error) {
	if len(text) > maxFormat {
		return nil, fmt.Errorf("a format of %d bytes, at most %d", len(text), maxFormat)
	}

	f := &Time{}
	var literal strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '%':
			literal.WriteByte(text[i])
			continue
		case i+1 == len(text):
			return nil, fmt.Errorf("a %% at its end")
		case text[i+1] == '%':
			literal.WriteByte('%')
			i++
			continue
		}

		i++
		convert, ok := others[text[i]]
		if layout, known := layouts[text[i]]; known {
			convert, ok = func(t time.Time) string { return t.Format(layout) }, true
		}
		if !ok {
			return nil, fmt.Errorf("an unknown conversion %%%c", text[i])
		}
		f.pieces = append(f.pieces, timePiece{literal.String(), convert})
		literal.Reset()
	}
	if len(f.pieces) == 0 {
		return nil, fmt.Errorf("a format without a conversion such as %%H")
	}
	f.pieces = append(f.pieces, timePiece{text: literal.String()})
	return f, nil
}

// Format returns a time by the format, in the time's own zone.
func (f *Time) Format(t time.Time) string {
	var b strings.Builder
	for _, p := range f.pieces {
		b.WriteString(p.text)
		if p.convert != nil {
			b.WriteString(p.convert(t))
		}
	}
	return b.String()
}
