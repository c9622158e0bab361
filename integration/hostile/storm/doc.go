// Package storm sends hostile requests to a running gateway, many at once, and
// holds it to what it promises:
//
//   - resident memory stays under a bound, of every process watched;
//   - each request ends by its deadline. How long that takes on a clock is the
//     machine's affair: what is counted is the processor time that the gateway
//     goes on using behind a request's deadline while the request has not ended;
//   - an answer that is given is right: that of another gateway over the same
//     rows, which has all the memory it wants and is asked one thing at a time;
//   - a client that asks a light query and puts a point ten times a second is
//     served each time;
//   - every point whose put was acknowledged is there afterwards, and goroutines,
//     sockets and reserved memory are as they were before.
//
// What breaks one of these is a breach, with the request that shows it.
package storm
