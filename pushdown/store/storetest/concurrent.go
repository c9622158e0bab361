package storetest

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"downpour/pushdown/store"
)

// Scans run at the same time as writers. Rows come in order, each as one Apply left it,
// and a scan has everything that was acknowledged before it was opened.
func testScansAndWrites(h *harness) {
	const writers, rounds, rows = 4, 15, 12
	g, ctx := errgroup.WithContext(h.ctx)
	writing, done := errgroup.WithContext(ctx)
	for w := range writers {
		writing.Go(func() error { return h.writeRounds(ctx, w, rounds, rows) })
	}
	g.Go(writing.Wait)

	for range 2 {
		g.Go(func() error {
			// done ends when the writers have: Wait ends the context of its group.
			for done.Err() == nil {
				// 0: any number of rows, because the writers are still at work.
				if err := h.checkPairs(ctx, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}

	if err := g.Wait(); err != nil {
		h.Fatalf("%v", err)
	}
	if err := h.checkPairs(h.ctx, writers*rows); err != nil {
		h.Fatalf("at the end: %v", err)
	}
}

// writeRounds writes the same value into two cells of each row, and appends to
// a third, round after round; after each it reads its own rows back.
func (h *harness) writeRounds(ctx context.Context, w, rounds, rows int) error {
	for round := range rounds {
		var ms []store.Mutation
		for r := range rows {
			key, value := fmt.Sprintf("r%02d-%d", r, w), fmt.Sprintf("round %d", round)
			ms = append(ms, put(key, "a", value), put(key, "b", value), mutation(store.Append, key, "id", "n", "."))
		}

		if err := h.Apply(ctx, h.table, ms); err != nil {
			return fmt.Errorf("writer %d, round %d: %w", w, round, err)
		}
		got, err := h.Get(ctx, h.table, "", [][]byte{[]byte(fmt.Sprintf("r%02d-%d", round%rows, w))})
		if err != nil || len(got) != 1 || len(got[0].Cells) != 3 {
			return fmt.Errorf("writer %d, round %d: read back %q, %v", w, round, text(got), err)
		}

		// Family id sorts first: its cell has one byte for each round.
		if n := len(got[0].Cells[0].Value); n != round+1 {
			return fmt.Errorf("writer %d, round %d: %d appends are there, want %d", w, round, n, round+1)
		}
	}
	return nil
}

// checkPairs scans all rows and checks that both cells of each are equal. wantRows is
// how many rows there must be, 0 for any number.
func (h *harness) checkPairs(ctx context.Context, wantRows int) error {
	sc, err := h.Scan(ctx, store.Scan{Table: h.table, Family: "t", BlockBytes: 300})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer sc.Close()

	last, rows := "", 0
	for {
		block, err := sc.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("next: %w", err)
		}

		for _, r := range block {
			if string(r.Key) <= last {
				return fmt.Errorf("row %q comes after %q", r.Key, last)
			}
			last, rows = string(r.Key), rows+1
			if len(r.Cells) != 2 || string(r.Cells[0].Value) != string(r.Cells[1].Value) {
				return fmt.Errorf("half of an Apply: %q", text([]store.Row{r}))
			}
		}
	}

	if wantRows > 0 && rows != wantRows {
		return fmt.Errorf("%d rows, want %d", rows, wantRows)
	}
	return nil
}
