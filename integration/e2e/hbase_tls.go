package e2e

// HBaseTLS has the servers of a cluster of HBase 2.6 or later speak TLS with each other and
// with clients. The files are PEM.
type HBaseTLS struct {
	KeyStore   string // key and certificate of all servers, for localhost and 127.0.0.1
	TrustStore string // the authority that has issued it, and those of clients
	Mutual     bool   // clients need certificates
}

// site returns what hbase-site.xml needs. The admin program has the servers' certificate,
// too. Clients without TLS are refused, which HBase does not by itself.
func (o *HBaseTLS) site() map[string]string {
	auth := "NONE"
	if o.Mutual {
		auth = "NEED"
	}
	return map[string]string{
		"hbase.server.netty.tls.enabled":          "true",
		"hbase.client.netty.tls.enabled":          "true",
		"hbase.server.netty.tls.client.auth.mode": auth,
		"hbase.server.netty.tls.supportplaintext": "false",
		"hbase.rpc.tls.keystore.location":         o.KeyStore,
		"hbase.rpc.tls.truststore.location":       o.TrustStore,
	}
}
