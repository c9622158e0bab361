// Package size simulates how the cost of a query grows with the number of pushdown servers, beyond what one machine can
// run. The gateway's code is the real one: the plan, its parts, where they are executed, the coverage, the merge and
// what is cached of regions, sizes and paces. The servers are simulated, in virtual time: each answers its parts with
// partial aggregates of the real form, after a time that is drawn from recorded parts of real processes
// (testdata/parts.json, which says how it was made).
//
// There are tests alone:
//
//	go test -v ./bench/size                                          up to 128 servers, in short
//	go test -v ./bench/size -args -long -report bench/results        up to 1,000; writes the page
//	go test -v -tags integration -run Record ./bench/size -args -record testdata/parts.json
//
// What is not in it: the processor time of Flight at the gateway, which copies and unpacks a part's batches, and
// anything that several queries do to each other.
package size
