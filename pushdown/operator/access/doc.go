// Package access computes where in a table the rows with a wanted tag can be, so that a store can
// seek there instead of reading every row of the hour. It is pure: it knows keys and no store, and
// it never changes an answer.
//
// # Prefixes
//
// A row key is salt, metric, base time and the series' tag pairs, ascending by tag
// key. For a wanted tag key k, the pairs with smaller keys are the row's key prefix:
//
//	00 00 01 | 52 CB 4D D0 | 00 00 02 00 00 05 | 00 00 04 00 00 11 | 00 00 07 00 00 01
//	metric   | hour        | prefix, for k = 4 | the wanted tag    | the rest
//
// All rows of an hour with prefix p, followed by a pair whose key is k or larger, are adjacent, in
// the order of that pair. Only those that continue with k and a wanted value v are wanted. So two
// ranges of keys have no wanted row:
//
//	p k … up to the first     p k v       k with smaller values
//	after p k v … up to the first key that does not begin with p
//	                                      k with larger values, then larger tag keys,
//	                                      whose rows do not have tag k at all
//
// Prefixes.Append returns everything else: the wanted ranges p k v … of each known prefix, and all
// keys between known prefixes.
//
// # Why nothing is missed
//
// A range is skipped because of how its keys begin, and not because of what was seen there. A row
// with a wanted tag has the key p k v … for its prefix p, no matter who writes it. If p is known
// the key is in a wanted range, and if not it is between known prefixes; both are read. So the
// answer does not depend on which prefixes are known, whether there are rows with them, or how old
// the knowledge is. This covers without any further condition:
//
//   - late points, back-fills, rows that another program wrote a moment ago, and open
//     hours: keys that nobody has seen before are in the ranges that are read;
//   - deletes, deletes followed by puts, and TTLs: a known prefix without rows costs
//     one seek;
//   - cells with the timestamp of their data, replicated cells, bulk loads, and clocks
//     that differ: no time of writing is used;
//   - regions that split, move or die, several gateways, and restarts: the knowledge
//     is about keys and never becomes invalid, and without any knowledge the answer is
//     right too;
//   - salts: an hour's keys begin with the salt, and each salt has its own ranges.
//
// It relies on two facts only: the tags of a key ascend, and no tag key has UID 0.
// OpenTSDB and Downpour write no other keys and assign no such UID.
//
// The empty prefix is always known. Alone it suffices if the wanted tag is the first
// one of the rows, and needs no knowledge about the metric: an hour costs one seek to
// its beginning and one to each wanted value. More prefixes are worth knowing if other
// tags come first and have few values (a data centre before a host). Each costs two
// seeks in an hour, and a seek costs as much as reading 2 to 20 rows. So if there are
// about as many prefixes as rows (a host before a region), seeking is no faster, and
// every row is read.
//
// One host of 1,000 over 6 hours on HBase 2.5.11, compared with a key pattern alone,
// alternating in one run (BenchmarkSeek_oneHost): with the host first in keys 6 times as
// fast for compacted rows and 120 times for single cells; with 27 data centres before
// the host 2.5 times for compacted rows.
//
// Over many hours, a range for each hour is made only after a probe: see NeedsProbe.
//
// The embedded store has no such case: with a key pattern it skips whole blocks of rows that hold
// no wanted tag, see FORMAT.md of pushdown/store/pebble.
//
// # Why rows are not cached
//
// Caching the key of each wanted row would help in the last case too. But it would be
// right only while no wanted row is added, and HBase has no sound check for that which
// is cheaper than reading. Reading keys alone costs 0.29 of reading rows of single
// cells and 0.84 of reading compacted ones. Rows written since a time are found quickly
// (0.6 ms while no file spans the time), but these are rows with cells of a later
// timestamp; cells that were replicated, bulk loaded, explicitly timed or stamped by a
// slower clock may not be among them.
package access
