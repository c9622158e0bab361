// Package regions knows which server has which region, and sends calls there, attempt after
// attempt, until they succeed or their time is over.
//
//   - locate.go, regions.go: the region of a row, and all regions of a table, in a cache or
//     in hbase:meta.
//   - locator.go: the server of hbase:meta, and the master, in a directory: ZooKeeper
//     (zookeeper.go) or bootstrap nodes (nodes.go, nodereplies.go).
//   - router.go: one attempt at a call to a region, which drops locations that proved wrong, and
//     all attempts at one to the region of a row. moved.go checks, while a server is silent,
//     whether its region is elsewhere by now.
//   - master.go: calls to the master, and its description of a table.
//   - retry.go: decides about another attempt, and waits before it.
//
// What must hold: a location that proved wrong is dropped before the next attempt; a table
// is reported missing only if hbase:meta has no row of it, and a hole there is waited for; a
// call whose outcome is unknown is sent again only if the server recognizes a repetition.
//
// A table's regions are read with the scan of the store, which is above this package: it is
// given in Config.Scan.
//
// Source: AsyncNonMetaRegionLocator, AsyncRpcRetryingCaller, Registry.proto and Master.proto
// of HBase 1.7 to 2.6.
package regions
