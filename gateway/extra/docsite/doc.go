// Package docsite makes the documentation's site: a page of HTML for each page of Markdown that
// pages.go lists, an index by topic, the reference of the HTTP API, and what the search looks
// through. The gateway serves it at /docs, without the network, and makes it of the pages in its
// program at the first request.
//
// A build fails at a link that leads nowhere, a page that no topic has, and HTML in Markdown, which
// would not be shown; a test builds the site of the pages as they are.
package docsite
