// Package sim runs a whole cluster in simulated time: gateways and pushdown servers as they are, over the HBase of package
// hbasefake, with clients that put and query, and with faults. An hour of a cluster's life takes seconds.
//
// A seed draws all that is random: the settings of the cluster, what clients do, and each fault, by the identity of the
// call that it hits. A model knows what was acknowledged, and what may be there besides.
package sim
