package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"downpour/gateway/extra/trees/forest"
	"downpour/gateway/extra/trees/tree"
	"downpour/pushdown/process/memory"
)

// The commands of uid that are about trees.
const (
	treeSync  = "treesync"
	treePurge = "treepurge"
)

// treesRequest asks a gateway for one of them: to purge a tree or, with 0, to put all series
// into trees.
type treesRequest struct {
	Purge      int  `json:"purge"`
	Definition bool `json:"definition"` // purge the tree itself, too
	DryRun     bool `json:"dryRun,omitempty"`
}

// runTrees runs treesync, or treepurge ID [true]. Source: UidManager.runCommand.
func (c *call) runTrees(ctx context.Context, command string, args []string) (err error) {
	req := treesRequest{DryRun: c.dryRun}
	if command == treePurge {
		if len(args) < 1 || len(args) > 2 {
			return c.usage("uid treepurge: got %d arguments, want the ID of a tree, and true if its rules and "+
				"definition are to go, too", len(args))
		}
		if req.Purge, err = strconv.Atoi(args[0]); err != nil || tree.CheckID(req.Purge) != nil {
			return c.usage("uid treepurge: got the tree %q, want 1 to %d", args[0], tree.MaxID)
		}
		req.Definition = len(args) == 2 && strings.EqualFold(args[1], "true") // as Java reads a boolean
	} else if len(args) > 0 {
		return c.usage("uid treesync takes no arguments, got %q", args)
	}
	var done treesDone
	err = c.at(ctx, existing, func(r *remote) error {
		return r.call(ctx, http.MethodPost, "/api/tools/trees", req, &done)
	})
	if err != nil {
		return err
	}
	if done.Disabled {
		c.tell("Tree processing is disabled: DOWNPOUR_TREE_PROCESSING (tsd.core.tree.enable_processing) is not true")
		return nil
	}
	reportTrees(c.Out, req, done.Synced)
	return nil
}

// treesDone is what was done.
type treesDone struct {
	forest.Synced
	// Disabled says that the settings of the process that has the store want no trees.
	Disabled bool `json:"disabled,omitempty"`
}

// handleTrees does what is requested.
func (x *work) handleTrees(ctx context.Context, req treesRequest) (done treesDone, err error) {
	switch {
	case req.Purge != 0:
		err = x.Forest.Delete(ctx, req.Purge, req.Definition)
	case !x.Trees:
		// As in OpenTSDB: with trees switched off, none are built.
		done.Disabled = true
	default:
		done.Synced, err = x.Forest.Sync(ctx)
	}
	return done, err
}

// reportTrees prints what was done.
func reportTrees(out io.Writer, req treesRequest, done forest.Synced) {
	switch {
	case req.Purge != 0 && req.Definition:
		fmt.Fprintf(out, "tree %d: deleted, with its branches and rules\n", req.Purge)
	case req.Purge != 0:
		fmt.Fprintf(out, "tree %d: its branches are deleted\n", req.Purge)
	default:
		fmt.Fprintf(out, "%d series, %d enabled trees: %d leaves are new, %d were there, %d collided, %d were "+
			"not matched\n",
			done.Series, done.Trees, done.Added, done.There, done.Collisions, done.NotMatched)
		if done.Skipped > 0 {
			fmt.Fprintf(out, "%d series are in no tree: a UID of theirs has no name\n", done.Skipped)
		}
	}
}

// treeSyncBytes bounds the memory of treesync.
const treeSyncBytes = 32 << 20

// trees serves the commands of another process.
func (h *served) trees(w http.ResponseWriter, r *http.Request) error {
	var req treesRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Definition && req.Purge == 0 {
		return errors.New("definition: got true without a tree to purge")
	}
	// treesync goes through all series; a purge deletes the cells of one tree.
	if req.Purge == 0 {
		if err := memory.Reserve(r.Context(), treeSyncBytes); err != nil {
			return err
		}
		if !h.working.TryLock() {
			return errWorking
		}
		defer h.working.Unlock()

		// Series whose TSMeta is not stored yet are to be there, too.
		if h.Flush != nil {
			if err := h.Flush(r.Context()); err != nil {
				return err
			}
		}
	}

	x := &h.work
	if req.DryRun {
		x = x.dry()
	}
	done, err := x.handleTrees(r.Context(), req)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, done)
	return nil
}
