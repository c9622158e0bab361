package hbasefake

// MoveMeta makes another server serve hbase:meta. The first one serves it at the start.
func (c *Cluster) MoveMeta(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moveMeta(server)
}

func (c *Cluster) moveMeta(server int) {
	c.metaServer = server
	c.catalogPoint += openingChanges
}

func (c *Cluster) addressOfMeta() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[c.metaServer].addr
}

// FailOver makes the next server open all regions of a server, as the master does once it considers
// that one dead. Acknowledged writes are in its log, so none is lost.
func (c *Cluster) FailOver(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[server].expire()
	next := (server + 1) % len(c.servers)
	for _, t := range c.tables {
		for _, r := range t.regions {
			if r.server == server && !r.offline && !t.disabled {
				c.endScanners(r)
				c.openRegion(r, next)
			}
		}
	}
	if c.metaServer == server {
		c.moveMeta(next)
	}
}

// servesMeta throws NotServingRegionException if this server does not serve hbase:meta.
func (s *server) servesMeta() error {
	if s.index != s.c.metaServer {
		return throw(notServing, "%s is not online on server %d", metaRegion, s.index)
	}
	return nil
}
