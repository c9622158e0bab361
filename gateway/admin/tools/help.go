package tools

// What -h says of each command. Where the store is, the settings say; while a
// gateway has an embedded one, every command goes by way of it.
const (
	helpMake = `A metric that has a UID keeps it. Each is printed with its UID, as OpenTSDB does.

  gateway mkmetric sys.cpu.user sys.cpu.nice`

	helpImport = `Lines are telnet puts, with or without the word put:
  sys.cpu.user 1356998400 42 host=web01
Files that end with .gz are decompressed. What export -all and tsdb scan
--import write is read. After an interruption the same command goes on where
it was: FILE.import says where.

  gateway import points.gz
  zcat *.gz | gateway import -skip-errors -`

	helpExport = `Times are those of queries: 1356998400, 2013/01/01, 1d-ago. -all writes every
metric, with names, annotations and meta data as comments that import reads.

  gateway export 2013/01/01 2013/02/01 'sys.cpu.user{host=web*}' > points
  gateway export -all -o all.gz 1970/03/01`

	helpQuery = `Prints metric, time in ms, value and tags, a point a line. Several queries may
stand one behind the other. N is milliseconds, or has a unit.

  gateway query 1h-ago sum downsample 5m avg sys.cpu.user host=web01
  gateway query 2013/01/01 2013/01/02 max rate counter net.bytes host=*`

	helpUID = `grep takes a regular expression (RE2) and finds any part of a name. delete
refuses while points have the UID, for they would stay and nothing could read
them; it says what it removed.

  gateway uid grep metrics '^sys\.'
  gateway uid assign tagv web01 web02
  gateway uid rename metrics sys.cpu.user cpu.user
  gateway uid delete tagv web01`

	helpCheck = `Tables are read block by block, logs and MANIFEST record by record, and every
checksum is compared. Nothing is changed. A line tells of each fault: file,
offset, bytes, and of which hours the points are where that can be known. Ends
with 0 only when there is none. A store that a gateway has open is not checked:
end the gateway first.

  gateway check || echo damaged`
)
