// Package extra lists what is around the core of the gateway. Each extra is a folder here: the core
// does not need it, and imports none of it. Who wants to understand the core can leave all of this
// alone.
package extra

import (
	"downpour/gateway"
	"downpour/gateway/extra/changes/changesroutes"
	"downpour/gateway/extra/compaction"
	"downpour/gateway/extra/dashboards"
	"downpour/gateway/extra/disk"
	"downpour/gateway/extra/docsite"
	"downpour/gateway/extra/gexp/gexproutes"
	"downpour/gateway/extra/graph/graphroutes"
	"downpour/gateway/extra/hostmetrics"
	"downpour/gateway/extra/opspage"
	"downpour/gateway/extra/otlp/otlproutes"
	"downpour/gateway/extra/prometheus/promroutes"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/rollups"
	"downpour/gateway/extra/sealing"
	"downpour/gateway/extra/tools"
	"downpour/gateway/extra/trees"
)

// All returns all extras, with settings that are still to be read, in the order in which they are opened.
func All() []gateway.Extra {
	return []gateway.Extra{
		changesroutes.New(),
		gexproutes.New(),
		graphroutes.New(new(graphroutes.Settings)),
		promroutes.New(),
		otlproutes.New(new(otlproutes.Settings)),
		trees.New(new(trees.Settings)),
		hostmetrics.New(new(hostmetrics.Settings)),
		dashboards.New(), // shows this host's metrics
		opspage.New(),
		retention.New(new(retention.Settings)),
		rollups.New(new(rollups.Settings)), // reads the rules of retention
		compaction.New(new(compaction.Settings)),
		sealing.New(new(sealing.Settings)),
		disk.New(),
		docsite.New(),
		tools.New(), // uses trees and the turns of retention
	}
}
