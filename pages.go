// Package downpour has the pages of the documentation. They stand next to what they explain, in all
// parts of the tree, and a package can only embed what is below it. Package docsite makes the site
// of them, which the gateway serves at /docs.
package downpour

import "embed"

// Pages are all pages, by their paths in the tree, and the pictures that they show.
//
//go:embed *.md bench/README.md encoding/docs/*.md gateway/docs/*.md gateway/packaging/README.md gateway/web/README.md
//go:embed gateway/web/docs/*.png integration/README.md integration/*/README.md integration/results/*.md
//go:embed pushdown/docs/*.md pushdown/store/pebble/FORMAT.md
var Pages embed.FS
