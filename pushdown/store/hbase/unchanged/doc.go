// Package unchanged proves that no row of a key range has changed. It reads no row for that.
//
//   - version.go: a version token, which is returned again as long as nothing has changed.
//     It combines the MVCC read point of each region with its opening, and explains why that is
//     a proof.
//   - opening.go: the opening of a region, as hbase:meta names it, and the state of
//     hbase:meta itself.
//   - expiry.go: the last states of regions, by which tokens are equal or not, and whether
//     cells expire without a write.
//   - timestampproof.go, storefiles.go, health.go: with ProofTimestamps also a range of a
//     region that is written to elsewhere, by a scan for recent changes, by the files of the
//     region, and while the servers' clocks are right.
//   - durablemark.go: a mark, which other processes can prove, too.
//   - prover.go: the Prover, which has all of this.
//
// What must hold: no error of a token or mark means that rows cannot be read; equal tokens are
// returned only for equal rows; the openings of a token are read before and after it from
// hbase:meta; a dropped state gets a new number, so that it equals no earlier one.
//
// Source: each file names the classes of HBase 2.5 that it relies on, above all version.go.
package unchanged
