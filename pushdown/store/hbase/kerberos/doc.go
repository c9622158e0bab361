// Package kerberos gets tickets and makes security contexts with them: it proves to a
// server who we are, and makes the server prove who it is. It owns gokrb5, which makes and checks
// messages, reads keytabs, ticket caches and krb5.conf, and encrypts. gokrb5 lacks the
// initiator's side of a context, which is context.go, and its client takes replies of any
// length from a KDC.
//
//	config.go      settings, principals, krb5.conf with its includes
//	kdc.go         which ticket is requested, and files
//	exchange.go    exchanges with a KDC: login by key, ticket for a service
//	network.go     which KDC is called, and how a request gets there
//	tickets.go     which tickets are held, and when they are replaced
//	keep.go        how they are kept alive without new connections
//	context.go     AP-REQ, the check of the AP-REP, the keys of the connection
//	errors.go      the meaning of a KDC's refusal
//
// # When tickets are got
//
// A ticket is got when a connection first needs it. Once three quarters of its time are over,
// its next use, or Keep, starts to get the next one and does not wait for it: so no request
// is refused while a KDC is down for a shorter time than the rest. Open connections no longer
// need a ticket. With a keytab the next ticket comes from the keytab. With a ticket cache it
// comes from the file, if its owner (kinit, k5start, sssd) has renewed it, or else from
// renewing the ticket if the KDC allows it.
package kerberos
