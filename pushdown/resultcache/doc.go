// Package resultcache remembers what parts of scan plans have answered. A part that
// is asked for again, over rows that have provably not changed since, is answered
// from memory: the answer is the one that reading the rows would give, to the
// last bit. Where nothing can be proven the rows are read. There is no time after
// which an answer is too old, and no hour that is too young: only the proof
// counts.
//
// # The proof
//
// A store that can prove that rows have not changed is a store.Marker. Each ask
// of a part takes a mark of the part's key range first. The same mark as that of
// the ask before says that nothing became visible between the two, so what the
// one read is what the other would read. The mark is taken before the rows are:
// what is written while they are read makes the next mark another one, whether
// the scan has seen it or not.
//
// How the stores make marks stands at their Mark: the embedded store counts the
// changes of each hour of each metric; HBase tells the MVCC read point of each
// region, which every change of the region moves, and hbase:meta which opening of
// the region that is; no clock of a region server and no cell timestamp takes part.
// So late points, overwrites with the same length in the same millisecond, deletes,
// OpenTSDB's compaction, bulk loads, moves, splits, and a table that is restored,
// cloned or made anew are all seen, by the same rule.
//
// # What is not done, and why
//
// A region of HBase is the unit: while anybody writes to it, whatever the hour
// or metric, the parts that lie in it are read again. Three finer proofs were
// considered and are none:
//
//   - A time-range scan for cells written since. It relies on timestamps, which
//     writers may choose and servers' clocks may set back, and does not see a
//     delete whose marker a major compaction has dropped.
//   - Comparing keys and timestamps of all cells. It does not see an overwrite
//     of the same length with the same timestamp; it costs three quarters of
//     reading compacted rows and more than reading uncompacted ones.
//   - The number of requests or the sizes that servers report of a region. They
//     count a write when it begins, not when it becomes visible.
//
// Nothing is kept of a family with a TTL, whose cells go without being written,
// or of a table with a coprocessor; and nothing of rows whose cells carry the
// time of their data (tsd.storage.use_otsdb_timestamp) instead of that of their
// writing. Such rows can change without a write as well: HBase hides a put behind
// a delete marker that has a later time, until a major compaction drops the
// marker. One cell of each row is looked at.
//
// # What is kept
//
// The first ask of a part leaves its mark only. What answers it a second time,
// under an equal mark, is kept, unless it takes more than an eighth of the memory
// there is; so questions that come once, and rows that change all the time, cost
// a mark and no memory. Beyond the bound the answers go that have been used
// least recently. A part of whole hours whose buckets divide the hour does not
// depend on the plan's bounds, nor a strict one on grouping, aggregator and rate:
// a window that moves inside the hours, or another panel over the same series,
// finds the same answer, see PartKey.
//
// # PlanLookup plans
//
// Whoever makes something of all parts of a plan can keep that too, see LookupPlan.
// The mark of all ranges is taken before the first part is opened. Each part was
// then answered from memory or read and kept, so that all that is said above of
// TTLs, coprocessors and times of data holds; an equal mark later says that each
// would answer the same again. A plan does not name the bounds that its answer is
// trimmed to: what is kept has all times of the rows read.
package resultcache
