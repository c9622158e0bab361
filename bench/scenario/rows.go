package scenario

import (
	"fmt"
	"strings"
	"time"

	"downpour/bench/workload"
)

// Texts of questions, with %s for the metric.
const (
	sum      = "sum:5m-avg:%s"
	byRegion = "sum:5m-avg:%s{region=*}"
	byHost   = "sum:5m-avg:%s{host=*}"
	byZone   = "sum:5m-avg:%s{zone=*}"
	maxima   = "avg:5m-max:%s{host=*}"
	everySum = "sum:%s"
	rates    = "sum:rate:%s"
)

// Beginnings of the names of figures.
const (
	ofScale = "{scale} "
	ofSet   = "{scale} {set}, "
)

// bucket is the width of a bucket in seconds. The times of queries to VictoriaMetrics vary by whole buckets, because it
// aligns all buckets to multiples of their width.
const bucket = 300

// words cuts a text at blanks.
func words(text string) []string { return strings.Fields(text) }

// Who is asked, as a rule.
var (
	onTables   = []string{tsd, ours}
	onOwn      = []string{victoria, ours}
	onPods     = []string{victoria, frugal}
	livingly   = []string{tsd, timestamps}
	besideRead = []string{everyRow, users}
)

// scenarios are all of them. Those about the same data set stand together, so that it is made once.
var scenarios = []scenario{
	{rows: words("compacted floor maxima raw"), seconds: 30, big: 120, on: compacted, steps: []step{
		asks{
			sides:   onTables,
			floors:  []string{bare},
			figures: ofSet,
			what:    "{m}, {rows}",
			warm:    2,
			questions: []question{
				{m: sum, aims: []aim{faster("compacted", 5, tsd), within("floor", 1.8, bare)}},
				{m: byRegion, aims: []aim{faster("compacted", 5, tsd), within("floor", 1.8, bare)}},
				{m: byHost, aims: []aim{within("floor", 4, bare)}},
				{m: maxima, aims: []aim{faster("maxima", 2.5, tsd)}},
				{m: everySum, aims: []aim{faster("raw", 4, tsd)}},
				{m: rates, aims: []aim{faster("raw", 4, tsd)}},
			},
		},
	}},
	{rows: words("onehost"), seconds: 5, big: 5, on: compacted, steps: oneOfAll("onehost", 3)},
	{rows: words("dashboards"), seconds: 15, big: 15, on: compacted, steps: dashboardAgain("dashboards", 20)},
	{rows: words("pushdown"), seconds: 40, on: compacted, steps: []step{
		asks{sides: []string{tsd, pushed}, figures: "{scale} {set} by a pushdown server, ", warm: 2,
			what: "{M} by a pushdown server, {rows}", questions: []question{
				// Those that leave little to be done in the gateway, and those that leave nearly all.
				{m: sum, aims: []aim{faster("pushdown", 4, tsd)}},
				{m: everySum, aims: []aim{faster("pushdown", 4, tsd)}},
				{m: rates, aims: []aim{faster("pushdown", 4, tsd)}},
				{m: maxima, aims: []aim{faster("pushdown", 4, tsd)}},
				{query: someHost, aims: []aim{faster("pushdown", 4, tsd)}},
			}},
	}},
	{rows: words("eight"), seconds: 120, on: compacted, steps: []step{
		agree(oneBoard, tsd, users), do(keepBoard),
		// They refresh by the clock, at half of what OpenTSDB can answer.
		loop{sides: []string{tsd, users}, name: "eight dashboards", queries: eightBoards,
			rate: halfOf(tsd), burst: panelsOfBoard, runs: 2,
			what: "eight dashboards at once, p99 at {rate} panels/s, compacted rows",
			aims: []aim{faster("eight", 4, tsd).by(users)}},
		do(lightBesideHeavy),
	}},
	{rows: words("bytes"), seconds: 30, on: compacted, steps: []step{do(bytesStored)}},
	{rows: words("exp picture"), seconds: 40, on: compacted, steps: []step{
		asks{sides: onTables, figures: ofSet, what: "expression of two metrics by region, compacted rows",
			questions: []question{{query: twoMetrics, points: twice, aims: []aim{faster("exp", 5, tsd)}}}},
		wanted{"picture", []step{asks{sides: []string{ours}, figures: "four lines, ", warm: 2, questions: []question{
			{m: fourLines, name: "answer"},
			{query: picture, name: "picture", what: "/q?png of four lines, 1024x768",
				aims: []aim{within("picture", 10, "four lines, answer").beside("the answer that it draws")}},
		}}}},
	}},

	{rows: words("uncompacted maxima-cells"), seconds: 70, big: 280, on: cells, steps: []step{
		asks{
			sides:   onTables,
			floors:  []string{bare},
			figures: ofSet,
			what:    "{m}, {rows}",
			warm:    2,
			questions: []question{
				{m: sum, aims: []aim{faster("uncompacted", 2.2, tsd), within("uncompacted", 1.2, bare)}},
				{m: byRegion, aims: []aim{faster("uncompacted", 2.2, tsd), within("uncompacted", 1.2, bare)}},
				{m: maxima, aims: []aim{faster("maxima-cells", 2, tsd)}},
			},
		},
	}},
	{rows: words("onehost-cells"), seconds: 10, big: 10, on: cells, steps: oneOfAll("onehost-cells", 10)},
	{rows: words("dashboards-cells"), seconds: 60, big: 60, on: cells, steps: dashboardAgain("dashboards-cells", 20)},

	{rows: words("telnet"), seconds: 40, on: own, steps: []step{
		puts{sides: onOwn, format: workload.Telnet, rounds: 3, data: wholeData, compared: wholeOf(wholeData, sum),
			figures: "{scale} put, telnet, ", what: "put by telnet, embedded, durable",
			aims: []aim{rate("telnet", 0.5, victoria).beside("VictoriaMetrics"), rated("telnet", 600_000)}},
		do(noteDurable),
	}},
	{rows: words("http"), seconds: 40, on: own, steps: []step{
		puts{sides: onOwn, format: workload.JSON, rounds: 3, data: wholeData, compared: wholeOf(wholeData, sum),
			figures: "{scale} put, json, ", what: "put over HTTP, 1,000 points a request, embedded, durable",
			aims: []aim{rate("http", 1, victoria).beside("VictoriaMetrics over HTTP")}},
		do(noteDurable),
	}},
	{rows: words("remotewrite"), seconds: 40, on: own, steps: []step{
		puts{sides: onOwn, format: workload.RemoteWrite, rounds: 3, data: wholeData, compared: wholeOf(wholeData, sum),
			figures: "{scale} put, remote write, ",
			what:    "put by remote write, 1,000 samples a request, embedded, durable",
			aims:    []aim{rate("remotewrite", 0.25, victoria).beside("VictoriaMetrics")}},
		do(noteDurable),
	}},
	{rows: words("embedded"), seconds: 25, big: 70, on: own, steps: []step{
		asks{sides: onOwn, figures: "{scale} own storage, ", unit: bucket,
			what:      "sum:5m-avg, embedded, straight after loading",
			questions: []question{{m: sum, aims: []aim{faster("embedded", 2.5, victoria)}}}},
	}},
	{rows: words("rest"), seconds: 60, big: 180, on: sealed, steps: []step{
		asks{sides: onOwn, figures: "{scale} sealed, ", unit: bucket, warm: 2, what: "{M}, embedded, sealed",
			questions: []question{
				{m: sum, aims: []aim{faster("rest", 5, victoria)}},
				{m: byRegion, aims: []aim{faster("rest", 5, victoria)}},
				{m: maxima, aims: []aim{faster("rest", 2.5, victoria)}},
			}},
		asks{sides: onOwn, figures: "{scale} sealed, ", times: 4, what: "one host of {hosts}, embedded, sealed",
			questions: []question{{of: batches(oneHost), aims: []aim{faster("rest", 1, victoria)}}}},
		do(bytesAtRest("rest")), do(memoryAtRest),
	}},
	{rows: words("promql"), seconds: 60, on: sealed, steps: []step{
		// The two mean something else by rates, and by quantiles between two values.
		asks{sides: onOwn, floors: []string{promEngine}, figures: "{scale} PromQL, ", unit: bucket, warm: 2,
			verify: none, what: "{M}, embedded, sealed", questions: []question{
				{query: promQL(ratesByDC),
					aims: []aim{faster("promql", 0.4, victoria), faster("promql", 2.5, promEngine)}},
				{query: promQL(`quantile by (dc) (0.9, rate({__name__="%s"}[5m]))`),
					aims: []aim{faster("promql", 0.4, victoria)}},
			}},
		asks{sides: onOwn, figures: "{scale} PromQL, ", unit: bucket, warm: 2, what: "{M}, embedded, sealed",
			questions: []question{
				{query: promQL(`avg by (dc) (avg_over_time({__name__="%s"}[5m]))`),
					aims: []aim{faster("promql", 0.3, victoria)}},
			}},
		asks{sides: onOwn, figures: "{scale} PromQL, ", times: 4,
			what:      "avg_over_time of one host of {hosts}, embedded, sealed",
			questions: []question{{of: batches(onePromQL), aims: []aim{faster("promql", 0.6, victoria)}}}},
	}},
	{rows: words("rest-counters"), seconds: 20, big: 60, on: counters, steps: []step{do(bytesAtRest("rest-counters"))}},
	{rows: words("rest-gauges"), seconds: 20, big: 60, on: gauges, steps: []step{do(bytesAtRest("rest-gauges"))}},
	{rows: words("tsbs"), seconds: 150, on: tsbs, steps: []step{
		asks{sides: []string{ours}, figures: "TSBS ", times: 4, verify: none, questions: tsbsQuestions("tsbs")},
	}},
	{rows: words("hbaseput"), seconds: 90, steps: []step{
		puts{
			sides:    []string{tsd, singly, multi},
			format:   workload.Telnet,
			rounds:   2,
			data:     firstHour,
			names:    hourBefore,
			figures:  "put into HBase, ",
			compared: wholeOf(firstHour, "sum:1m-avg:%s{region=*}"),
			what:     "put by telnet into HBase, in time order, single cells",
			aims: []aim{
				rate("hbaseput", 4, tsd).by(singly).beside("OpenTSDB, same HBase"),
				rate("hbaseput", 12, tsd).saying("the same with DOWNPOUR_PUT_CELLS=multi").
					beside("OpenTSDB, same HBase"),
			},
		},
	}},
	{rows: words("newseries-hbase"), seconds: 300, steps: []step{
		puts{sides: []string{tsd, users}, format: workload.Telnet, rounds: 1, data: hbasePods, names: otherNames,
			figures: "new series put into HBase, ", compared: wholeOf(hbasePods, byZone),
			what: "{hbase pods} new series of 3 tags put by telnet into HBase, {pod points} points each",
			aims: []aim{rate("newseries-hbase", 10, tsd).beside("OpenTSDB, same HBase")}},
	}},
	{rows: words("memory"), seconds: 60, steps: []step{do(memory)}},

	{rows: words("viewers viewers-timestamps"), seconds: 600, on: viewed, steps: []step{
		agree(panelsUntil(viewerPanels, untilEnd), tsd, users),
		wanted{"viewers-timestamps", []step{agree(panelsUntil(viewerPanels, untilEnd), tsd, proving)}},
		meanwhile{writeMuch, []step{
			do(caughtUp), wanted{"viewers-timestamps", []step{do(rememberedPanel)}},
			loop{sides: []string{users, proving, tsd}, name: "{viewers} viewers", queries: endingNow,
				rate: viewedRate, burst: viewerPanels, clients: viewersAtOnce, runs: 1, cutOff: 4,
				what: "dashboard of 20 panels over {hours} h, {viewers} viewers at 10s, " +
					"while {points/s} points/s come, p99",
				aims: []aim{
					faster("viewers", 20, tsd).by(users),
					faster("viewers-timestamps", 20, tsd).by(proving).adding(", proof by timestamps"),
				}},
		}},
		// Also of the hours that were written to in the meantime.
		agree(panelsUntil(len(viewedPanels), untilPresent), tsd, users),
		wanted{"viewers-timestamps", []step{agree(panelsUntil(len(viewedPanels), untilPresent), tsd, proving)}},
	}},
	{rows: words("living living-exact"), seconds: 900, on: living, steps: []step{
		agree(allOf(sum), livingly...),
		meanwhile{writeOthers, []step{
			wanted{"living",
				[]step{remembered(timestamps), asks{sides: livingly, every: livingEvery, warm: none, verify: none,
					what: livingWhat + "its open hour is compacted, proof by timestamps", questions: []question{
						{of: panel, aims: []aim{faster("living", 100, tsd), inTime("living", 25).saying("the same")}},
					}}}},
			wanted{"living-exact",
				[]step{agree(older, besideRead...), asks{sides: besideRead, every: livingEvery, verify: none,
					what: livingWhat + "the region is written to", questions: []question{
						// Of two that do the same, one is slower by chance.
						{of: panel, aims: []aim{within("living-exact", 1.1, everyRow)}},
					}}}},
			wanted{"living-exact", []step{do(splitBehind), remembered(users), agree(older, besideRead...),
				asks{sides: besideRead, every: livingEvery, verify: none,
					what: livingWhat + "older hours in a region that rests", questions: []question{
						{of: panel, aims: []aim{faster("living-exact", 5, everyRow)}},
					}}}},
		}},
	}},
	{rows: words("living-cells"), seconds: 900, on: livingCells, steps: []step{
		agree(allOf(sum), livingly...),
		meanwhile{writeAll(timestamps), []step{remembered(timestamps),
			asks{sides: livingly, every: livingEvery, warm: none, verify: none,
				what: livingWhat + "its open hour has a cell a point, proof by timestamps", questions: []question{
					{of: panel, aims: []aim{faster("living-cells", 2, tsd)}},
				}},
		}},
	}},
	{rows: words("newseries firstlook sparse"), seconds: 300, on: manyPods, steps: []step{
		puts{sides: onPods, format: workload.Telnet, rounds: 1, data: pods, compared: wholeOf(pods, byZone),
			figures: "new series put, ",
			what:    "{series} new series of 3 tags put by telnet, {pod points} points each, embedded, durable",
			aims:    []aim{rate("newseries", 0.7, victoria).beside("VictoriaMetrics"), rated("newseries", 300_000)}},
		asks{
			sides:  onPods,
			anew:   fresh,
			warm:   none,
			verify: 1,
			what:   "one of {series} series, first query of a process",
			questions: []question{{name: "one pod, first query", of: batches(onePod), aims: []aim{
				within("firstlook", 2, victoria).beside("VictoriaMetrics, running, first query of this series"),
			}}},
		},
		wanted{"sparse", []step{
			do(forgetPeaks),
			asks{sides: onPods, figures: "pods, ", atMost: 5, slack: 2 * bucket, unit: bucket, warm: none, verify: 1,
				what: fmt.Sprintf("{M}, {pod rows} rows of %d points, embedded", podPerHour), questions: []question{
					{m: sum, aims: []aim{faster("sparse", 2, victoria)}},
					{m: byZone, aims: []aim{faster("sparse", 2, victoria)}},
				}},
			do(comparePeaks),
		}},
	}},

	{rows: words("rollup percentiles"), seconds: 120, on: rolled, steps: []step{
		asks{sides: onTables, figures: ofSet, slack: 24 * hour, unit: hour,
			what: fmt.Sprintf("sum:1h-avg of rollups, %d days of {hosts} series", rollupDays), questions: []question{
				{query: rollupQuery, points: rollupCells, aims: []aim{faster("rollup", 3, tsd)}},
			}},
		asks{sides: onTables, figures: ofSet, unit: 60, what: "percentiles of {histograms} histograms by 10 min",
			questions: []question{
				{query: percentiles, points: histograms, aims: []aim{faster("percentiles", 5, tsd)}},
			}},
	}},
	{rows: words("compaction"), seconds: 300, on: lately, steps: []step{
		compacts(tsd, compactTheirs), do(renewed), compacts(ours, compactOurs), do(compareCompacted), do(renewed),
		keepAnswer(pushed),
		asks{sides: []string{pushed}, verify: none, questions: []question{
			{of: batches(wholeSum), points: allPoints, name: "sum:5m-avg before row compaction"},
		}},
		lightly{side: pushed, when: "without compaction"},
		do(begun),
		lightly{side: compactor, when: "beside compaction of {rows/s} rows/s", aims: [2]aim{
			within("compaction", 1.2, "queries without compaction, p99").beside("without"),
			within("compaction", 1.2, "puts without compaction, p99").beside("without"),
		}},
		do(ended),
		asks{sides: []string{compactor}, verify: none, what: "sum:5m-avg after row compaction", questions: []question{
			{of: batches(wholeSum), points: allPoints, aims: []aim{
				faster("compaction", 2, "sum:5m-avg before row compaction").beside("before it"),
			}},
		}},
	}},
	{rows: words("retention"), seconds: 120, steps: []step{do(retaining)}},
	// A row of a point a minute is one cell when it is compacted, and its average by the hour two, so there the aim is
	// that nothing is lost.
	{rows: words("rollup-auto"), seconds: 1200, on: rollable, steps: rollupsOf("rollup-auto", 1)},
	{rows: words("rollup-auto-cells"), seconds: 1500, on: rollableCells, steps: rollupsOf("rollup-auto-cells", 20)},
	{rows: words("protections"), seconds: 180, on: protected, steps: []step{
		asks{sides: protectionKinds, floors: javaScans, warm: 8, verify: 1, // Java compiles what runs often
			what: "sum:5m-avg, compacted rows, {side}", questions: []question{
				{m: sum, name: "sum:5m-avg, compacted rows", aims: []aim{
					within("protections", 1.05, plain).by(authentication),
					asJava(integrity, 1.2), asJava(privacy, 1.5), asJava(encrypted, 1.3),
				}},
			}},
		asks{sides: protectionKinds, anew: fresh, verify: none,
			questions: []question{{of: batches(wholeSum), name: "first query of a process"}}},
		asks{sides: protectionKinds, anew: withStart, verify: none,
			questions: []question{{of: batches(wholeSum), name: "a process's start and first query"}}},
	}},

	{rows: words("alltime"), seconds: 60, on: allTime, steps: overAllTime("alltime", "")},
	{rows: words("alltime-salted"), seconds: 60, on: allTimeSalted,
		steps: overAllTime("alltime-salted", ", 20 salt buckets")},
	{rows: words("alltime-embedded"), seconds: 20, on: allTimeEmbedded, steps: []step{
		asks{sides: []string{uncached}, times: 4, questions: sinceFirstRow("sparse")}, // of few ms each
		asks{sides: []string{uncached}, times: 4, questions: sinceFirstRow("dense")},
	}},
}

// oneOfAll asks for one host of all, another one each round.
func oneOfAll(row string, want float64) []step {
	return []step{asks{sides: onTables, figures: ofScale, times: 4, what: "one host of {hosts}, {rows}",
		questions: []question{{of: batches(oneHost), aims: []aim{faster(row, want, tsd)}}}}}
}

// dashboardAgain asks for a dashboard again and again.
func dashboardAgain(row string, want float64) []step {
	return []step{asks{sides: []string{tsd, users}, figures: ofScale,
		what:      "dashboard of {panels} panels over {window} h again and again, {rows}",
		questions: []question{{of: batches(movingDashboard), aims: []aim{faster(row, want, tsd)}}}}}
}

// The panel of the rows living is asked every so often, while so many points a second come.
const (
	livingEvery     = 10 * time.Second
	livingPerSecond = 5_000
	livingWhat      = "panel over {days} days of {series} series, asked every 10s, while 5,000 points/s come, "
)

// rollupsOf asks for averages that the gateway has made itself, while the table is written to.
func rollupsOf(row string, want float64) []step {
	const what = "sum:1h-avg of {days} days of {hosts} series, {rows}, " +
		"from rollups that made themselves, while others are written"
	return []step{meanwhile{writeAll(everyRow), []step{do(makeRollups),
		asks{sides: []string{everyRow, made}, figures: "{set}, ", unit: hour, what: what, questions: []question{
			{m: "sum:1h-avg:%s", aims: []aim{faster(row, want, everyRow).beside("every raw row read")}},
		}}}}}
}

// asJava is the aim that a side takes at most want times as long as HBase's own client over the same connections.
func asJava(side string, want float64) aim {
	const against = "scan of the same rows by HBase's own client, the same protection"
	return within("protections", want, javas(side)).by(side).beside(against)
}

// overAllTime asks for one host over all time next to OpenTSDB.
func overAllTime(row, salt string) (steps []step) {
	for _, metric := range []string{"sparse", "dense"} {
		steps = append(steps, asks{sides: []string{tsd, uncached}, figures: ofScale,
			what:      "one host over all time, " + metric + " metric" + salt,
			questions: []question{{of: hostSince(metric, 0), aims: []aim{faster(row, 1, tsd)}}}})
	}
	return steps
}

// sinceFirstRow asks for one host since its first row, and over all time, which is to take as long.
func sinceFirstRow(metric string) []question {
	what := "one host over all time, " + metric + " metric, embedded"
	return []question{
		{of: hostSince(metric, sparseStart), name: what + ": since its first row"},
		{of: hostSince(metric, 0), name: what + ": all time", what: what,
			aims: []aim{within("alltime-embedded", 1.5, what+": since its first row").beside("since the first row")}},
	}
}
