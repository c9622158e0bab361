package pebble

import (
	"encoding/binary"
	"errors"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// journals examines the logs from the first one that is not flushed.
func (e *examination) journals(from uint64) error {
	marks, err := disk.ReadLogs(e.files, e.dir)
	if err != nil {
		return err
	}
	numbers := e.logNumbers(from)
	e.missing(from, numbers, marks)
	next := uint64(0) // the sequence number that the next batch must have
	for i, number := range numbers {
		data, err := e.read(disk.LogName(number))
		if err != nil {
			return err
		}
		l := logFile{e: e, name: disk.LogName(number), number: number, data: data, Reading: journal.Log(data, number)}
		l.last = i == len(numbers)-1
		l.zeros = number >= marks.First && number <= marks.Newest && marks.First > 0
		next = l.examine(next)
		e.logs++
		for _, r := range l.Records {
			e.replay += r.End - r.Start
		}
	}
	return nil
}

// missing looks for logs that must be there. The first one of an opening is the
// first that can hold what is not flushed: while it opens, pebble flushes what
// was in older ones, under a number that no log gets.
func (e *examination) missing(from uint64, numbers []uint64, marks disk.Logs) {
	if marks.Newest < from || marks.Newest == 0 {
		return
	}
	for _, want := range slices.Compact([]uint64{max(from, marks.First), marks.Newest}) {
		if !slices.Contains(numbers, want) {
			e.add(store.Fault{Kind: store.Lost, File: disk.LogName(want), Offset: -1, Bytes: -1, What: "missing"}, nil)
		}
	}
}

// logFile is one log under examination.
type logFile struct {
	journal.Reading
	e      *examination
	name   string
	number uint64
	data   []byte
	last   bool // no log follows: it need not be closed
	zeros  bool // it has records, and zeros follow them unless it is closed
}

// examine judges the log. Batches are numbered without a gap, over all logs:
// nothing here ingests tables or excises keys, which would take numbers too. It
// returns the number that follows.
func (l *logFile) examine(next uint64) uint64 {
	fault := l.verdict()
	first, behind := l.span()
	if fault == nil && first > 0 && next > 0 && first != next {
		fault = &store.Fault{Kind: store.Lost, File: l.name, Offset: 0, Bytes: -1, What: "what was written before it is missing: another log, or the end of one"}
	}
	if fault != nil {
		l.hours(fault)
		mend := l.salvage
		if fault.Kind == store.Torn {
			mend = nil
		}
		l.e.add(*fault, mend)
	}
	return max(next, behind)
}

// verdict is the first thing that is wrong with the log alone.
func (l *logFile) verdict() *store.Fault {
	lost := store.Fault{Kind: store.Lost, File: l.name}
	damage := l.Damage()
	if !l.last && len(l.Holes) > 0 {
		damage = &l.Holes[0]
	}
	switch {
	case damage != nil:
		lost.Offset, lost.Bytes = damage.Start, 0
		for _, h := range l.Holes {
			lost.Bytes += h.End - h.Start
		}
		lost.What = "damaged: no whole record stands there, while records follow"
	case l.zeros && len(l.Records) == 0:
		lost.Bytes, lost.What = -1, "no record is left of those that were synced"
	case l.Closed:
		return l.torn()
	case l.zeros && l.Reach+disk.LogZeros > int64(len(l.data)):
		lost.Offset, lost.Bytes = int64(len(l.data)), -1
		lost.What = "cut off there: a log ends with its mark or with zeros"
	case !l.last:
		lost.Offset, lost.Bytes = l.End, l.Torn
		lost.What = "its end is missing, while another log follows"
	default:
		return l.torn()
	}
	return &lost
}

// torn is what of the last log may never have been on disk, nil for nothing.
func (l *logFile) torn() *store.Fault {
	from, to := l.End, l.End+l.Torn
	if len(l.Holes) > 0 {
		from = l.Holes[0].Start
	}
	if from == to {
		return nil
	}
	return &store.Fault{Kind: store.Torn, File: l.name, Offset: from, Bytes: to - from, What: "a torn end, left out"}
}

// span is the sequence number of the log's first batch and the one behind its
// last, 0 if it has none. Batches without a count hold nothing to replay.
func (l *logFile) span() (first, behind uint64) {
	for _, rec := range l.Records {
		if len(rec.Data) < batchHeader {
			continue
		}
		number, count := binary.LittleEndian.Uint64(rec.Data), binary.LittleEndian.Uint32(rec.Data[8:])
		if count == 0 {
			continue
		}
		if first == 0 {
			first = number
		}
		behind = number + uint64(count)
	}
	return first, behind
}

// salvage writes the log anew with what is whole.
func (l *logFile) salvage() error {
	return errors.Join(l.e.keep(l.name, l.data), l.e.write(l.name, journal.AppendLog(nil, l.number, l.Records)))
}
