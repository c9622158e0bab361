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
-format parquet writes a table of points alone, for pandas, DuckDB and others.

  gateway export 2013/01/01 2013/02/01 'sys.cpu.user{host=web*}' > points
  gateway export -format parquet -o cpu.parquet 1d-ago 'sys.cpu.user{host=web*}'
  gateway export -all -o all.gz 1970/03/01`

	helpQuery = `Prints metric, time in ms, value and tags, a point a line. Several queries may
stand one behind the other. N is milliseconds, or has a unit. EXPRESSION is m of
/api/query, with START 1h-ago if there is none. A table and CSV have a column for
each tag; arrow and parquet are files for programs, which no terminal gets.

  gateway query 1h-ago sum downsample 5m avg sys.cpu.user host=web01
  gateway query 2013/01/01 2013/01/02 max rate counter net.bytes host=*
  gateway query -format table 'sum:1m-avg:sys.cpu.user{host=*}'
  gateway query -format parquet 7d-ago 'm=sum:1h-max:sys.cpu.user{host=*}' > cpu.parquet`

	helpUID = `grep takes a regular expression (RE2) and finds any part of a name. delete
refuses while points have the UID, for they would stay and nothing could read
them; it says what it removed. reclaim deletes all names that no row has, once
-no-tsds says on HBase that no TSD runs; their numbers are not given again. fsck
reports where names and UIDs do not agree, and repairs that with fix; metasync makes
the meta data that series and names lack, metapurge deletes all of it; treesync
puts all series with a TSMeta into all enabled trees, and removes nothing. These
may be ended and run again at any time.
treepurge deletes the branches of a tree, and with true its rules and the tree, too.

  gateway uid grep metrics '^sys\.'
  gateway uid assign tagv web01 web02
  gateway uid rename metrics sys.cpu.user cpu.user
  gateway uid delete tagv web01
  gateway uid reclaim -dry-run
  gateway uid fsck && gateway uid metasync -dry-run
  gateway uid treepurge 1 && gateway uid treesync`

	helpScan = `Rows are hours of a series: those that overlap START to END, as a whole. --import
prints their points as lines that import reads. --delete prints these lines and
deletes what it has printed, and nothing else: not annotations and histograms,
nor what came since the row was read.

  gateway scan 2013/01/01 2013/01/02 sum sys.cpu.user host=web01
  gateway scan --import 2013/01/01 2013/01/02 sum sys.cpu.user > points`

	helpFsck = `Rows are those of a query, or all. A line tells what is wrong, where, and what
is done about it or would be; the counters follow. Nothing is written without
--fix or --fix-all, and no row of the current or the previous hour without
--young. It runs beside gateways and TSDs. Ends with 0 only when there is no error.

  gateway fsck --full-scan
  gateway fsck --fix-all 2013/01/01 2013/02/01 sum sys.cpu.user host=web01
  gateway fsck --full-scan --fix --resolve-duplicates`

	helpCompact = `Points that were put one by one have a cell each on HBase: such rows take several
times the space and the time of compacted ones. Each row of METRIC becomes one
cell, in OpenTSDB's form, beside gateways and TSDs that read and write it. Rows
whose hour or newest cell is younger than -margin wait, and rows with append
columns or with duplicates that differ stay (DOWNPOUR_FIX_DUPLICATES lets the
newest count). They are counted, and are no failure. It may be ended at any time
and run again. Values are not changed. One process works on a region at a time:
it says for whom it waits, for a dead one a minute at most.

  gateway compact -dry-run 2024/01/01 2024/02/01 sys.cpu.user
  gateway compact 2024/01/01 2024/02/01 sys.cpu.user sys.cpu.sys`

	helpRetention = `DOWNPOUR_RETENTION is an age such as 400d, or a file of lines PATTERN AGE. A row goes
when its whole hour, or the whole time of a row of rollups, is older. plan counts
rows and bytes of each metric and changes nothing; run deletes. If that were more
than half of a table, it deletes nothing and says how many rows -yes-delete has to
allow. With -meta also the TSMeta and counters of series of which no row is left
are counted or deleted. It may be ended at any time and run again. A gateway does
the same by itself, each hour and without -meta, while the setting is there.

  gateway retention plan
  gateway retention run -yes-delete 1200000
  gateway retention run -meta`

	helpRollup = `Makes the rollups that DOWNPOUR_ROLLUPS=auto:FILE says of all hours that ended
before -margin, from START to END, in whole days of UTC, and reads them back, so
that queries use them where nothing has changed since. What is rolled up already
and has not changed is left alone. It may be ended at any time and run again, and
runs beside gateways and TSDs. How much of it is proven it says at the end.

  gateway rollup -dry-run 2024/01/01 2024/02/01 sys.cpu.user
  gateway rollup 30d-ago now sys.cpu.user sys.cpu.sys`

	helpSeries = `Reads the keys of the meta table, one for each series, which takes a second for a
million. Where puts do not record series there, as on an HBase without
DOWNPOUR_META_TRACKING, it counts the series that have a row of the last full
hour, metric after metric, and says so. A gateway counts for as long as a query
may take; what it has read until then is printed, and that it is not all.

  gateway series top
  gateway series -top 100 -gateway http://127.0.0.1:4242 top`

	helpDashboard = `get prints the document as it was saved, and its version on standard error. put
saves FILE, or - for standard input: as a new dashboard, or with -replace N in
place of version N. If another version is in force nothing is changed, and the
error says which; -replace any takes whichever is.

  gateway dashboard get web > web.json
  gateway dashboard put -replace 7 web web.json
  for name in $(gateway dashboard list); do gateway dashboard get $name > $name.json; done`

	helpCheck = `Tables are read block by block, logs and MANIFEST record by record, and every
checksum is compared. Nothing is changed. A line tells of each fault: file,
offset, bytes, and of which hours the points are where that can be known. Ends
with 0 only when there is none. A store that a gateway has open is not checked:
end the gateway first. BACKUP is a backup, or a directory of them: of the newest
each file is compared with its list, too.

  gateway check || echo damaged
  gateway check /backup/downpour`

	helpBackup = `Everything that was acknowledged before the backup began is in it, while puts go
on. Each backup is a directory in DIR, named by its time in UTC, and is complete:
a copy of the data directory, checked block by block. Tables that an earlier
backup in DIR has are not stored again. Where DIR is on the store's file system,
backups share tables with the store; one on another disk is a backup against
the loss of a disk, too. A gateway that has the store open is asked to keep its
files meanwhile; it must run on this machine, and it is never told DIR.

  gateway backup -keep 7 /backup/downpour
  gateway check /backup/downpour`

	helpRestore = `DOWNPOUR_STORE says where the store is to be: a directory that is empty, or not
there. Each file is compared with the backup's list, and each block is checked,
before anything is in its place. If the restore is cut off, the directory does
not open; the same command then begins anew.

  gateway restore /backup/downpour && gateway check
  DOWNPOUR_STORE=pebble:old gateway restore /backup/downpour/20260102T030405.678Z`
)
