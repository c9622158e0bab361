// Package compare finds the differences between two answers of the OpenTSDB
// HTTP API: ours, and that of a real OpenTSDB, live or recorded.
//
// What counts as equal is what a client can rely on:
//
//   - objects are compared as objects: the order of keys is free; if a key
//     comes twice (OpenTSDB writes a doubled second twice into the map form of
//     dps) the last one counts, as it does for every common JSON reader;
//   - arrays are compared in order: results, tsuids, dps in the arrays form;
//     only aggregateTags (in expressions aggregatedTags) is a set;
//   - an integer is not a float: 1 and 1.0 differ, because a client's type does;
//     how a float is written (1.0E10, 1e10) is free;
//   - floats are equal to the last bit; a difference is given with its distance
//     in units in the last place (ULP), which distinguishes another order of addition
//     (a few) from a wrong formula;
//   - of an error body code and message count.
//
// All other permitted differences are in a table of Permits, each line with its reason, and a
// report lists the ones used; a difference that depends on the inside of a text is a Rule, with a
// name and a reason. Two rules send further queries, OneOfUnknownNames and LostBucket.
//
// The package imports only the standard library, so tests of any package and
// the bench program may use it.
package compare
