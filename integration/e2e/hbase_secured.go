package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
)

// HBasePrincipal is the principal of all servers of a secured cluster.
const HBasePrincipal = "hbase/localhost@" + Realm

// secure makes keys for the servers and writes the configuration of Hadoop's part. It
// returns what hbase-site.xml needs. The admin program has the servers' keys, too.
func (h *HBase) secure(ctx context.Context) (map[string]string, error) {
	keytab, err := h.options.KDC.Keytab(ctx, "hbase/localhost")
	if err != nil {
		return nil, fmt.Errorf("keys of the servers: %w", err)
	}
	hadoop := map[string]string{
		"hadoop.security.authentication": "kerberos",
		// Else the admin program would look for its rules of names.
		"hadoop.security.auth_to_local": "RULE:[1:$1] RULE:[2:$1]",
	}
	if err := writeSite(filepath.Join(h.dir, "core-site.xml"), hadoop); err != nil {
		return nil, err
	}

	site := map[string]string{
		"hbase.security.authentication": "kerberos",
		// Each client chooses.
		"hbase.rpc.protection":          "authentication,integrity,privacy",
		"hbase.client.keytab.file":      keytab,
		"hbase.client.keytab.principal": HBasePrincipal,
	}
	for _, server := range []string{"master", "regionserver"} {
		site["hbase."+server+".keytab.file"] = keytab
		site["hbase."+server+".kerberos.principal"] = HBasePrincipal
	}
	maps.Copy(site, hadoop)
	return site, nil
}

// securedFlags are those of Java programs in a secured cluster.
func (h *HBase) securedFlags() []string {
	if h.options.KDC == nil {
		return nil
	}
	const krb5 = "java.security.jgss/sun.security.krb5=ALL-UNNAMED"
	return []string{"-Djava.security.krb5.conf=" + h.options.KDC.Krb5Conf(), "--add-exports", krb5, "--add-opens", krb5}
}
