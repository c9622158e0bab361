package tools

import (
	"cmp"
	"context"

	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/trees"
	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/uid"
	"downpour/pushdown/rollup"
	"downpour/pushdown/rpc/auth"
)

// ForConfig returns the part of a gateway's settings that the tools need.
func ForConfig(c *gateway.Config) (Settings, error) {
	var made *rollup.Config
	if c.RollupsComputed() {
		made, _ = c.RollupConfig() // Validate reports an error
	}
	ruleSet, _ := gateway.SettingsOf[retention.Settings](c).Rules(c) // and of this one
	zone, err := c.Location()
	return Settings{
		Rollups:     made,
		Store:       c.Store,
		Address:     c.StoreAddress(),
		Embedded:    c.Embedded(),
		Schema:      c.Schema(),
		Tables:      c.TableNames(),
		Compile:     c.Compile(),
		Auto:        c.Auto(),
		MaxName:     c.LimitName,
		Retention:   Retention{Rules: ruleSet, Tables: retention.Tables(c)},
		KnownWithin: cmp.Or(c.KnownWithin, uid.KnownWithin),
		Meta:        c.MetaFlags(),
		Trees:       gateway.SettingsOf[trees.Settings](c).TreeProcessing,
		Allowed:     []rune(c.AllowSpecialChars),
		Appends:     c.EnableAppends,
		Zone:        zone,
	}, err
}

// New returns the routes that the commands of the program use while a gateway has the store open.
// It comes after retention and trees.
func New() gateway.Extra { return gateway.Extra{Name: "tools", Open: open} }

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	settings, err := ForConfig(c.Config)
	if err != nil {
		return gateway.Parts{}, err
	}
	served := Served{
		Settings:  settings,
		Store:     c.Store,
		Names:     c.Names,
		Series:    c.Series,
		Points:    c.Points,
		Count:     func(stored, refused int) { c.CountPuts(activity.HTTP, stored, refused) },
		Refused:   c.Refused,
		Ending:    c.Ending,
		Now:       c.Config.Now,
		ReadOnly:  c.ReadOnly(),
		WriteOnly: c.Config.Mode == "wo",
	}
	served.Forest, _ = gateway.Provided[*forest.Forest](c)
	served.Turns, _ = gateway.Provided[retention.Turns](c)
	if c.Tracker != nil {
		served.Flush, served.Forget = c.Tracker.Flush, c.Tracker.Forget
	}
	serve := httpio.FromHandler(Handler(served))
	return gateway.Parts{Routes: map[string]httpio.Endpoint{
		"api/tools/export": {Scope: auth.Read, Serve: serve, Reads: httpio.Get},
		"api/tools/scan":   {Scope: auth.Read, Serve: serve, Reads: httpio.Get},
		"api/tools/names":  {Scope: auth.Read, Serve: serve, Reads: httpio.Get},
		"api/tools/import": {Scope: auth.Write, Serve: serve, Reads: httpio.NoVerb, OwnTime: true, Audited: true},
		"api/tools/assign": {Scope: auth.Write, Serve: serve, Reads: httpio.NoVerb, Audited: true},
		"api/tools/rename": {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb},
		"api/tools/trees":  {Scope: auth.Write, Serve: serve, Reads: httpio.NoVerb, OwnTime: true, Audited: true},
		"api/tools/delete": {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/uid":    {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/rollup": {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/fsck":   {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
		// It deletes points.
		"api/tools/retention": {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
		// It keeps the store's files for a backup, in the store's own directory.
		"api/tools/checkpoint": {Scope: auth.Admin, Serve: serve, Reads: httpio.NoVerb, OwnTime: true},
	}}, nil
}
