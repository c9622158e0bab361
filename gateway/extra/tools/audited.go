package tools

import (
	"downpour/gateway/admin/audit"
)

// logIfItChanges logs that a command is about to change something by its own hand. What it asks of a
// gateway is in that gateway's log.
func (c *call) logIfItChanges() {
	if c.Log == nil || c.dryRun || c.command.changes == nil || !c.command.changes(c) {
		return
	}
	c.act = &audit.Command{Name: c.command.Name, Arguments: c.given, User: c.User, Store: c.Store}
	c.act.Begin(c.Log)
}

// end logs how it ended, if logIfItChanges has logged it.
func (c *call) end(err error) {
	if c.act != nil {
		c.act.End(c.Log, err)
	}
}

// The commands that change something, by their arguments.

func always(*call) bool { return true }

func changesUID(c *call) bool {
	switch c.args[0] {
	case "grep":
		return false
	case "fsck":
		return len(c.args) > 1 // fix
	}
	return true
}

func changesScanned(c *call) bool { return c.scan.delete }

func changesRows(c *call) bool { return c.fsck.Options.Fix }

func runsRetention(c *call) bool { return c.args[0] == "run" }

func putsDashboard(c *call) bool { return c.args[0] == "put" }
