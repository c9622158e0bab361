package tools

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"

	"downpour/encoding"
)

func uidFlags(f *flag.FlagSet, o *options) {
	f.BoolVar(&o.ignoreCase, "i", false, "grep: letters match in either case")
	f.StringVar(&o.collisions, "collisions", "", "fsck fix: what becomes of names that share a UID: owner leaves it to the name that it leads back to, merge gives it to a new name, fsck.NAME1.NAME2; else they are told and left")
	f.BoolVar(&o.force, "force", false, "delete: also while points have the UID; they stay, and nothing can read them any more")
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
		return c.grep(ctx, everyKind, args[0])
	}
	kind, err := c.kind(args[0])
	if err != nil {
		return err
	}

	names := args[1:]
	switch {
	case command == "grep" && len(names) == 1:
		return c.grep(ctx, []encoding.UIDKind{kind}, names[0])
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

// assign gives names of a kind their UIDs and prints them.
func (c *call) assign(ctx context.Context, kind encoding.UIDKind, names []string) (err error) {
	// None gets a UID if one of them may not have any.
	for _, name := range names {
		if err := encoding.ValidateName(kind.String(), name, c.Allowed...); err != nil {
			return err
		}
	}

	conn, err := c.connect(ctx, creating)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	for _, name := range names {
		var u encoding.UID
		if conn.store != nil {
			u, err = conn.names.Assign(ctx, kind, name)
		} else {
			u, err = conn.remote.assign(ctx, kind, name)
		}
		if err != nil {
			return err
		}
		printUID(c.Out, kind.String(), name, u)
	}
	return nil
}

// apiKind is a kind as the API names it.
func apiKind(kind encoding.UIDKind) string { return [...]string{"metric", "tagk", "tagv"}[kind] }

// assigned matches the error of a gateway for a name that has a UID already.
var assigned = regexp.MustCompile(`(?i)already exists with UID: ([0-9a-f]+)`)

// assign gives a name its UID through the API. A name that has one keeps it.
func (r *remote) assign(ctx context.Context, kind encoding.UIDKind, name string) (u encoding.UID, err error) {
	status, body, err := r.do(ctx, http.MethodPost, "/api/uid/assign", map[string][]string{apiKind(kind): {name}})
	if err != nil {
		return nil, err
	}

	given, failed := readAssign(body, kind)
	text, ok := given[name]
	// The error that a name has a UID already says which: that is an answer, too, so that
	// mkmetric can be run again.
	if m := assigned.FindStringSubmatch(failed[name]); m != nil {
		text, ok = m[1], true
	}
	if !ok {
		message := failed[name]
		if message == "" {
			message = errorMessage(body)
		}
		return nil, &answerError{r.url, status, message}
	}
	err = u.UnmarshalText([]byte(text))
	return u, err
}

// rename gives the UID of a name another name.
func (c *call) rename(ctx context.Context, kind encoding.UIDKind, from, to string) (err error) {
	if err := encoding.ValidateName(kind.String(), to, c.Allowed...); err != nil {
		return err
	}
	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if conn.store != nil {
		err = conn.names.Rename(ctx, kind, from, to)
	} else {
		var answer struct{ Result, Error string }
		err = conn.remote.call(ctx, http.MethodPost, "/api/uid/rename", map[string]string{apiKind(kind): from, "name": to}, &answer)
		if err == nil && answer.Result != "true" {
			err = errors.New(answer.Error)
		}
	}
	if err == nil {
		fmt.Fprintf(c.Out, "%s %s -> %s\n", kind, from, to)
	}
	return err
}

// foundName is a name that grep has found.
type foundName struct {
	Kind string       `json:"kind"`
	Name string       `json:"name"`
	UID  encoding.UID `json:"uid"`
}

// grep prints the names in which a regular expression (RE2) finds a match. It returns an
// error if there is none, for scripts. Source: UidManager.grep.
func (c *call) grep(ctx context.Context, wanted []encoding.UIDKind, expression string) (err error) {
	if c.ignoreCase {
		expression = "(?i)" + expression
	}
	match, err := regexp.Compile(expression)
	if err != nil {
		return err
	}
	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()

	var all []foundName
	switch {
	case conn.store != nil:
		all, err = matching(ctx, conn, wanted, match)
	case len(wanted) == 1: // the route takes one kind, or none for all
		all, err = conn.remote.grep(ctx, wanted[0].String(), expression)
	default:
		all, err = conn.remote.grep(ctx, "", expression)
	}
	if err != nil {
		return err
	}

	for _, f := range all {
		printUID(c.Out, f.Kind, f.Name, f.UID)
	}
	if len(all) == 0 {
		return fmt.Errorf("no name matches %s", expression)
	}
	return nil
}

// matching returns the names of some kinds that match, the names of a kind in the order
// of their UIDs.
func matching(ctx context.Context, conn *connection, wanted []encoding.UIDKind, match *regexp.Regexp) ([]foundName, error) {
	all := []foundName{}
	for _, kind := range wanted {
		entries, err := namesInOrder(ctx, conn, kind, match.MatchString)
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
	conn, err := c.connect(ctx, existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()

	var done *Deleted
	if conn.store != nil {
		if !c.Embedded && !c.force { // one that is forced waits for nobody
			fmt.Fprintf(c.Err, "this takes %s: other gateways must know that the name is gone\n", c.KnownWithin)
		}
		d := &deletion{settings: &c.Settings, st: conn.store, names: conn.names, kind: kind, name: name, force: c.force}
		done, err = d.run(ctx)
	} else {
		done, err = conn.remote.delete(ctx, deleteRequest{kind.String(), name, c.force})
	}
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

// readAssign reads an answer of /api/uid/assign: UIDs by name, and errors by name.
func readAssign(body []byte, kind encoding.UIDKind) (given, failed map[string]string) {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil {
		return nil, nil
	}

	// An object of another form is no answer of this route: it has neither.
	_ = json.Unmarshal(answer[apiKind(kind)], &given)
	_ = json.Unmarshal(answer[apiKind(kind)+"_errors"], &failed)
	return given, failed
}

// grep asks the gateway for the names that match.
func (r *remote) grep(ctx context.Context, kind, expression string) (all []foundName, err error) {
	q := url.Values{"q": {expression}}
	if kind != "" {
		q.Set("kind", kind)
	}
	err = r.call(ctx, http.MethodGet, "/api/tools/names?"+q.Encode(), nil, &all)
	return all, err
}
