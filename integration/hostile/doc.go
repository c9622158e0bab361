// Package hostile draws requests as careless and hostile clients send them: queries
// over all options with extreme intervals, fills and counts of sub-queries, puts of
// extreme sizes, spellings and compressions, clients that send byte by byte, stop half
// way or never read, over HTTP, telnet and WebSocket. It sends nothing: request n of a
// seed is a function of both, independent of other draws, so that a failing one is
// found by its number.
//
//	World     the rows that a server is loaded with before: dense, wide, slow
//	          series, and two points 50 years apart
//	Draw      request n of a seed
//	Request   the bytes to send, how, and what must be true of the answer
//
// Package storm sends them.
package hostile
