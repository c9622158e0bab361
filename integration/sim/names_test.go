package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// assignNames requests UIDs for names of tag values, new ones and old ones, until the world stops.
func (c *clients) assignNames() {
	r := c.w.rand("names")
	for n := 0; c.w.pause(r, time.Second); n++ {
		c.assign(0, fmt.Sprint("a", []int{n, r.IntN(n + 1)}[r.IntN(2)]))
	}
}

// assign requests a UID for a name. Once a gateway has answered with one, the name keeps it, and no other has it.
func (c *clients) assign(gateway int, name string) {
	a := c.ask(gateway, "POST", "/api/uid/assign", fmt.Sprintf(`{"tagv":[%q]}`, name))
	var answer struct {
		TagV   map[string]string
		Errors map[string]string `json:"tagv_errors"`
	}
	if a.err != nil || json.Unmarshal(a.body, &answer) != nil || len(answer.TagV)+len(answer.Errors) == 0 {
		c.w.note("gateway %d: assignment of a UID to %s: %v", gateway, name, a)
		return
	}
	given := answer.TagV[name]
	had := strings.TrimPrefix(answer.Errors[name], "Name already exists with UID: ")
	uid := given + had
	switch known, ok := c.uids[name]; {
	case ok && (given != "" || had != known):
		c.wrong(gateway, "%s had the UID %s, now %v", name, known, a)
	case c.named[uid] != "" && c.named[uid] != name:
		c.wrong(gateway, "%s has the UID %s, which is that of %s", name, uid, c.named[uid])
	}
	c.uids[name], c.named[uid] = uid, name
	c.w.checked("UID of a name")
}

// checkNamed checks that all names have the UIDs that they had, now that nothing fails.
func (w *World) checkNamed() {
	for name := range w.clients.uids {
		w.clients.assign(0, name)
	}
}
