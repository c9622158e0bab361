package opsroutes

import "downpour/gateway/extra/opspage/uidusage"

// Report is what /api/ops answers. Times are in ms since 1970, durations in ms, sizes in bytes.
// Unknown values are omitted or 0.
type Report struct {
	Time    int64  `json:"time"`
	Started int64  `json:"started"` // the gateway
	Version string `json:"version"` // of this release, not OpenTSDB's
	Host    string `json:"host"`
	Store   string `json:"store"` // pebble:… or hbase:…
	Mode    string `json:"mode"`  // rw, ro or wo

	Queries     Queries         `json:"queries"`
	Live        Live            `json:"live"`
	Memory      Memory          `json:"memory"`
	ResultCache ResultCache     `json:"resultCache"`
	Places      Places          `json:"places"`
	Puts        Puts            `json:"puts"`
	UIDs        []uidusage.UIDs `json:"uids"`
	// UIDsFailed is why the counts of UIDs are missing.
	UIDsFailed string `json:"uidsFailed,omitempty"`
}

// Queries are those that run, and those of the last hour that took longest and read most.
type Queries struct {
	Running  []Running `json:"running"` // the oldest first
	Slowest  []Ended   `json:"slowest"`
	Heaviest []Ended   `json:"heaviest"` // by bytes read
}

// Running is a query that runs, with what it has cost so far.
type Running struct {
	ID      string `json:"id"` // for DELETE /api/ops/queries/ID
	Route   string `json:"route"`
	Query   string `json:"query"` // as JSON, shortened
	Client  string `json:"client"`
	Token   string `json:"token,omitempty"` // its name
	Request string `json:"request"`
	Start   int64  `json:"start"`
	Elapsed int64  `json:"elapsed"`
	Points  int64  `json:"points"` // read
	Bytes   int64  `json:"bytes"`  // read
	Memory  int64  `json:"memory"` // held now
	EndedBy string `json:"endedBy,omitempty"`
}

// Ended is a query that has ended.
type Ended struct {
	Route    string `json:"route"`
	Query    string `json:"query"`
	Client   string `json:"client"`
	Token    string `json:"token,omitempty"`
	Request  string `json:"request"`
	Start    int64  `json:"start"`
	Took     int64  `json:"took"`
	Status   int    `json:"status"`
	Failure  string `json:"failure,omitempty"`
	Rows     int64  `json:"rows"` // read
	Points   int64  `json:"points"`
	Bytes    int64  `json:"bytes"`
	Answered int    `json:"answered"` // points of the answer
}

// Live are the live queries.
type Live struct {
	Queries     int         `json:"queries"`
	Subscribers int         `json:"subscribers"`
	Sockets     int         `json:"sockets"`
	Answers     int64       `json:"answers"` // bytes of last answers and their sources
	History     int64       `json:"history"` // bytes of earlier changes
	Sending     int64       `json:"sending"` // bytes on their way
	Listed      []LiveQuery `json:"listed"`  // those that hold most
	More        int         `json:"more"`    // that are not listed
}

// LiveQuery is one of them.
type LiveQuery struct {
	ID          string `json:"id"` // for DELETE /api/ops/live/ID
	Query       string `json:"query"`
	Expression  bool   `json:"expression"`
	Subscribers int    `json:"subscribers"`
	Bytes       int64  `json:"bytes"`
	Error       string `json:"error,omitempty"` // of the last tick
}

// Memory is the budget of DOWNPOUR_MEMORY.
type Memory struct {
	Limit   int64    `json:"limit"`
	Waiting int      `json:"waiting"` // reservations
	Held    []Holder `json:"held"`
}

// Holder is a kind of work that holds memory. For caches it is their bound.
type Holder struct {
	Name    string `json:"name"` // query, write, live or cache
	Bytes   int64  `json:"bytes"`
	Refused int64  `json:"refused"` // reservations since the start
}

// ResultCache is the cache of this gateway; pushdown servers have their own. Counts are those since
// the start.
type ResultCache struct {
	Limit      int64 `json:"limit"` // 0 where it is off
	Bytes      int64 `json:"bytes"`
	Entries    int64 `json:"entries"`
	Hits       int64 `json:"hits"`
	New        int64 `json:"new"`      // not queried before
	Changed    int64 `json:"changed"`  // read again because their rows may have changed
	Unproven   int64 `json:"unproven"` // without a version token
	Evictions  int64 `json:"evictions"`
	SavedRows  int64 `json:"savedRows"`  // that were not read again
	SavedBytes int64 `json:"savedBytes"` // that were not read again
	Shared     int64 `json:"shared"`     // sub-queries answered by the execution of an equal one
}

// Places are where parts are executed.
type Places struct {
	List []Place `json:"list"` // the pushdown servers, and this process last
	// Regions are those of the data table in the order of their keys: runs of neighbours that are
	// read at one place of List. Empty if no query has listed them.
	Regions []Run `json:"regions"`
}

// Place is a pushdown server or this process. Counts are those of the last hour.
type Place struct {
	Address   string `json:"address"`
	Beside    string `json:"beside,omitempty"` // a region server
	State     string `json:"state,omitempty"`  // healthy, away or unchecked
	Regions   int    `json:"regions"`
	Parts     int64  `json:"parts"`
	Failed    int64  `json:"failed"` // attempts
	Bytes     int64  `json:"bytes"`
	Mean      int64  `json:"mean"`    // of a part
	Longest   int64  `json:"longest"` // part
	LastError string `json:"lastError,omitempty"`
	LastFail  int64  `json:"lastFail,omitempty"`
}

// Run is a run of neighbouring regions.
type Run struct {
	Place   int `json:"place"` // index of Places.List
	Regions int `json:"regions"`
}

// Puts are the points of the last seconds, and why points were refused.
type Puts struct {
	From    int64     `json:"from"` // of the first second
	HTTP    []int64   `json:"http"` // stored, by second: by puts, remote write and OTLP
	Telnet  []int64   `json:"telnet"`
	Own     []int64   `json:"own"`     // this host's own metrics
	Refused []int64   `json:"refused"` // by all protocols
	Reasons []Refusal `json:"reasons"` // since the start, the newest first
}

// Refusal is a reason for which points were refused.
type Refusal struct {
	Via    string `json:"via"`
	Reason string `json:"reason"`
	Points int64  `json:"points"` // 0 where the points of requests could not be read
	Times  int64  `json:"times"`
	Last   int64  `json:"last"`
	Error  string `json:"error"` // of the last one
}
