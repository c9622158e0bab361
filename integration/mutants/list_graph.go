package main

// ofGraph are faults of /q.
var ofGraph = []mutant{
	{
		name: "picture-allocated-before-it-is-reserved", file: "gateway/extra/graph/picture/canvas.go",
		old: "int64(o.Width)*int64(o.Height)*bytesPerPixel + encoderBytes", new: "encoderBytes",
		test: "TestDraw_guarded",
	}, {
		name: "picture-without-a-bound", file: "gateway/extra/graph/options.go",
		old: "case w*h > MaxPixels:", new: "case w*h > MaxPixels<<16:",
		test: "TestParse_refused",
	}, {
		name: "drawing-goes-on-without-its-client", file: "gateway/extra/graph/picture/canvas.go",
		old: "	if c.err == nil {\n		c.err = c.guard.Check()\n	}\n", new: "",
		test: "TestDraw_guarded",
	}, {
		name: "extremes-of-a-column-lost", file: "gateway/extra/graph/picture/draw.go",
		old: "math.Max(c.low, v.y), math.Min(c.high, v.y)", new: "v.y, v.y",
		test: "TestDraw_manyPoints",
	}, {
		name: "line-drawn-over-the-frame", file: "gateway/extra/graph/picture/draw.go",
		old: "	from, to = a, b\n	if enter > 0 {", new: "	from, to = a, b\n	if enter > 1 {",
		test: "TestDraw_clipped",
	}, {
		name: "right-axis-with-the-left-scale", file: "gateway/extra/graph/picture/draw.go",
		old: "	if ln.onRight {\n		s = l.right\n	}\n", new: "",
		test: "TestDraw_rightAxis",
	}, {
		name: "picture-reads-a-second-too-far", file: "gateway/query/plan/rollup.go",
		old: "		end-- //", new: "		//",
		test: "gateway/extra TestGraph_wholeSeconds",
	}, {
		name: "text-of-scripts-of-other-sites", file: "gateway/api/origin/rules.go",
		old: `r.first("Sec-Fetch-Dest") == "image" && `, new: "",
		test: "gateway/extra TestDoors_images",
	}, {
		name: "points-given-to-images", file: "gateway/extra/graph/graphroutes/graph.go",
		old: "return f == asPNG || f == asSVG", new: "return f != asPage",
		test: "gateway/extra TestDoors_images",
	}, {
		name: "message-of-a-page-not-escaped", file: "gateway/extra/graph/graphroutes/page.go",
		old: "Replace(html.EscapeString(message))", new: "Replace(message)",
		test: "gateway/extra TestGraph_refused",
	}, {
		name: "tags-in-the-order-of-uids", file: "gateway/extra/graph/graphroutes/text.go",
		old:  "	javahash.Sort(tags, func(t engine.Tag) string { return t.K }, javahash.Slots)\n",
		new:  "	javahash.Sort(tags, func(t engine.Tag) string { return \"\" }, javahash.Slots)\n",
		test: "gateway/extra TestGraph_tags",
	},
}
