// Package docsite builds the documentation as a site: a page of HTML for each page of Markdown that
// pages.go lists, an index by topic, the settings as the code has them, the reference of the HTTP API,
// and what the search looks through. The gateway serves it at /docs, without the network.
//
// The pages stay where they lie, beside what they explain. What is made of them is committed in
// gateway/web/site, because a plain go build must have it and go:embed reaches neither the pages at the
// top nor those of bench, which stand to the right of gateway. So the gateway renders nothing at run
// time and does not contain this package. Whoever changes a page runs
//
//	make docs
//
// and a test says so when it was forgotten: it builds the site again and compares.
//
// A build fails at a link that leads nowhere, a page that no topic has, and HTML in Markdown, which
// would not be shown.
package docsite
