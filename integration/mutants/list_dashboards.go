package main

// ofDashboards are faults of dashboards: work of others that is overwritten or lost, documents that
// no page can show, changes by those who may only read, and titles that run.
var ofDashboards = []mutant{
	{
		name: "dashboard-conflict-ignored", file: "gateway/extra/dashboards/dashboard/store.go",
		old: "if !h.is(from) {", new: "if false {",
		test: "TestStore_versions",
	}, {
		name: "dashboard-saved-without-its-head", file: "gateway/extra/dashboards/dashboard/store.go",
		old: "if !saved {", new: "if !saved && fault != nil {",
		test: "TestStore_concurrent",
	}, {
		name: "dashboard-saved-over-its-deletion", file: "gateway/extra/dashboards/dashboard/store.go",
		old: "return now.Version == from && !now.Deleted()", new: "return now.Version == from",
		test: "TestStore_delete",
	}, {
		name: "dashboard-lost-reply-taken-for-a-failure", file: "gateway/extra/dashboards/dashboard/store.go",
		old: "case err == nil && bytes.Equal(current, value):", new: "case false && bytes.Equal(current, value):",
		test: "TestStore_lostReply",
	}, {
		name: "dashboard-document-under-way-removed", file: "gateway/extra/dashboards/dashboard/store.go",
		old: "err == nil && version <= h.now().Version &&", new: "err == nil && version > 0 &&",
		test: "TestStore_keeps",
	}, {
		name: "dashboard-of-a-later-form-taken", file: "gateway/extra/dashboards/dashboard/document.go",
		old: "if form > Form {", new: "if form > Form && false {",
		test: "TestCheck",
	}, {
		name: "dashboard-changed-in-mode-ro", file: "gateway/extra/dashboards/dashboardroutes/handlers.go",
		old: "if h.ReadOnly {", new: "if false {",
		test: "gateway/extra TestDashboards_mode",
	}, {
		name: "dashboard-saved-without-audit", file: "gateway/extra/dashboards/dashboardroutes/handlers.go",
		old: "	h.Guard.Audit(r)\n", new: "",
		test: "gateway/extra TestDashboards_audit",
	}, {
		name: "metrics-of-the-host-in-a-filled-store", file: "gateway/extra/hostmetrics/extra.go",
		old: "!slices.Contains(known, First)", new: "len(known) > 1",
		test: "gateway/extra TestSelfMetrics_auto",
	}, {
		name: "metrics-of-the-host-in-mode-ro", file: "gateway/extra/hostmetrics/extra.go",
		old: "interval == 0 || c.ReadOnly()", new: "interval == 0",
		test: "gateway/extra TestSelfMetrics_auto",
	}, {
		name: "metrics-of-the-host-twice-a-second", file: "gateway/extra/hostmetrics/collector.go",
		old: "next := time.Now().Truncate(time.Second).Add(time.Second)", new: "next := time.Now()",
		test: "TestFirstSampleInTheNextSecondThenEveryInterval",
	}, {
		name: "metrics-of-the-host-with-gaps-in-charts", file: "gateway/extra/hostmetrics/collector.go",
		old: "		count *= 2\n", new: "		count = 1\n",
		test: "TestFirstSamplesComeOften",
	}, {
		name: "dashboard-start-over-data", file: "gateway/extra/hostmetrics/extra.go",
		old: "len(names) < ownAtMost && !slices", new: "len(names) < ownAtMost || !slices",
		test: "gateway/extra TestStartDashboard",
	}, {
		name: "dashboard-built-in-over-saved", file: "gateway/extra/dashboards/dashboardroutes/handlers.go",
		old: "number == 0 && errors.Is(err, dashboard.ErrNotFound)", new: "number == 0",
		test: "gateway/extra TestHostDashboard_saved",
	}, {
		name: "dashboard-title-as-markup", file: "gateway/web/static/js/board/panel.js",
		old: "this.title.textContent = title;", new: "this.title.innerHTML = title;",
		test: "gateway/web TestNothingBecomesMarkup",
	}, {
		name: "dashboard-text-as-markup", file: "gateway/web/static/js/element.js",
		old: "if (text) e.textContent = text;", new: "if (text) e.innerHTML = text;",
		test: "gateway/web TestNothingBecomesMarkup",
	}, {
		name: "dashboard-fields-of-new-types-unchecked", file: "gateway/extra/dashboards/dashboard/fields.go",
		old: `"stacked": axes,`, new: `"stacked": asked,`,
		test: "TestCheck_fieldsAsThePage",
	}, {
		name: "dashboard-top-of-half-a-line", file: "gateway/extra/dashboards/dashboard/fields.go",
		old: "n != math.Trunc(n) ||", new: "n == math.Inf(1) ||",
		test: "TestCheck_fieldsAsThePage",
	}, {
		name: "dashboard-threshold-of-any-colour", file: "gateway/extra/dashboards/dashboard/fields.go",
		old: `t.oneOf("colour", colours)`, new: `t.oneOf("label", colours)`,
		test: "TestCheck_fieldsAsThePage",
	}, {
		name: "dashboard-threshold-of-no-side", file: "gateway/extra/dashboards/dashboard/fields.go",
		old: `t.flag("right")`, new: `t.flag("label")`,
		test: "TestCheck_fieldsAsThePage",
	}, {
		name: "dashboard-variables-in-a-circle",
		file: "gateway/extra/dashboards/dashboard/variables.go",
		old:  "return fmt.Errorf(\"variables: the filters of %s go in a circle\", strings.Join(circle, \", \"))",
		new:  "return nil",
		test: "TestCheck_variables",
	}, {
		name: "dashboard-variables-of-one-name", file: "gateway/extra/dashboards/dashboard/variables.go",
		old: "		if names[name] {", new: "		if false {",
		test: "TestCheck_variables",
	}, {
		name: "dashboard-variable-filtered-by-none", file: "gateway/extra/dashboards/dashboard/variables.go",
		old: "			if !names[other] {", new: "			if !names[other] && false {",
		test: "TestCheck_variables",
	}, {
		name: "dashboard-panel-repeated-for-none", file: "gateway/extra/dashboards/dashboard/variables.go",
		old: "ok && !variables[repeat] {", new: "ok && false {",
		test: "TestCheck_variables",
	}, {
		name: "values-of-a-tag-cut-silently", file: "gateway/metadata/lookup/values.go",
		old:  "	if len(v.uids) == v.limit {\n		return errEnough\n",
		new:  "	if len(v.uids) == v.limit {\n		return nil\n",
		test: "TestValues",
	}, {
		name: "annotations-offered-to-readers", file: "gateway/api/httpapi/metaroutes/annotation.go",
		old: "h.Guard.Allows(r, auth.Write)", new: "h.Guard.Allows(r, auth.Read)",
		test: "gateway TestDoors_annotationsAllow",
	},
}
