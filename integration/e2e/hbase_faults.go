package e2e

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// PauseZooKeeper freezes ZooKeeper (SIGSTOP). A pause of more than the session
// timeout costs the servers their sessions, and with them their lives.
func (h *HBase) PauseZooKeeper() error { return h.zk.Signal(syscall.SIGSTOP) }

// ResumeZooKeeper thaws ZooKeeper.
func (h *HBase) ResumeZooKeeper() error { return h.zk.Signal(syscall.SIGCONT) }

// KillZooKeeper ends ZooKeeper as kill -9 does; its files stay.
func (h *HBase) KillZooKeeper() { h.zk.Kill() }

// StartZooKeeper starts ZooKeeper again and returns when it takes connections.
func (h *HBase) StartZooKeeper(ctx context.Context) (err error) {
	if h.zk, err = h.java(ctx, "zookeeper", zookeeperMain, 128); err != nil {
		return err
	}
	return UntilProcess(ctx, h.zk, 50*time.Millisecond, func(ctx context.Context) error {
		return dials(ctx, h.Quorum())
	})
}

// KillMaster ends the master as kill -9 does. The region servers go on.
func (h *HBase) KillMaster() { h.master.Kill() }

// StartMaster starts the master again. WaitReady waits until it takes
// admin calls.
func (h *HBase) StartMaster(ctx context.Context) (err error) {
	// One region server is enough for it: others may be down.
	h.master, err = h.java(ctx, "master", masterMain, 384, "-D", "hbase.master.wait.on.regionservers.mintostart=1")
	return err
}

// MasterDone is closed when the master has ended.
func (h *HBase) MasterDone() <-chan struct{} { return h.master.Done() }

// RegionServerDone is closed when region server i has ended.
func (h *HBase) RegionServerDone(i int) <-chan struct{} { return h.regions[i].process.Done() }

// UseVersion has servers that are started from now on be of a version of HBaseVersions. Those that run
// stay as they are.
func (h *HBase) UseVersion(version string) error {
	class, err := hbaseClassPath(version)
	if err != nil {
		return fmt.Errorf("use version %s: %w", version, err)
	}
	h.class = class
	return nil
}

// StopRegionServer ends region server i in good order: it closes its regions, and so writes their
// edits to files.
func (h *HBase) StopRegionServer(ctx context.Context, i int) error {
	return h.regions[i].process.Stop(ctx)
}

// StopMaster ends the master in good order.
func (h *HBase) StopMaster(ctx context.Context) error { return h.master.Stop(ctx) }
