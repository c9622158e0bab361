// Package resultcache caches the answers of parts of scan plans. A part that is queried
// again, over rows that have provably not changed since, is answered from memory. The
// answer is the one that reading the rows would give, to the last bit. If nothing can
// be proven, the rows are read. No age makes an answer too old, and no hour is too
// recent: only the proof counts.
//
// # The proof
//
// A store that can prove that rows have not changed is a store.Versioner. Each query of
// a part first gets the version token of the part's key range. If the token equals that
// of the query before, nothing became visible between the two, so both would read the
// same rows. The token is taken before the rows are read: a write that happens while
// they are read changes the next token, whether the scan has seen it or not.
//
// How the stores make tokens is described at their Version methods. The embedded store
// counts the changes of each hour of each metric. HBase reports the MVCC read point of
// each region, which every change of the region moves, and hbase:meta has the number of
// the region's opening. No clock of a region server and no timestamp of a cell is used.
// So all of these are seen by one rule: late points, overwrites with the same length in
// the same millisecond, deletes, OpenTSDB's compaction, bulk loads, moves, splits, and
// a table that is restored, cloned or created again.
//
// # What is not done, and why
//
// A region of HBase is the unit: while anybody writes to it, in any hour or metric, its
// parts are read again. Three finer proofs were considered, and none holds:
//
//   - A time-range scan for cells written since. It relies on timestamps, which
//     writers may choose and servers' clocks may set back, and it does not see a
//     delete whose marker a major compaction has dropped.
//   - Comparing keys and timestamps of all cells. It does not see an overwrite of
//     the same length with the same timestamp. It costs three quarters of reading
//     compacted rows, and more than reading uncompacted ones.
//   - The number of requests, or the sizes, that servers report of a region. They
//     count a write when it begins, not when it becomes visible.
//
// Nothing is cached of a family with a TTL, whose cells disappear without a write, or
// of a table with a coprocessor. Nothing is cached either of rows whose cells carry the
// time of their data (tsd.storage.use_otsdb_timestamp) instead of the time of their
// writing. Such rows can change without a write too: HBase hides a put under a delete
// marker that has a later time, until a major compaction drops the marker. One cell of
// each row is checked.
//
// # What is cached
//
// The first query of a part stores only its version token. An answer is stored at the second query,
// if the token is equal, unless it takes more than an eighth of the cache's memory. So parts that
// are queried once, and rows that change all the time, cost a token and no memory. Beyond the
// bound, the least recently used answers are evicted.
//
// The answer of a part of whole hours, with buckets that divide the hour, does not
// depend on the plan's bounds; in per-series mode it does not depend on grouping,
// aggregator and rate either. So a window that moves inside the hours, or another
// panel over the same series, finds the same answer, see PartKey.
//
// # Whole plans
//
// A caller can also cache a result of all parts of a plan, see LookupPlan. The version
// tokens of all ranges are taken before the first part is opened. Each part is then
// answered from memory, or read under a token that holds until its last row, so the
// rules above about TTLs, coprocessors and data time hold; its own answer need not be
// cached. An equal token later proves that each part would answer the same again. The
// key of a plan does not name the bounds that its answer is trimmed to: the cached
// answer has all times of the rows read.
package resultcache
