package gateway

import (
	"context"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/queryroutes"
)

// Extra is something around the core that the core does not need: a folder of gateway/extra. The core imports none; a program
// lists those that it has in Config.Extras.
type Extra struct {
	Name     string
	Settings Settings // a pointer to its part of the settings; nil if it has none
	// Open makes the extra's parts on a core that does not serve yet.
	Open func(*Core) (Parts, error)
}

// Settings are the settings of an extra: a pointer to a struct whose fields have the tags of caarlos0/env, as Config has.
type Settings interface {
	// SetDefaults fills in the defaults that depend on other settings.
	SetDefaults(*Config)
	// Validate returns all faults, each with its variable.
	Validate(*Config) error
}

// SettingsOf returns the settings of an extra by their type, nil if the gateway has no such extra.
func SettingsOf[T any](c *Config) *T {
	for _, e := range c.Extras {
		if s, ok := e.Settings.(any).(*T); ok {
			return s
		}
	}
	return nil
}

// Core is what extras work with: the gateway without them.
type Core struct {
	Config *Config
	Guard  *access.Guard
	// Queries and Metadata answer the core's routes.
	Queries  *queryroutes.Handlers
	Metadata metaroutes.Handlers
}

// Parts are what an extra adds to the core.
type Parts struct {
	// Routes are served by the HTTP API, by their path; see httpio.RouteOf.
	Routes map[string]httpio.Endpoint
	// Jobs run in the background until their context ends.
	Jobs []Job
}

// Job is work in the background.
type Job struct {
	Name string
	Run  func(context.Context)
}
