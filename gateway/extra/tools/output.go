package tools

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// output writes lines to a file or to standard output. A file gets its name only when
// it is complete.
type output struct {
	*bufio.Writer
	zip  *gzip.Writer
	file *os.File
	name string
}

// openOutput opens the file of -o, or standard output. A file is written as NAME.new,
// compressed if its name ends with .gz, and gets its name once it is complete.
func (c *call) openOutput() (*output, error) {
	o := &output{name: c.output}
	var to io.Writer = c.Out
	if o.name != "" {
		file, err := os.Create(o.name + ".new")
		if err != nil {
			return nil, err
		}
		o.file, to = file, file
		if strings.HasSuffix(o.name, ".gz") {
			o.zip = gzip.NewWriter(file)
			to = o.zip
		}
	}

	o.Writer = bufio.NewWriterSize(to, 256<<10)
	return o, nil
}

// finish makes the file durable and gives it its name.
func (o *output) finish() error {
	err := o.Flush()
	if o.zip != nil {
		err = errors.Join(err, o.zip.Close())
	}
	if o.file == nil {
		return err
	}

	if err = errors.Join(err, o.file.Sync(), o.file.Close()); err != nil {
		return errors.Join(err, os.Remove(o.file.Name()))
	}
	return os.Rename(o.file.Name(), o.name)
}

// abort removes the unfinished file. What went to standard output stays there.
func (o *output) abort() error {
	if o.file == nil {
		return o.Flush()
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}
