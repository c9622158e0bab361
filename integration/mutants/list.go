package main

import "slices"

// mutants are the faults that tests must catch. Each is what a careless change
// could do, and would make an answer wrong or short, or lose a point.
var mutants = slices.Concat(
	ofTheScan, ofSeeking, ofOperators, // list_reading.go
	ofTheWire, ofTheCoverage, // list_parts.go
	ofStates, ofTheMerge, // list_merge.go
	ofPoints, ofNames, ofLiveQueries, ofResultCache, ofAnswers,
	ofExpressions, // list_expressions.go
	ofTheDoors,    // list_doors.go
	ofWrites,      // list_writes.go
)
