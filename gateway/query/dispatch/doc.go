// Package dispatch runs scan plans: it cuts a plan's key ranges into parts, sends
// each to the pushdown server beside its rows or executes it in process, and
// hands over each interval of keys exactly once and whole.
//
// A part is an interval of row keys, not a region. A row is atomic, so disjoint
// intervals that together are the plan's ranges give every row once, whatever
// splits, moves or dies meanwhile; regions only decide where a part is sent.
// Parts end at the borders of regions and between hours: at first by hours alike,
// and by bytes once a run has told how many each hour of the metric takes.
// The ledger keeps that account: what an attempt returns is held back until the
// attempt has ended well, an interval is accepted once, and what failed is
// issued anew, elsewhere, until the query's deadline. What is missing then is an
// error: an answer is complete or there is none.
package dispatch
