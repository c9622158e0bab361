package engine

import (
	"encoding/hex"
	"sync"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/operator"
)

// Node is a piece of work in a query's trace. A nil node records nothing.
type Node struct {
	Name       string         `json:"name"`
	At         float64        `json:"at"` // ms since the query began
	MS         float64        `json:"ms"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Children   []*Node        `json:"children,omitempty"`

	began time.Time // of the query
}

// trace is the tree of one query under construction.
type trace struct {
	mu   sync.Mutex
	root *Node // nil if nobody asks for it
}

func newTrace(q *query.Query) *trace {
	t := &trace{}
	if q.Trace {
		t.root = &Node{Name: "query", began: time.Now()}
	}
	return t
}

// child is the node of a sub-query.
func (t *trace) child(i int, p planned) *Node {
	if t.root == nil {
		return nil
	}
	n := &Node{Name: "sub-query", began: t.root.began, Attributes: map[string]any{"index": i, "plan": p.Nothing}}
	if p.Nothing == "" {
		n.Attributes["plan"] = p.Plan.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root.Children = append(t.root.Children, n)
	return n
}

// end closes the tree.
func (t *trace) end() *Node {
	if t.root != nil {
		t.root.MS = milliseconds(time.Since(t.root.began))
		for _, n := range t.root.Children {
			for _, c := range n.Children {
				n.MS = max(n.MS, c.At+c.MS-n.At)
			}
		}
	}
	return t.root
}

// begin starts a child and returns what ends it.
func (n *Node) begin(name string) func(attributes map[string]any) *Node {
	start := time.Now()
	return func(attributes map[string]any) *Node {
		return n.add(name, time.Since(start), attributes)
	}
}

// add notes a child that took so long until now.
func (n *Node) add(name string, took time.Duration, attributes map[string]any) *Node {
	if n == nil {
		return nil
	}
	c := &Node{Name: name, MS: milliseconds(took), At: milliseconds(time.Since(n.began) - took), Attributes: attributes, began: n.began}
	n.Children = append(n.Children, c)
	return c
}

// parts adds the attempts at a run's parts.
func (n *Node) parts(tried []dispatch.Attempt) {
	if n == nil {
		return
	}
	for _, t := range tried {
		a := map[string]any{
			"range":  [2]string{hex.EncodeToString(t.Range.Start), hex.EncodeToString(t.Range.Stop)},
			"region": t.Region, "server": t.Place, "mode": t.Mode.String(), "accepted": t.Accepted, "stats": t.Stats,
		}
		if s := cacheOutcome(t.Stats); s != "" {
			a["resultCache"] = s
		}
		if t.Bytes > 0 {
			a["estimatedBytes"] = t.Bytes
		}
		if t.Stats.RowsScanned > 0 {
			a["selectivity"] = float64(t.Stats.Rows-t.Stats.Rejected) / float64(t.Stats.RowsScanned)
		}
		if t.Err != nil {
			a["error"] = t.Err.Error()
		}
		c := &Node{Name: "part", At: n.At + milliseconds(t.Began), MS: milliseconds(t.Took), Attributes: a}
		for _, op := range []struct {
			name string
			took time.Duration
		}{{"scan", t.Stats.ScanTime}, {"decode and downsample", t.Stats.DecodeTime}, {"emit", t.Stats.EmitTime}} {
			c.Children = append(c.Children, &Node{Name: op.name, At: c.At, MS: milliseconds(op.took)})
		}
		n.Children = append(n.Children, c)
	}
}

// cacheOutcome tells what a remembered answer had to do with a part, "" if nothing.
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

func attributes(s dispatch.Stats) map[string]any {
	return map[string]any{
		"parts": s.Parts, "remote": s.Remote, "partial": s.Partial, "attempts": s.Attempts, "discarded": s.Discarded,
		"rows": s.Rows, "cells": s.Cells, "bytesScanned": s.Bytes, "bytesShipped": s.ShippedBytes, "points": s.Points, "cacheHits": s.CacheHits,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
