package scenario

import (
	"fmt"
	"strings"
	"time"

	"downpour/bench/workload"
)

// Texts of questions.
const (
	sum      = "sum:5m-avg:%s"
	byRegion = "sum:5m-avg:%s{region=*}"
	byHost   = "sum:5m-avg:%s{host=*}"
	maxima   = "avg:5m-max:%s{host=*}"
)

// hour varies the times of large queries inside their first and last hour, so that all rounds read the same rows.
const hour = 3600

// bucket is the width of a bucket in seconds. The times of queries to VictoriaMetrics vary by whole buckets, because it
// aligns all buckets to multiples of their width.
const bucket = 300

// words cuts a text at blanks.
func words(text string) []string { return strings.Fields(text) }

// scenarios returns all of them. Those about the same data set stand together, so that it is made once.
func scenarios() []scenario {
	onTables := []string{tsd, ours}
	return []scenario{
		{rows: words("compacted floor maxima raw"), seconds: 30, big: 120, on: compacted, steps: []step{asks{
			sides: onTables, floors: []string{bare}, figures: "{scale} {set}, ", what: "{m}, {rows}", slack: hour, warm: 2, verify: 2,
			questions: []question{
				{m: sum, aims: []aim{faster("compacted", 5, tsd), within("floor", 1.8, bare)}},
				{m: byRegion, aims: []aim{faster("compacted", 5, tsd), within("floor", 1.8, bare)}},
				{m: byHost, aims: []aim{within("floor", 4, bare)}},
				{m: maxima, aims: []aim{faster("maxima", 2.5, tsd)}},
				{m: "sum:%s", aims: []aim{faster("raw", 4, tsd)}},
				{m: "sum:rate:%s", aims: []aim{faster("raw", 4, tsd)}},
			}}}},
		{rows: words("onehost"), seconds: 5, big: 5, on: compacted, steps: oneOfAll("onehost", 3)},
		{rows: words("dashboards"), seconds: 15, big: 15, on: compacted, steps: dashboardAgain("dashboards")},
		{rows: words("pushdown"), seconds: 40, on: compacted, steps: []step{asks{
			sides: []string{tsd, pushed}, figures: "{scale} {set} by a pushdown server, ", what: "{M} by a pushdown server, {rows}", slack: hour, warm: 2, verify: 2,
			// Those of which little is left to be done in the gateway, and those of which nearly all is.
			questions: []question{
				{m: sum, aims: []aim{faster("pushdown", 4, tsd)}},
				{m: "sum:%s", aims: []aim{faster("pushdown", 4, tsd)}},
				{m: "sum:rate:%s", aims: []aim{faster("pushdown", 4, tsd)}},
				{m: maxima, aims: []aim{faster("pushdown", 4, tsd)}},
				{query: func(t *set) workload.Query { return t.data.OneHost(17 % t.data.Hosts) }, aims: []aim{faster("pushdown", 4, tsd)}},
			}}}},
		{rows: words("eight"), seconds: 120, on: compacted, steps: []step{do(eight)}},
		{rows: words("bytes"), seconds: 30, on: compacted, steps: []step{do(bytesStored)}},
		{rows: words("exp picture"), seconds: 40, on: compacted, steps: []step{
			asks{sides: onTables, figures: "{scale} {set}, ", slack: hour, warm: 1, verify: 2, questions: []question{
				{query: twoMetrics, points: twice, what: "expression of two metrics by region, compacted rows", aims: []aim{faster("exp", 5, tsd)}},
			}},
			wanted{"picture", []step{asks{sides: []string{ours}, figures: "four lines, ", slack: hour, warm: 2, verify: 2, questions: []question{
				{m: fourLines, name: "answer"},
				{query: picture, name: "picture", what: "/q?png of four lines, 1024x768",
					aims: []aim{within("picture", 10, first).beside("the answer that it draws")}},
			}}}},
		}},

		{rows: words("uncompacted maxima-cells"), seconds: 70, big: 280, on: cells, steps: []step{asks{
			sides: onTables, floors: []string{bare}, figures: "{scale} {set}, ", what: "{m}, {rows}", slack: hour, warm: 2, verify: 2,
			questions: []question{
				{m: sum, aims: []aim{faster("uncompacted", 2.2, tsd), within("uncompacted", 1.2, bare)}},
				{m: byRegion, aims: []aim{faster("uncompacted", 2.2, tsd), within("uncompacted", 1.2, bare)}},
				{m: maxima, aims: []aim{faster("maxima-cells", 2, tsd)}},
			}}}},
		{rows: words("onehost-cells"), seconds: 10, big: 10, on: cells, steps: oneOfAll("onehost-cells", 10)},
		{rows: words("dashboards-cells"), seconds: 60, big: 60, on: cells, steps: dashboardAgain("dashboards-cells")},

		{rows: words("telnet"), seconds: 40, on: own, steps: []step{intoBoth(workload.Telnet, "put by telnet, embedded, durable",
			rate("telnet", 0.5, victoria).beside("VictoriaMetrics"), rated("telnet", 600_000))}},
		{rows: words("http"), seconds: 40, on: own, steps: []step{intoBoth(workload.JSON, "put over HTTP, 1,000 points a request, embedded, durable",
			rate("http", 1, victoria).beside("VictoriaMetrics over HTTP"))}},
		{rows: words("embedded"), seconds: 25, big: 70, on: own, steps: []step{asks{
			sides: []string{victoria, ours}, figures: "{scale} own storage, ", slack: hour, unit: bucket, warm: 1, verify: 2,
			questions: []question{{m: sum, what: "sum:5m-avg, embedded, straight after loading", aims: []aim{faster("embedded", 2.5, victoria)}}}}}},
		{rows: words("hbaseput"), seconds: 90, steps: []step{puts{
			sides: []string{tsd, single1, multi}, format: workload.Telnet, rounds: 2, data: firstHour, names: hourBefore,
			figures: "put into HBase, ", compared: wholeOf(firstHour, "sum:1m-avg:%s{region=*}"),
			aims: []aim{
				rate("hbaseput", 4, tsd).by(single1).saying("put by telnet into HBase, in time order, single cells").beside("OpenTSDB, same HBase"),
				rate("hbaseput", 12, tsd).saying("the same with DOWNPOUR_PUT_CELLS=multi").beside("OpenTSDB, same HBase"),
			}}}},
		{rows: words("newseries-hbase"), seconds: 300, steps: []step{puts{
			sides: []string{tsd, users}, format: workload.Telnet, rounds: 1, data: hbasePods, names: otherNames,
			figures: "new series put into HBase, ", compared: wholeOf(hbasePods, "sum:5m-avg:%s{zone=*}"),
			aims: []aim{rate("newseries-hbase", 10, tsd).beside("OpenTSDB, same HBase").
				saying(fmt.Sprintf("{hbase pods} new series of 3 tags put by telnet into HBase, %d points each", podHours*podPerHour))}}}},
		{rows: words("memory"), seconds: 60, steps: []step{do(memory)}},

		{rows: words("viewers viewers-timestamps"), seconds: 600, on: viewed, steps: []step{do(viewers)}},
		{rows: words("living living-exact"), seconds: 900, on: living, steps: []step{
			agree(sum, tsd, timestamps),
			meanwhile{writeOthers, []step{
				livingPanel("living", "its open hour is compacted", faster("living", 100, tsd), aim{row: "living", kind: inMS, want: 25, what: "the same"}),
				wanted{"living-exact", []step{
					do(agreeOlder), livingBesideReading("the region is written to", within("living-exact", 1.1, everyRow)), // of two that do the same, one is slower by chance
					do(splitBehind), remembered(users), do(agreeOlder),
					livingBesideReading("older hours in a region that rests", faster("living-exact", 5, everyRow)),
				}},
			}},
		}},
		{rows: words("living-cells"), seconds: 900, on: livingCells, steps: []step{
			agree(sum, tsd, timestamps),
			meanwhile{writeAll(timestamps), []step{livingPanel("living-cells", "its open hour has a cell a point", faster("living-cells", 2, tsd))}},
		}},
		{rows: words("newseries firstlook sparse"), seconds: 300, on: manyPods, steps: []step{
			puts{sides: []string{victoria, frugal}, format: workload.Telnet, rounds: 1, data: pods, compared: wholeOf(pods, "sum:5m-avg:%s{zone=*}"),
				figures: "new series put, ", what: fmt.Sprintf("{series} new series of 3 tags put by telnet, %d points each, embedded, durable", podHours*podPerHour),
				aims: []aim{rate("newseries", 0.7, victoria).beside("VictoriaMetrics"), rated("newseries", 300_000)}},
			asks{sides: []string{victoria, frugal}, anew: fresh, warm: 0, verify: 1, questions: []question{
				{name: "one pod, first query", of: batches(onePod), what: "one of {series} series, first query of a process",
					aims: []aim{within("firstlook", 2, victoria).beside("VictoriaMetrics, running, first query of this series")}},
			}},
			wanted{"sparse", []step{do(forgetPeaks),
				asks{sides: []string{victoria, frugal}, figures: "pods, ", atMost: 5, slack: 2 * bucket, unit: bucket, verify: 1,
					what: fmt.Sprintf("{M}, {pod rows} rows of %d points, embedded", podPerHour), questions: []question{
						{m: sum, aims: []aim{faster("sparse", 2, victoria)}},
						{m: "sum:5m-avg:%s{zone=*}", aims: []aim{faster("sparse", 2, victoria)}},
					}},
				do(comparePeaks)}},
		}},

		{rows: words("rollup percentiles"), seconds: 120, on: rolled, steps: []step{
			asks{sides: onTables, figures: "{scale} {set}, ", slack: 24 * hour, unit: hour, warm: 1, verify: 2, questions: []question{
				{query: rollupQuery, points: rollupCells, what: fmt.Sprintf("sum:1h-avg of rollups, %d days of {hosts} series", rollupDays), aims: []aim{faster("rollup", 3, tsd)}},
			}},
			asks{sides: onTables, figures: "{scale} {set}, ", slack: hour, unit: 60, warm: 1, verify: 2, questions: []question{
				{query: percentiles, points: histograms, what: "percentiles of {histograms} histograms by 10 min", aims: []aim{faster("percentiles", 5, tsd)}},
			}},
		}},
		{rows: words("compaction"), seconds: 300, steps: []step{do(compacting)}},
		{rows: words("retention"), seconds: 120, steps: []step{do(retaining)}},
		// A row of a point a minute is one cell when it is compacted, and its average by the hour two, so there the aim is that nothing is lost.
		{rows: words("rollup-auto"), seconds: 1200, on: rollable, steps: rollupsOf("rollup-auto", 1)},
		{rows: words("rollup-auto-cells"), seconds: 1500, on: rollableCells, steps: rollupsOf("rollup-auto-cells", 20)},
		{rows: words("protections"), seconds: 180, on: protected, steps: []step{
			asks{sides: protectionKinds, floors: []string{javas(plain), javas(authentication), javas(integrity), javas(privacy), javas(encrypted)},
				slack: hour, warm: 8, verify: 1, // Java compiles what runs often
				questions: []question{{m: sum, name: "sum:5m-avg, compacted rows", what: "sum:5m-avg, compacted rows, {side}", aims: []aim{
					within("protections", 1.05, plain).by(authentication),
					asJava(integrity, 1.2), asJava(privacy, 1.5), asJava(encrypted, 1.3),
				}}}},
			asks{sides: protectionKinds, anew: fresh, warm: 1, questions: []question{{of: batches(wholeSum), what: "first query of a process"}}},
			asks{sides: protectionKinds, anew: withStart, warm: 1, questions: []question{{of: batches(wholeSum), what: "a process's start and first query"}}},
		}},

		{rows: words("alltime"), seconds: 60, on: allTime, steps: overAllTime("alltime", "")},
		{rows: words("alltime-salted"), seconds: 60, on: allTimeSalted, steps: overAllTime("alltime-salted", ", 20 salt buckets")},
		{rows: words("alltime-embedded"), seconds: 20, on: allTimeEmbedded, steps: []step{
			asks{sides: []string{uncached}, times: 4, warm: 1, questions: sinceFirstRow("sparse")}, // of few ms each
			asks{sides: []string{uncached}, times: 4, warm: 1, questions: sinceFirstRow("dense")},
		}},
	}
}

// oneOfAll asks for one host of all, another one each round.
func oneOfAll(row string, want float64) []step {
	return []step{asks{sides: []string{tsd, ours}, figures: "{scale} ", times: 4, warm: 1, verify: 2, questions: []question{
		{of: batches(oneHost), what: "one host of {hosts}, {rows}", aims: []aim{faster(row, want, tsd)}},
	}}}
}

// dashboardAgain asks for a dashboard again and again.
func dashboardAgain(row string) []step {
	return []step{asks{sides: []string{tsd, users}, figures: "{scale} ", warm: 1, verify: 2, questions: []question{
		{of: batches(movingDashboard), what: "dashboard of {panels} panels over {window} h again and again, {rows}", aims: []aim{faster(row, 20, tsd)}},
	}}}
}

// intoBoth puts the data set into VictoriaMetrics and ours.
func intoBoth(format workload.Format, what string, aims ...aim) step {
	return puts{sides: []string{victoria, ours}, format: format, rounds: 3, data: wholeData, compared: wholeOf(wholeData, sum),
		figures: fmt.Sprintf("{scale} put, %s, ", format), what: what, aims: aims}
}

// The panel of the rows living is asked every so often, while so many points a second come.
const (
	livingEvery     = 10 * time.Second
	livingPerSecond = 5_000
	livingWhat      = "panel over {days} days of {series} series, asked every 10s, while 5,000 points/s come, "
)

// livingPanel asks for the panel up to now next to OpenTSDB, once its older hours come from memory.
func livingPanel(row, open string, aims ...aim) step {
	return wanted{row, []step{remembered(timestamps),
		asks{sides: []string{tsd, timestamps}, every: livingEvery, questions: []question{
			{of: panel, what: livingWhat + open + ", proof by timestamps", aims: aims},
		}}}}
}

// livingBesideReading asks for the panel up to now next to a gateway that reads every row.
func livingBesideReading(where string, one aim) step {
	return asks{sides: []string{everyRow, users}, every: livingEvery, warm: 1, questions: []question{{of: panel, what: livingWhat + where, aims: []aim{one}}}}
}

// rollupsOf asks for averages that the gateway has made itself, while the table is written to.
func rollupsOf(row string, want float64) []step {
	return []step{meanwhile{writeAll(everyRow), []step{do(makeRollups),
		asks{sides: []string{everyRow, made}, figures: "{set}, ", slack: hour, unit: hour, warm: 1, verify: 2, questions: []question{
			{m: "sum:1h-avg:%s", what: "sum:1h-avg of {days} days of {hosts} series, {rows}, from rollups that made themselves, while others are written",
				aims: []aim{faster(row, want, everyRow).beside("every raw row read")}},
		}}}}}
}

// asJava is the aim that a side takes at most want times as long as HBase's own client over the same connections.
func asJava(side string, want float64) aim {
	return within("protections", want, javas(side)).by(side).beside("scan of the same rows by HBase's own client, the same protection")
}

// overAllTime asks for one host over all time next to OpenTSDB.
func overAllTime(row, salt string) (steps []step) {
	for _, metric := range []string{"sparse", "dense"} {
		steps = append(steps, asks{sides: []string{tsd, uncached}, figures: "{scale} ", warm: 1, verify: 2, questions: []question{
			{of: hostSince(metric, 0), what: "one host over all time, " + metric + " metric" + salt, aims: []aim{faster(row, 1, tsd)}},
		}})
	}
	return steps
}

// sinceFirstRow asks for one host since its first row, and over all time, which is to take as long.
func sinceFirstRow(metric string) []question {
	what := "one host over all time, " + metric + " metric, embedded"
	return []question{
		{of: hostSince(metric, sparseStart), name: what + ": since its first row"},
		{of: hostSince(metric, 0), name: what + ": all time", what: what, aims: []aim{within("alltime-embedded", 1.5, first).beside("since the first row")}},
	}
}
