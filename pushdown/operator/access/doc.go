// Package access says where in a table the rows with a wanted tag can lie, so that
// a store seeks there instead of looking at every row of the hour. It is pure: it
// knows keys and no store, and it never decides what is in an answer.
//
// # Prefixes
//
// A row key is salt, metric, base time and the series' tag pairs, ascending by
// tag key. For a wanted tag key k the pairs with smaller keys are the row's head:
//
//	00 00 01 | 52 CB 4D D0 | 00 00 02 00 00 05 | 00 00 04 00 00 11 | 00 00 07 00 00 01
//	metric   | hour        | head, for k = 4   | the wanted tag    | the rest
//
// All rows of an hour with head h and a pair behind it whose key is k or more lie
// together, in the order of that pair. Of them only those can be wanted that go
// on with k and a wanted value v. So two stretches of keys hold nothing wanted:
//
//	h k … up to the first     h k v       k with smaller values
//	behind h k v … up to the first key that does not begin with h
//	                                      k with larger values, then larger tag keys,
//	                                      whose rows have no tag k at all
//
// What Prefixes.Append returns is everything else: the wanted stretches h k v … of each
// known head, and all keys between known heads.
//
// # Why nothing is missed
//
// A stretch is skipped because of how its keys begin, not because of what was
// seen there. Whoever writes a row with a wanted tag, its key is h k v … for its
// head h. If h is known the key is in a wanted stretch, if not it is between known
// heads, and both are read. So it does not matter for the answer which heads are
// known, whether there are rows with them, and how old the knowledge is. This
// covers, without any further condition,
//
//   - late points, back-fills, a row that another program wrote a moment ago,
//     open hours: keys that nobody has seen before lie in what is read;
//   - deletes, deletes with later puts, TTL: a known head without rows is a seek
//     for nothing;
//   - cells that carry the time of their data, replicated cells, bulk loads,
//     clocks that differ: no time of writing is looked at;
//   - regions that split, move or die, several gateways, restarts: the knowledge
//     is about keys, it is never invalid, and none at all is right too;
//   - salts: an hour's keys begin with the salt, of each salt there are ranges.
//
// Relied upon is only that tags ascend in a key, and that no tag key has the UID 0:
// OpenTSDB and we write no other keys, and assign no such UID.
//
// The empty head is always known. Alone it is enough wherever the wanted tag is
// the first one of the rows, which needs no knowledge about the metric: an hour
// costs a seek to its beginning and one to each wanted value. More heads are
// worth knowing where other tags come first and have few values (a data centre
// before a host). Each costs two seeks an hour, and a seek as much as looking at
// 2 to 20 rows, so that where heads are about as many as rows (a host before a
// region) nothing is won by seeking, and the rows are looked at.
//
// One host of 1,000 over 6 hours of HBase 2.5.11, times as fast as with a pattern
// alone, asked in turn in one run (BenchmarkSeek_oneHost): host first in keys 6
// compacted, 120 a cell a point; behind 27 data centres 2.5 compacted.
//
// # Why not remembered rows
//
// Naming each wanted row by its key would also serve the last case, but it is
// only right while no wanted row has been added, and HBase has no way of telling
// that which is both sound and cheaper than looking: keys alone cost 0.29 of
// reading rows of single cells and 0.84 of reading compacted ones; the rows
// written since a time are found quickly (0.6 ms while no file spans the time), but
// they are rows with cells of a later time, which a replicated, a bulk loaded or
// an explicitly timed cell is not, nor one that a slower clock has stamped.
package access
