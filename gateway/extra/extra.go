// Package extra lists what is around the core of the gateway. Each extra is a folder here: the core does not need it, and imports
// none of it. Who wants to understand the core can leave all of this alone.
package extra

import (
	"downpour/gateway"
	"downpour/gateway/extra/gexp/gexproutes"
	"downpour/gateway/extra/graph/graphroutes"
)

// All returns all extras, with settings that are still to be read, in the order in which they are opened.
func All() []gateway.Extra {
	return []gateway.Extra{
		gexproutes.New(),
		graphroutes.New(new(graphroutes.Settings)),
	}
}
