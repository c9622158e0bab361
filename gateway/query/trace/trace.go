// Package trace records the steps of a query as a tree, for a client that asks for it.
package trace

import (
	"encoding/hex"
	"sync"
	"time"

	"downpour/gateway/query/dispatch"
	"downpour/pushdown/operator"
)

// Node is a step in a query's trace. The methods of a nil node do nothing, so that a
// query without a trace costs nothing.
type Node struct {
	Name       string         `json:"name"`
	At         float64        `json:"at"` // ms from the beginning of the query to that of the step
	MS         float64        `json:"ms"` // how long the step took
	Attributes map[string]any `json:"attributes,omitempty"`
	Children   []*Node        `json:"children,omitempty"`

	queryBegan time.Time
}

// Tree is the trace of one query while it is built. Its methods may be called from many
// goroutines; those of a nil tree do nothing.
type Tree struct {
	mu   sync.Mutex
	root *Node
}

// New returns a tree for a query that begins now.
func New() *Tree { return &Tree{root: &Node{Name: "query", queryBegan: time.Now()}} }

// AddSubQuery adds the node of a sub-query with its plan, and returns it.
func (t *Tree) AddSubQuery(i int, plan string) *Node {
	if t == nil {
		return nil
	}
	n := &Node{Name: "sub-query", queryBegan: t.root.queryBegan, Attributes: map[string]any{"index": i, "plan": plan}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root.Children = append(t.root.Children, n)
	return n
}

// End sets how long the query and its sub-queries took, and returns the root.
func (t *Tree) End() *Node {
	if t == nil {
		return nil
	}
	t.root.MS = milliseconds(time.Since(t.root.queryBegan))
	for _, n := range t.root.Children {
		// A sub-query ends with its last step.
		for _, c := range n.Children {
			n.MS = max(n.MS, c.At+c.MS-n.At)
		}
	}
	return t.root
}

// Begin starts a step. The function that it returns ends the step and adds it as a
// child.
func (n *Node) Begin(name string) func(attributes map[string]any) *Node {
	start := time.Now()
	return func(attributes map[string]any) *Node {
		return n.Add(name, time.Since(start), attributes)
	}
}

// Add adds a step that ends now as a child.
func (n *Node) Add(name string, took time.Duration, attributes map[string]any) *Node {
	if n == nil {
		return nil
	}
	c := &Node{
		Name:       name,
		MS:         milliseconds(took),
		At:         milliseconds(time.Since(n.queryBegan) - took),
		Attributes: attributes,
		queryBegan: n.queryBegan,
	}
	n.Children = append(n.Children, c)
	return c
}

// AddAttempts adds the attempts at the parts of a run, each with its operators.
func (n *Node) AddAttempts(attempts []dispatch.Attempt) {
	if n == nil {
		return
	}
	for _, a := range attempts {
		c := &Node{
			Name:       "part",
			At:         n.At + milliseconds(a.Began),
			MS:         milliseconds(a.Took),
			Attributes: attemptAttributes(a),
		}
		for _, op := range []struct {
			name string
			took time.Duration
		}{{"scan", a.Stats.ScanTime}, {"decode and downsample", a.Stats.DecodeTime}, {"emit", a.Stats.EmitTime}} {
			// They alternate: only how long each took altogether is known, so all begin with the part.
			c.Children = append(c.Children, &Node{Name: op.name, At: c.At, MS: milliseconds(op.took)})
		}
		n.Children = append(n.Children, c)
	}
}

// attemptAttributes describes an attempt. selectivity is the share of the rows
// scanned that the part used.
func attemptAttributes(a dispatch.Attempt) map[string]any {
	out := map[string]any{
		"range":  [2]string{hex.EncodeToString(a.Range.Start), hex.EncodeToString(a.Range.Stop)},
		"region": a.RegionServer, "server": a.Place, "mode": a.Mode.String(), "accepted": a.Accepted, "stats": a.Stats,
	}
	if s := cacheOutcome(a.Stats); s != "" {
		out["resultCache"] = s
	}
	if a.Bytes > 0 {
		out["estimatedBytes"] = a.Bytes
	}
	if a.Stats.RowsScanned > 0 {
		out["selectivity"] = float64(a.Stats.Rows-a.Stats.Rejected) / float64(a.Stats.RowsScanned)
	}
	if a.Second {
		out["second"] = "the first attempt at this part was late"
	}
	if a.RegionServerSlow {
		out["slow"] = "the region server: most of the time went by waiting for its rows"
	}
	if a.Err != nil {
		out["error"] = a.Err.Error()
	}
	return out
}

// cacheOutcome says what the result cache did for a part, "" if nothing.
func cacheOutcome(s operator.Stats) string {
	switch {
	case s.CacheHits > 0:
		return "answered from memory: no row has changed"
	case s.CacheStored > 0:
		return "kept"
	case s.CacheChanged > 0:
		return "read: rows may have changed"
	}
	return ""
}

// Counts are the counts of a run as attributes.
func Counts(s dispatch.Stats) map[string]any {
	return map[string]any{
		"parts": s.Parts, "remote": s.Remote, "partial": s.Partial, "attempts": s.Attempts, "discarded": s.Discarded,
		"rows": s.Rows, "cells": s.Cells, "bytesScanned": s.Bytes, "bytesShipped": s.ShippedBytes, "points": s.Points,
		"cacheHits": s.CacheHits,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
