package pebble

import (
	"encoding/binary"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// examineLogs examines the logs that pebble will replay, from the number of the
// first one on.
func (e *examination) examineLogs(from uint64) error {
	synced, err := disk.ReadLogs(e.files, e.dir)
	if err != nil {
		return err
	}
	numbers := e.logNumbers(from)
	e.findMissingLogs(from, numbers, synced)

	next := uint64(0) // the sequence number that the next batch must have; 0: any
	for i, number := range numbers {
		data, err := e.read(disk.LogName(number))
		if err != nil {
			return err
		}
		l := logFile{e: e, name: disk.LogName(number), number: number, data: data, Reading: journal.Log(data, number)}
		l.last = i == len(numbers)-1
		// The records of logs that the marker names, and the zeros after them, are on disk.
		l.padded = number >= synced.First && number <= synced.Newest
		next = l.examine(next)

		e.logs++
		for _, r := range l.Records {
			e.replay += r.End - r.Start
		}
	}
	return nil
}

// findMissingLogs looks for the logs that must exist, given the first and the
// newest log that records were synced to since the store was last opened. Older
// logs need not exist: while it opens, pebble flushes what is in them, under a
// number that no log gets.
func (e *examination) findMissingLogs(from uint64, numbers []uint64, synced disk.Logs) {
	// What was in logs before from is in tables.
	if synced.Newest < from || synced.Newest == 0 {
		return
	}
	// One that is missing between these two shows by the sequence numbers, see
	// logFile.examine.
	for _, want := range slices.Compact([]uint64{max(from, synced.First), synced.Newest}) {
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
	last   bool // no log follows, so it need not be closed
	padded bool // records were synced to it, and zeros follow them unless it is closed
}

// examine finds the first fault of the log, if it has one, and returns the sequence
// number that the next batch must have. next is what this log's first batch must have, 0
// for any. Batches are numbered without a gap across all logs: nothing here ingests tables
// or excises keys, which would take numbers as well.
func (l *logFile) examine(next uint64) uint64 {
	fault := l.fault()
	first, end := l.sequenceNumbers()
	if fault == nil && first > 0 && next > 0 && first != next {
		fault = &store.Fault{
			Kind:   store.Lost,
			File:   l.name,
			Offset: 0,
			Bytes:  -1,
			What:   "what was written before it is missing: another log, or the end of one",
		}
	}

	if fault != nil {
		l.fillTimes(fault)
		repair := l.salvage
		if fault.Kind == store.Torn {
			repair = nil // pebble leaves a torn end out by itself
		}
		l.e.add(*fault, repair)
	}
	// A log without batches, whose end is 0, changes nothing for the next one.
	return max(next, end)
}

// fault returns the first fault of the log that can be known without the other logs,
// nil for none.
func (l *logFile) fault() *store.Fault {
	lost := store.Fault{Kind: store.Lost, File: l.name}
	damage := l.Damage()
	// A log that another one follows was synced to its end before that began:
	// nothing in it can be torn.
	if !l.last && len(l.Holes) > 0 {
		damage = &l.Holes[0]
	}

	switch {
	case damage != nil:
		// One fault stands for all holes of the log: Bytes counts them all, Offset is that of
		// the first damage.
		lost.Offset, lost.Bytes = damage.Start, 0
		for _, h := range l.Holes {
			lost.Bytes += h.End - h.Start
		}
		lost.What = "damaged: no intact record stands there, while records follow"
	case l.padded && len(l.Records) == 0 && !l.Closed: // one that was closed without any begins with its end chunk
		lost.Bytes, lost.What = -1, "no record is left of those that were synced"
	case l.Closed:
		return l.tornEnd()
	case l.padded && l.Reach+disk.LogZeros > int64(len(l.data)):
		lost.Offset, lost.Bytes = int64(len(l.data)), -1
		lost.What = "cut off there: a log ends with its end chunk or with zeros"
	case !l.last:
		lost.Offset, lost.Bytes = l.End, l.Torn
		lost.What = "its end is missing, while another log follows"
	default:
		return l.tornEnd()
	}
	return &lost
}

// tornEnd returns the part at the end of the last log that may never have been on
// disk as a fault, nil if there is none.
func (l *logFile) tornEnd() *store.Fault {
	from, to := l.End, l.End+l.Torn
	if len(l.Holes) > 0 {
		from = l.Holes[0].Start
	}
	if from == to {
		return nil
	}
	return &store.Fault{Kind: store.Torn, File: l.name, Offset: from, Bytes: to - from, What: "a torn end, left out"}
}

// sequenceNumbers returns the sequence number of the log's first batch and the one
// that follows its last batch, zeros if it has no batch. Batches with a count of 0
// hold nothing to replay.
func (l *logFile) sequenceNumbers() (first, end uint64) {
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
		end = number + uint64(count)
	}
	return first, end
}

// salvage rewrites the log with its intact records, once the damaged one is saved.
func (l *logFile) salvage() error {
	if err := l.e.saveDamaged(l.name, l.data); err != nil {
		return err
	}
	return l.e.write(l.name, journal.AppendLog(nil, l.number, l.Records))
}
