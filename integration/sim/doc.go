// Package sim runs whole worlds in simulated time: gateways, pushdown servers and a TSD over the
// HBase of package hbasefake, or a gateway over an embedded store on files in memory, with clients
// that put by HTTP and telnet, query as JSON and Arrow, delete and follow, and with faults. An hour
// of a cluster's life takes seconds. Some worlds live for half a day, with rollups or retention.
//
// In some worlds pushdown servers announce themselves and gateways find them, while servers move and say what is
// not so, announcements are forged and written back, and strangers who know no token listen where they lead.
//
// A seed draws all that is random: the settings of the world, what clients do, and each fault, by the identity of the
// call that it hits. A model knows what was acknowledged, and what else may be there. At the end clients
// put a little more while nothing fails, for the live queries, and the tools look for faults in the tables.
package sim
