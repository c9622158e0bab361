package unchanged

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// Tokens, marks and their proofs fail with the cause: whether what they need was read before or not.
func TestProver_failures(t *testing.T) {
	refused := func(c *stampedCluster) {
		c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
			if call.Method != "GetTableDescriptors" {
				return hbasefake.Fault{}
			}
			return hbasefake.Fault{
				Kind:      hbasefake.Refuse,
				Exception: "org.apache.hadoop.hbase.security.AccessDeniedException",
			}
		})
	}
	denied := func(err error) bool { return errors.Is(err, store.ErrDenied) }
	lost := func(err error) bool {
		return err != nil && !errors.Is(err, errReopened) && !errors.Is(err, ErrNoReadPoint)
	}
	for _, proof := range []Proof{ProofExact, ProofTimestamps} {
		for _, known := range []bool{false, true} {
			name := fmt.Sprintf("proof %d, known %v", proof, known)
			start := func() *stampedCluster {
				c := startStamped(t)
				c.st.cfg.Proof = proof
				c.MoveMeta(1) // the region is on server 0
				c.pass(2 * maxStampAge * time.Millisecond)
				if known {
					c.stableVersion(oldRows)
				}
				return c
			}

			for server, what := range []string{"the region's server", "hbase:meta"} {
				c := start()
				mark, err := c.st.Mark(c.ctx, "t", "t", oldRows)
				if err != nil {
					t.Fatal(err)
				}
				if !known {
					c.st = c.another(proof)
					if _, err := c.st.router.Locate(c.ctx, "t", oldRows.Start); err != nil {
						t.Fatal(err)
					}
				}
				c.StopServer(server)
				_, err = c.version(oldRows)
				_, markError := c.st.Mark(c.ctx, "t", "t", oldRows)
				proofError := c.st.Unchanged(c.ctx, "t", "t", oldRows, mark.Text)
				if !lost(err) || !lost(markError) || !lost(proofError) {
					t.Errorf("%s, %s is away: token %v, mark %v, proof %v", name, what, err, markError, proofError)
				}
			}

			c := start()
			var err error
			refused(c)
			c.Put("t", "r0039", "t", "q0", "v") // a token that equals no other needs no description
			for range 3 {
				_, err = c.version(oldRows)
			}
			m, markError := c.st.Mark(c.ctx, "t", "t", oldRows)
			if !denied(err) && !known || !denied(markError) || m.Text != "" {
				t.Errorf("%s, no description: token %v, mark %v of %q", name, err, markError, m.Text)
			}
			c.SetHook(nil)
			c.stableVersion(oldRows)
		}
	}
}
