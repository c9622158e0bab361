// Package kerberos gets tickets and makes security contexts with them: it proves to a
// server who we are, and makes the server prove who it is. It owns gokrb5, which makes and checks
// messages, reads keytabs, ticket caches and krb5.conf, and encrypts. gokrb5 lacks the
// initiator's side of a context, which is context.go, and its client takes replies of any
// length from a KDC.
//
//	config.go      settings, principals, krb5.conf with what it includes
//	kdc.go         which ticket is asked for, and files
//	exchange.go    exchanges with a KDC: login by key, ticket for a service
//	network.go     which KDC is asked, and how a request gets there
//	tickets.go     which tickets are held, and when they are got anew
//	keep.go        how they are kept alive where nobody connects
//	context.go     AP-REQ, the check of the AP-REP, the keys of the connection
//	errors.go      what a KDC's refusal means
//
// # When tickets are got
//
// A ticket is got when a connection first needs it. Once three quarters of its time are
// over, whoever uses it, or Keep, starts to get the next one and does not wait for it: so no
// request is refused while a KDC is away for a shorter time than the rest. Connections
// that are open need no ticket any more. With a keytab the next ticket comes from the
// keytab. With a ticket cache it comes from the file, which whoever fills it (kinit, k5start,
// sssd) must have renewed, or else from renewing the ticket if the KDC allows it.
package kerberos
