// Package story runs stories: scripts of commands to a gateway, each with what it answers. A story says what a feature
// does, and is its test. The same one runs on an embedded store and on HBase, with parts of queries in process and on
// pushdown servers; those of package story_test in simulated time, those of ./integration on real servers.
//
//	# A comment says what the story is about.
//
//	put
//	cpu 1356998400 1 host=web01
//
//	get /api/query?start=1356998400&end=1356998500&m=sum:cpu
//	----
//	{"metric":"cpu","tags":{"host":"web01"},"aggregateTags":[],"dps":{"1356998400":1}}
//
// A command is a line, and lines of input below it. What stands between "----" and the next empty line is what it
// prints; without them it prints nothing. An empty line of output is shown as ".". The clock begins at 2013-01-01
// 01:00:00 UTC, which is 1357002000, so that the hour 1356998400 has just ended.
//
// What a story begins with:
//
//	on embedded | on hbase   it runs on this store alone
//	on simulation            it runs in simulated time alone; so do those that pass time or let the store fail
//	on opentsdb              it runs on a real OpenTSDB, too
//	settings                 settings of the gateway: NAME=value
//
// Commands of clients:
//
//	put                      points, METRIC TIME VALUE TAG=VALUE …, by HTTP; prints those that were refused
//	telnet                   lines of a telnet connection; prints what it answers
//	get PATH, delete PATH    input: headers, "Name: value"
//	post PATH, PUT PATH      input: headers, then the body
//	each post PATH           a request for each line of the input, which is its body, or with "each get PATH" the end
//	                         of its path; prints each answer on a line
//	subscribe NAME           a live query over WebSocket; input: the body of POST /api/query, or of
//	                         POST /api/query/exp with "subscribe NAME exp"
//	resume NAME AS NAME2     the same query on another socket, from where the first one was
//	next NAME                prints the next message of a live query, without what differs each time; input: maybe
//	                         "Match: REGEXP"
//	shown NAME               prints what the live query shows, once that is what the query answers over HTTP
//	leave NAME               closes the socket
//
// The answer of a request is printed as its status, if it is not 200, the message of an error, or the body; of a JSON
// array each element on a line of its own. Two names are no headers: "Show: ETag" prints these headers first, and
// "Match: REGEXP" only what matches in the body, each on a line. ETags are numbered: W/"1" is the first that the story
// has shown, and may stand in a header.
//
// Commands of the stage:
//
//	gateway NAME             the commands that follow are for this gateway, which starts if it is new; the first
//	                         one is a
//	advance 10m              lets time pass
//	restart, crash           ends the gateway in order, or as a machine that fails, and starts another one; input:
//	                         further settings
//	fault OP TABLE WORD…     calls of the store fail from now on, see faultRule; "fault none" ends all
//	rows TABLE               prints the cells of a table in hex: row family:qualifier value
//	cells TABLE              writes cells, in the form of rows, as another program would
package story
