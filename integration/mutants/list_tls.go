package main

// ofTLS are faults of connections with TLS and of bootstrap nodes: servers that are believed,
// certificates that are not read again.
var ofTLS = []mutant{
	{
		name: "tls-any-name-taken", file: "pushdown/store/hbase/calls/encryption.go",
		old: "if e.AnyName {", new: "if true {",
		test: "pushdown/store/hbase TestEncrypted_errors",
	}, {
		name: "tls-any-name-of-any-authority", file: "pushdown/process/settings/hbase.go",
		old: `s.TLS == "on" && !s.VerifyHost`, new: `false && !s.VerifyHost`,
		test: "TestCommon_Validate",
	}, {
		name: "tls-calls-mixed-up", file: "pushdown/store/hbase/calls/conn.go",
		old: "	if c.writeLock != nil {", new: "	if false && c.writeLock != nil {",
		test: "pushdown/store/hbase TestEncrypted_calls",
	}, {
		name: "nodes-another-cluster-believed", file: "pushdown/store/hbase/regions/nodes.go",
		old: "if id != b.cluster {", new: "if false {",
		test: "TestNodes_anotherCluster",
	}, {
		name: "nodes-replica-of-meta-read", file: "pushdown/store/hbase/regions/nodereplies.go",
		old: "return info.GetReplicaId() == 0, nil", new: "return true, nil",
		test: "TestNodes_silent",
	}, {
		name: "nodes-any-master-is-active", file: "pushdown/store/hbase/regions/nodereplies.go",
		old: "active = n != 0", new: "active = n >= 0",
		test: "pushdown/store/hbase TestNodes_calls",
	}, {
		name: "nodes-of-the-start-kept", file: "pushdown/store/hbase/regions/nodes.go",
		old: "b.named = nodes[:min(len(nodes), maxNodes)]", new: "b.named = nodes[:0]",
		test: "TestNodes_refreshed",
	}, {
		name: "tls-certificates-not-read-again", file: "pushdown/process/certificates/certificates.go",
		old: "	err := r.readAgain()\n	switch", new: "	var err error\n	switch",
		test: "TestReader_replaced",
	}, {
		name: "tls-stranger-taken",
		file: "pushdown/process/settings/access.go",
		old:  "return certificates.Verify(s.PeerCertificates, roots, x509.ExtKeyUsageClientAuth)",
		new:  "_, _ = roots, x509.ExtKeyUsageClientAuth\n		return nil",
		test: "pushdown/rpc/server TestServe_certificates",
	}, {
		name: "tls-metrics-without-certificate", file: "pushdown/rpc/server/certified.go",
		old: "return certified(ok && p.certified)", new: "return certified(ok && p != nil)",
		test: "TestServe_certificates",
	},
}
