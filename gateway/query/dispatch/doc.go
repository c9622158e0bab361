// Package dispatch executes scan plans. It cuts a plan's key ranges into parts, sends
// each part to the pushdown server next to its rows or executes it in this process, and
// passes every accepted part to the caller exactly once.
//
// A part is an interval of row keys, not a region. A row is atomic, so disjoint
// intervals that together make up the plan's ranges return every row once, even if
// regions split or move or servers die in the meantime. Regions only decide where a
// part is sent. Few rows of few hours are read in this process first, wherever they are.
//
// Parts end at region boundaries and between hours. While the sizes of rows are unknown,
// all parts have about equally many hours; once a run has reported how many bytes each hour
// of the metric takes, they have about equally many bytes. On the embedded store a plan of
// few hours is one part, if that gives the same bits: its hours are read side by side,
// which needs the least memory if series are many.
//
// A part that takes longer at a server than 19 of 20 parts of its size is started a second time, elsewhere: its process
// may be slow or paused. One of the two attempts is accepted, and only its reads count. At most every twentieth part is
// started twice, so that a storm of slow parts is not doubled, and none of a region server that is slow itself.
//
// A server may be of the release before: it gets what its release knows, and a plan that it refuses goes to other
// servers, or is executed in this process. That is no failure of the server.
//
// The coverage records which key intervals were accepted. The records of an
// attempt are held back until the attempt has ended without an error, an interval
// is accepted once, and a failed part is tried again, elsewhere if possible, until
// the query's deadline. If parts are still missing then, the run fails: an answer
// is complete, or it is marked as incomplete (Options.AllowMissing), or there is
// none.
package dispatch
