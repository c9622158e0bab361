package hbase

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

const (
	moved      = "org.apache.hadoop.hbase.exceptions.RegionMovedException"
	queueFull  = "org.apache.hadoop.hbase.CallQueueTooBigException"
	doNotRetry = "org.apache.hadoop.hbase.DoNotRetryIOException"
)

// puts returns a put into each row.
func puts(rows ...string) (ms []store.Mutation) {
	for _, r := range rows {
		ms = append(ms, store.Mutation{Row: []byte(r), Family: "t", Qualifier: []byte("q"), Value: []byte("v")})
	}
	return ms
}

// outcome changes the reply to a call whose actions are of one region: the i-th action gets an exception of the i-th
// class, or is left out if that is "-". An empty class, and none, leaves the result as it is.
func outcome(classes ...string) hbasefake.Fault {
	return hbasefake.Fault{Change: func(m proto.Message) {
		r := m.(*pb.MultiResponse).RegionActionResult[0]
		r.ResultOrException = slices.DeleteFunc(r.ResultOrException, func(roe *pb.ResultOrException) bool {
			i := int(roe.GetIndex())
			if i >= len(classes) || classes[i] == "" {
				return false
			}
			roe.Result, roe.Exception = nil, &pb.NameBytesPair{Name: &classes[i]}
			return classes[i] == "-"
		})
	}}
}

// How much a region gets in a call after the first one has met a fault, and all were done. Gets change nothing, nor do
// exceptions that say nothing of the load.
func TestMulti_windows(t *testing.T) {
	for name, tc := range map[string]struct {
		fault      hbasefake.Fault
		want, gets int
	}{
		"no fault":          {hbasefake.Fault{}, initialWindow, initialWindow},
		"lost":              {hbasefake.Fault{Kind: hbasefake.DropAfter}, initialWindow / 2, initialWindow},
		"refused":           {hbasefake.Fault{Kind: hbasefake.Refuse, Exception: queueFull}, 4, initialWindow},
		"moved":             {hbasefake.Fault{Kind: hbasefake.Refuse, Exception: moved}, initialWindow, initialWindow},
		"an action refused": {outcome(tooBusy, moved), 4, initialWindow},
		"an action moved":   {outcome(moved), initialWindow, initialWindow},
	} {
		for _, reads := range []bool{false, true} {
			slowly(t, func(c *cluster) {
				c.disturb("Multi", 1000, tc.fault)
				want, err := tc.want, error(nil)
				if reads {
					want = tc.gets
					_, err = c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("a"), []byte("b")})
				} else {
					err = c.st.Apply(c.ctx, "t", puts("a", "b"))
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, r := range must(c.st.Regions(c.ctx, "t", nil, []byte("b"))) {
					if w, err := c.st.pacer.window([]byte(r.Name)); w.size != want || err != nil {
						t.Errorf("%s, reads %t: a window of %d, %v, want %d", name, reads, w.size, err, want)
					}
				}
			})
		}
	}
}

// A fault that others may have, too, fails only the actions that it is of. The others are sent again, however often
// they fail for reasons that pass. The rows a and b are in one region, and r00020 is in another one, at another server.
func TestMulti_failsAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		reads  bool
		fault  func(n int, server bool) hbasefake.Fault
		failed []int
		says   string
	}{
		"a server refuses for good": {fault: func(n int, first bool) hbasefake.Fault {
			if first {
				return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: doNotRetry}
			}
			if n < 2 {
				return hbasefake.Fault{Kind: hbasefake.Refuse, Exception: moved, Delay: time.Second}
			}
			return hbasefake.Fault{}
		}, failed: []int{0, 1}, says: doNotRetry},
		"an action fails for good, another is left out": {fault: func(n int, first bool) hbasefake.Fault {
			if first && n < 2 {
				return outcome(doNotRetry, "-")
			}
			return hbasefake.Fault{}
		}, failed: []int{0}, says: doNotRetry},
		"an exception, and another is left out": {fault: func(n int, first bool) hbasefake.Fault {
			if first && n < 2*regions.MaxUnknowns {
				return outcome(moved, "-")
			}
			return hbasefake.Fault{}
		}},
		"the same of gets": {reads: true, fault: func(n int, first bool) hbasefake.Fault {
			if first && n < 2*regions.MaxUnknowns {
				return outcome(moved, "-")
			}
			return hbasefake.Fault{}
		}},
	} {
		slowly(t, func(c *cluster) {
			first := c.serverOf("a")
			if first == c.serverOf("r00020") {
				t.Fatal("one server has both regions")
			}
			c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
				if call.Method != "Multi" {
					return hbasefake.Fault{}
				}
				return tc.fault(call.N, call.Server == first)
			})
			if tc.reads {
				if _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("a"), []byte("b")}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			err := c.st.Apply(c.ctx, "t", puts("a", "b", "r00020"))
			var partial *store.ApplyError
			if !errors.As(err, &partial) {
				partial = &store.ApplyError{}
			}
			if !slices.Equal(partial.Failed, tc.failed) || tc.says != "" && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want mutations %v to fail", name, err, tc.failed)
			}
		})
	}
}

// serverOf returns the number of the server of a row.
func (c *cluster) serverOf(row string) (server int) {
	c.SetHook(func(call hbasefake.Call) hbasefake.Fault {
		if call.Method == "Multi" {
			server = call.Server
		}
		return hbasefake.Fault{}
	})
	defer c.SetHook(nil)
	must(c.st.Get(c.ctx, "t", "t", [][]byte{[]byte(row)}))
	return server
}

// Of a reply each result is that of its action, or the whole reply is refused. The actions are of rows a and b in one
// region, and of c in another.
func TestDecodeMulti(t *testing.T) {
	result := func(index uint32, cells int32) *pb.ResultOrException {
		return &pb.ResultOrException{Index: &index, Result: &pb.Result{AssociatedCellCount: &cells}}
	}
	cell := func(row string) []byte {
		return cellblock.Append(nil, []byte(row), "t", []byte("q"), nil, 1, cellblock.Put)
	}
	inMessage := result(0, 0)
	inMessage.Result.Cell = []*pb.Cell{{}}
	empty := func(index uint32) *pb.ResultOrException { return &pb.ResultOrException{Index: &index} }
	for name, tc := range map[string]struct {
		first, second []*pb.ResultOrException
		block         []byte
		gets          string // what gets make of it: the rows that they have an answer for, or an error
		puts          string // the same of mutations, which have no cells
	}{
		"all": {[]*pb.ResultOrException{result(1, 0), result(0, 0)}, []*pb.ResultOrException{result(2, 0)}, nil,
			"abc", "abc"},
		"cells": {[]*pb.ResultOrException{result(0, 1)}, []*pb.ResultOrException{result(2, 1)},
			slices.Concat(cell("a"), cell("c")), "ac", "ac"},
		"a cell too many": {[]*pb.ResultOrException{result(0, 1)}, nil, slices.Concat(cell("a"), cell("a")),
			"bytes after the last result", "bytes after the last result"},
		"no index": {[]*pb.ResultOrException{{Result: &pb.Result{}}}, nil, nil, "action 0, want 0 to 1",
			"action 0, want 0 to 1"},
		"an index of the other region": {nil, []*pb.ResultOrException{result(1, 0)}, nil, "action 1, want 2 to 2",
			"action 1, want 2 to 2"},
		"neither result nor exception": {[]*pb.ResultOrException{empty(0)}, nil, nil, "", "a"},
		"in the message": {[]*pb.ResultOrException{inMessage}, nil, nil,
			"outside of the cell block", "a"},
	} {
		for _, get := range []*pb.Get{{}, nil} {
			var actions []*action
			for _, row := range []string{"a", "b", "c"} {
				actions = append(actions, &action{row: []byte(row), get: get})
			}
			err := decodeMulti(&pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{
				{ResultOrException: tc.first}, {ResultOrException: tc.second},
			}}, tc.block, []*regionBatch{{actions: actions[:2]}, {actions: actions[2:]}})
			got, want := "", tc.puts
			for _, a := range actions {
				if a.answered {
					got += string(a.row)
				}
			}
			if get != nil {
				want = tc.gets
			}
			if refused := strings.Contains(want, " "); refused != (err != nil) || !refused && got != want ||
				refused && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, gets %t: %q, %v, want %q", name, get != nil, got, err, want)
			}
		}
	}
}
