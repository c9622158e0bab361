package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// client reads messages as a client of the protocol does: it knows only their JSON.
type client struct {
	sub    *Subscription
	groups map[int]*clientGroup
	resume Resume
	last   Kind
	err    *Error

	// clears makes the client empty a group that gets a new description, as the protocol permits.
	clears bool
}

type clientGroup struct {
	about string
	dps   map[string]string // time to value, both as spelled
}

type wireGroup struct {
	Group         int
	QueryIndex    int
	Metric        string
	Tags          map[string]string
	AggregateTags []string
	Dps           [][2]json.RawMessage
	Ts            []json.RawMessage
}

type wireMessage struct {
	Epoch            string
	Seq              uint64
	Results          []wireGroup
	Groups           []wireGroup
	Removed          []int
	Upserts, Deletes []wireGroup
	FinalBefore      int64
	Error            *Error
}

// drain applies updates until there are none.
func (c *client) drain() error {
	for u := c.sub.Next(); u != nil; u = c.sub.Next() {
		if err := c.apply(u); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) apply(u *Update) error {
	text := append([]byte(`{"type":"x"`), text(u)...)
	var m wireMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil {
		return fmt.Errorf("message %s: %w", text, err)
	}
	c.last, c.err = u.Kind, m.Error
	switch u.Kind {
	case KindSnapshot:
		c.resume = Resume{m.Epoch, m.Seq}
		c.groups = map[int]*clientGroup{}
		for i, r := range m.Results {
			c.groups[i] = &clientGroup{about: r.about(), dps: map[string]string{}}
			c.groups[i].set(r.Dps)
		}
	case KindDelta:
		if m.Epoch != c.resume.Epoch || m.Seq < c.resume.Seq {
			return fmt.Errorf("delta of %s %d follows %v", m.Epoch, m.Seq, c.resume)
		}
		c.resume.Seq = m.Seq
		return c.delta(&m)
	}
	return nil
}

func (c *client) delta(m *wireMessage) error {
	for _, g := range m.Groups {
		if c.groups[g.Group] == nil || c.clears {
			c.groups[g.Group] = &clientGroup{dps: map[string]string{}}
		}
		c.groups[g.Group].about = g.about()
	}
	for _, n := range m.Removed {
		if c.groups[n] == nil {
			return fmt.Errorf("removed group %d is not known", n)
		}
		delete(c.groups, n)
	}
	for _, u := range m.Upserts {
		if c.groups[u.Group] == nil {
			return fmt.Errorf("upsert of group %d, which is not known", u.Group)
		}
		c.groups[u.Group].set(u.Dps)
	}
	for _, x := range m.Deletes {
		for _, t := range x.Ts {
			if _, ok := c.groups[x.Group].dps[string(t)]; !ok {
				continue // merged deltas may delete points that were never sent
			}
			delete(c.groups[x.Group].dps, string(t))
		}
	}
	return nil
}

func (g *clientGroup) set(dps [][2]json.RawMessage) {
	for _, p := range dps {
		g.dps[string(p[0])] = string(p[1])
	}
}

func (g *wireGroup) about() string {
	return fmt.Sprintf("%d %s %v %v", g.QueryIndex, g.Metric, g.Tags, g.AggregateTags)
}

// picture returns all that the client sees, as sorted text.
func (c *client) picture() string {
	var lines []string
	for _, g := range c.groups {
		lines = append(lines, g.line())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (g *clientGroup) line() string {
	var b strings.Builder
	b.WriteString(g.about)
	for _, t := range slices.Sorted(maps.Keys(g.dps)) {
		b.WriteString(" " + t + "=" + g.dps[t])
	}
	return b.String()
}

// text returns an update's message.
func text(u *Update) string {
	b, err := u.JSON()
	if err != nil {
		panic(err)
	}
	return string(b)
}
