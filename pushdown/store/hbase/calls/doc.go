// Package calls is how one call reaches a server of HBase and returns: connections, the bytes sent
// and received on them, and the meaning of failures. It makes one attempt. Its callers decide where
// a region is, and whether to make another attempt.
//
//   - conn.go: a Pool keeps one connection to each server of a service and dials when there
//     is none. A call is written in the background.
//   - call.go: a Call as gohbase takes it, which frames it and matches its reply.
//   - encryption.go, security.go, wrappedconn.go: a new connection is encrypted if the
//     configuration wants it. In a secured cluster a handshake comes before the first call,
//     with a ticket of package kerberos and the frames of package sasl, and what is sent may
//     be signed or sealed.
//   - wire.go: checks replies before gohbase reads them, because gohbase panics over
//     unexpected bytes.
//   - silence.go: waits for the reply, and finds out whether a silent server is slow, dead
//     or no longer has the target of the call. The last of these only the caller can know:
//     Call.Moved.
//   - lost.go, class.go, denied.go: the errors of calls, and the reaction to each.
//   - life.go: how long all of this lasts.
//
// What must hold: every wait ends with its caller's context and with the store's Life; a
// call is sent once; no goroutine outlives Life.Wait; a reply that comes after its
// caller has left is not read.
//
// Source: RPC.proto and Client.proto, NettyRpcConnection, ServerRpcConnection and RpcServer
// of HBase 1.0 to 2.6.
package calls
