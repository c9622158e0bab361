package tools

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"

	"downpour/encoding"
	"downpour/gateway/uid"
)

func uidFlags(f *flag.FlagSet, o *options) {
	f.BoolVar(&o.ignoreCase, "i", false, "grep: letters match in either case")
	f.StringVar(&o.collisions, "collisions", "",
		"fsck fix: what becomes of names that share a UID: owner leaves it to the name that it leads back to, merge "+
			"gives it to a new name, fsck.NAME1.NAME2; else they are told and left")
	f.BoolVar(&o.force, "force", false,
		"delete: also while points have the UID; they stay, and nothing can read them any more")
	f.BoolVar(&o.noTSDs, "no-tsds", false, "reclaim: says that no TSD runs; on HBase it is refused without")
	f.Int64Var(&o.yesDelete, "yes-delete", 0, "reclaim: how many names may go where that is more than half of them")
}

// makeMetrics is uid assign metrics. Source: the tsdb script, mkmetric.
func makeMetrics(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		return c.usage("no name is given")
	}
	return c.assign(ctx, encoding.UIDMetric, c.args)
}

// runUID dispatches. Source: UidManager.runCommand.
func runUID(ctx context.Context, c *call) error {
	// These are about all kinds of names.
	switch {
	case len(c.args) > 0 && (c.args[0] == treeSync || c.args[0] == treePurge):
		return c.runTrees(ctx, c.args[0], c.args[1:])
	case len(c.args) > 0 && isUIDWork(c.args[0]):
		return c.uidWork(ctx)
	}
	if len(c.args) < 2 {
		return c.usage("want a command and its arguments")
	}

	command, args := c.args[0], c.args[1:]
	// grep alone may leave out the kind.
	if command == "grep" && len(args) == 1 {
		return c.grep(ctx, "", args[0])
	}
	kind, err := c.kind(args[0])
	if err != nil {
		return err
	}

	names := args[1:]
	switch {
	case command == "grep" && len(names) == 1:
		return c.grep(ctx, kind.String(), names[0])
	case command == "assign" && len(names) > 0:
		return c.assign(ctx, kind, names)
	case command == "rename" && len(names) == 2:
		return c.rename(ctx, kind, names[0], names[1])
	case command == "delete" && len(names) == 1:
		return c.deleteName(ctx, kind, names[0])
	}
	return c.usage("uid %s with %d names", command, len(names))
}

// printUID prints a mapping as tsdb uid does, the UID as Java prints bytes.
func printUID(w io.Writer, kind, name string, u encoding.UID) {
	fmt.Fprintf(w, "%s %s: %s\n", kind, name, javaBytes(u))
}

// assignRequest gives names of a kind UIDs.
type assignRequest struct {
	Kind   string   `json:"kind"`
	Names  []string `json:"names"`
	DryRun bool     `json:"dryRun,omitempty"`
}

// assign gives names of a kind their UIDs and prints them. A name that has one keeps it, so that
// mkmetric can be run again.
func (c *call) assign(ctx context.Context, kind encoding.UIDKind, names []string) error {
	if err := c.checkNew(kind, names...); err != nil {
		return err
	}
	return c.at(ctx, creating, func(r *remote) error {
		var given []foundName
		err := r.call(ctx, http.MethodPost, "/api/tools/assign", assignRequest{kind.String(), names, c.dryRun}, &given)
		for _, g := range given {
			printUID(c.Out, g.Kind, g.Name, g.UID)
		}
		return err
	})
}

// assign answers with the UIDs of names.
func (h *served) assign(w http.ResponseWriter, r *http.Request) error {
	var req assignRequest
	kind, err := decodeKind(w, r, &req, &req.Kind)
	if err != nil {
		return err
	}
	if err := h.checkNew(kind, req.Names...); err != nil {
		return err
	}
	x := &h.work
	if req.DryRun {
		x = x.dry()
	}
	given := []foundName{}
	for _, name := range req.Names {
		u, err := x.Names.Assign(r.Context(), kind, name)
		if err != nil {
			return err
		}
		given = append(given, foundName{kind.String(), name, u})
	}
	writeObject(w, http.StatusOK, given)
	return nil
}

// checkNew returns an error if one of the names may not have a UID: then none gets any.
func (s *Settings) checkNew(kind encoding.UIDKind, names ...string) error {
	for _, name := range names {
		if err := encoding.ValidateName(kind.String(), name, s.Allowed...); err != nil {
			return err
		}
	}
	return nil
}

// decodeKind decodes a body that has a kind in a field.
func decodeKind(w http.ResponseWriter, r *http.Request, in any, name *string) (encoding.UIDKind, error) {
	if err := decode(w, r, in); err != nil {
		return 0, err
	}
	kind, ok := kinds[*name]
	if !ok {
		return 0, fmt.Errorf("kind: got %q, want metrics, tagk or tagv", *name)
	}
	return kind, nil
}

// renameRequest gives the UID of a name another name.
type renameRequest struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun,omitempty"`
}

// rename gives the UID of a name another name.
func (c *call) rename(ctx context.Context, kind encoding.UIDKind, from, to string) error {
	if err := c.checkNew(kind, to); err != nil {
		return err
	}
	return c.at(ctx, existing, func(r *remote) error {
		err := r.call(ctx, http.MethodPost, "/api/tools/rename", renameRequest{kind.String(), from, to, c.dryRun},
			&struct{}{})
		if err == nil {
			fmt.Fprintf(c.Out, "%s %s -> %s\n", kind, from, to)
		}
		return err
	})
}

// rename renames a name.
func (h *served) rename(w http.ResponseWriter, r *http.Request) error {
	var req renameRequest
	kind, err := decodeKind(w, r, &req, &req.Kind)
	if err != nil {
		return err
	}
	if err := h.checkNew(kind, req.To); err != nil {
		return err
	}
	x := &h.work
	if req.DryRun {
		x = x.dry()
	}
	if err := x.Names.Rename(r.Context(), kind, req.Name, req.To); err != nil {
		return err
	}
	writeObject(w, http.StatusOK, struct{}{})
	return nil
}

// foundName is a name that grep has found.
type foundName struct {
	Kind string       `json:"kind"`
	Name string       `json:"name"`
	UID  encoding.UID `json:"uid"`
}

// grep prints the names in which a regular expression (RE2) finds a match. It returns an
// error if there is none, for scripts. Source: UidManager.grep.
func (c *call) grep(ctx context.Context, kind, expression string) error {
	if c.ignoreCase {
		expression = "(?i)" + expression
	}
	if _, err := regexp.Compile(expression); err != nil {
		return err
	}
	return c.at(ctx, existing, func(r *remote) error {
		q := url.Values{"q": {expression}}
		if kind != "" {
			q.Set("kind", kind)
		}
		var all []foundName
		if err := r.call(ctx, http.MethodGet, "/api/tools/names?"+q.Encode(), nil, &all); err != nil {
			return err
		}
		for _, f := range all {
			printUID(c.Out, f.Kind, f.Name, f.UID)
		}
		if len(all) == 0 {
			return fmt.Errorf("no name matches %s", expression)
		}
		return nil
	})
}

// grep answers with the names that match a regular expression.
func (h *served) grep(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	match, err := regexp.Compile(q.Get("q"))
	if err != nil {
		return err
	}

	wanted := everyKind
	if name := q.Get("kind"); name != "" {
		kind, ok := kinds[name]
		if !ok {
			return fmt.Errorf("kind: got %q, want metrics, tagk or tagv", name)
		}
		wanted = []encoding.UIDKind{kind}
	}

	found, err := matching(r.Context(), h.Names, wanted, match)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, found)
	return nil
}

// matching returns the names of some kinds that match, the names of a kind in the order
// of their UIDs.
func matching(
	ctx context.Context, names *uid.Dictionary, wanted []encoding.UIDKind, match *regexp.Regexp,
) ([]foundName, error) {
	all := []foundName{}
	for _, kind := range wanted {
		entries, err := namesInOrder(ctx, names, kind, match.MatchString)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, foundName{kind.String(), e.Name, e.UID})
		}
	}
	return all, nil
}

// deleteName deletes a name, see deletion, and prints what it removed.
func (c *call) deleteName(ctx context.Context, kind encoding.UIDKind, name string) (err error) {
	var done Deleted
	err = c.at(ctx, existing, func(r *remote) error {
		if r.own && !c.Embedded && !c.force && !c.dryRun { // one that is forced waits for nobody
			fmt.Fprintf(c.Err, "this takes %s: other gateways must know that the name is gone\n", c.KnownWithin)
		}
		return r.call(ctx, http.MethodPost, "/api/tools/delete",
			deleteRequest{kind.String(), name, c.force, c.dryRun}, &done)
	})
	if err != nil {
		return err
	}

	fmt.Fprintf(c.Out, "%s %s: deleted, it was %s\n", kind, name, done.UID)
	if done.Meta {
		fmt.Fprintln(c.Out, "its meta data: deleted")
	}
	if done.Series > 0 {
		fmt.Fprintf(c.Out, "meta data of %d series with it: deleted\n", done.Series)
	}
	if done.Row != nil {
		fmt.Fprintf(c.Out, "its points stay and cannot be read: row %s and perhaps others\n", done.Row)
	}
	if !c.Embedded {
		fmt.Fprintln(c.Out, "running TSDs may remember it: let each drop its caches (/api/dropcaches)")
	}
	return nil
}
