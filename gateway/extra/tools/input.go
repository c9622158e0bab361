package tools

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// position is a place between two lines of a file, counted in decompressed bytes. Sum
// is the CRC-32 of all bytes before it.
type position struct {
	Offset int64  `json:"offset"`
	Lines  int64  `json:"lines"`
	Sum    uint32 `json:"crc32"`
}

// pass moves the position over bytes that were read.
func (p *position) pass(b []byte) {
	p.Offset += int64(len(b))
	p.Sum = crc32.Update(p.Sum, crc32.IEEETable, b)
}

// input reads a file line by line. It decompresses a file whose name ends with .gz.
type input struct {
	name  string
	size  int64 // of the file, -1 if it is unknown
	file  io.ReadCloser
	raw   counted // counts what was read of the file
	lines *bufio.Reader
	at    position
}

// counted counts the bytes read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// openInput opens a file, or in for the name "-".
func openInput(name string, in io.Reader) (*input, error) {
	f := &input{name: name, size: -1, file: io.NopCloser(in)}
	f.raw.r = in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		f.file, f.raw.r = file, file
		if info.Mode().IsRegular() { // a pipe has no size
			f.size = info.Size()
		}
	}

	text := io.Reader(&f.raw)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bufio.NewReaderSize(&f.raw, 256<<10))
		if err != nil {
			return nil, errors.Join(f.fault(err), f.file.Close())
		}
		text = z
	}

	f.lines = bufio.NewReaderSize(text, maxLine)
	if err := f.checkMark(); err != nil { //fault:import-takes-mark TestImport_byteOrderMark
		return nil, errors.Join(err, f.file.Close())
	}
	return f, nil
}

// checkMark returns an error for a byte order mark. It would become a part of the first
// name, which nobody sees in a log; and with -skip-errors the first line would be lost.
// A fault of reading is left to next.
func (f *input) checkMark() error {
	begin, _ := f.lines.Peek(3)
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if strings.HasPrefix(string(begin), mark) {
			return fmt.Errorf("%s:1: begins with a byte order mark, %x, want UTF-8 without one", f.name, mark)
		}
	}
	return nil
}

// fault returns an error of reading with the place: the line that follows those that were
// read whole.
func (f *input) fault(err error) error {
	if strings.HasSuffix(f.name, ".gz") && (err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = fmt.Errorf("the compressed file ends too early: it was cut, or is not yet whole (%w)", err)
	}
	return fmt.Errorf("%s:%d: %w", f.name, f.at.Lines+1, err)
}

// skip moves to the position that an earlier run reached. It returns an error if the
// file has changed before that position; lines may have been added after it.
func (f *input) skip(to position) error {
	sum := crc32.NewIEEE()
	n, err := io.CopyN(sum, f.lines, to.Offset)
	if err != nil && err != io.EOF {
		return f.fault(err)
	}
	if n < to.Offset || sum.Sum32() != to.Sum {
		return fmt.Errorf("%s has changed in its first %d bytes of text, which were imported before: remove %s to "+
			"import it anew", f.name, to.Offset, stateName(f.name))
	}

	f.at = to
	return nil
}

// next returns the next line with its end, or io.EOF. The line is valid until
// the next call. After errLong the next call returns the line after the long one.
func (f *input) next() ([]byte, error) {
	line, err := f.lines.ReadSlice('\n')
	f.at.pass(line)

	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, f.finishLong()
	case err == nil, err == io.EOF && len(line) > 0: // the last line may lack its end
		f.at.Lines++
		return line, nil
	case err == io.EOF:
		return nil, io.EOF
	}
	return nil, f.fault(err)
}

// finishLong reads to the end of a line that is too long.
func (f *input) finishLong() error {
	for {
		more, err := f.lines.ReadSlice('\n')
		f.at.pass(more)
		switch {
		case err == nil, err == io.EOF:
			f.at.Lines++
			return errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w (in a line that is longer than %d bytes)", f.fault(err), maxLine)
		}
	}
}

func (f *input) close() error { return f.file.Close() }
