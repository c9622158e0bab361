package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/network/networktest"
	stores "downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
)

// tsd writes points into the tables as OpenTSDB's process does: a cell for each point, and names as
// UniqueId assigns them. It keeps no names, so that it meets what gateways assign at the same time.
type tsd struct {
	w  *World
	st *hbase.Store
}

// write puts points of a host of its own, and of the new hosts that gateways want UIDs for, until the world stops.
func (t *tsd) write() {
	r := t.w.rand("TSD")
	for t.w.pause(r, 4*time.Second) {
		p := point{fmt.Sprint("m", r.IntN(2)), "tsd", time.Now().Unix()}
		if r.IntN(4) == 0 {
			p = t.w.ofNewHost(p, writers)
		}
		if !t.w.recorded.lenient && t.w.model.known(p) {
			continue
		}
		value, ok := t.w.model.begin(p)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := t.put(ctx, p, value)
		cancel()
		if err != nil {
			t.w.model.refuse(map[point]int64{p: value})
			t.w.note("TSD: a put of %v: %v", p, err)
			continue
		}
		t.w.model.acknowledge(map[point]int64{p: value})
	}
}

// put stores a point. Source: TSDB.addPointInternal.
func (t *tsd) put(ctx context.Context, p point, value int64) error {
	var key []byte
	for _, name := range []struct {
		kind encoding.UIDKind
		name string
	}{{encoding.UIDMetric, p.metric}, {encoding.UIDTagK, "host"}, {encoding.UIDTagV, p.host}} {
		id, err := t.id(ctx, name.kind, name.name)
		if err != nil {
			return err
		}
		key = append(key, id...)
		if name.kind == encoding.UIDMetric {
			key = binary.BigEndian.AppendUint32(key, uint32(p.at-p.at%3600))
		}
	}
	width := 1 // of 1, 2, 4 and 8 bytes the first that the value fits
	for width < 8 && value >= 1<<(8*width-1) {
		width *= 2
	}
	return t.st.Apply(ctx, "tsdb", []stores.Mutation{{
		Row: key, Family: "t",
		Qualifier: binary.BigEndian.AppendUint16(nil, uint16(p.at%3600)<<4|uint16(width-1)),
		Value:     binary.BigEndian.AppendUint64(nil, uint64(value))[8-width:],
	}})
}

// id returns the UID of a name, which it assigns if the name has none. Source: UniqueId.UniqueIdAllocator.
func (t *tsd) id(ctx context.Context, kind encoding.UIDKind, name string) ([]byte, error) {
	qualifier := []byte(kind.String())
	forward := stores.CellKey{Row: []byte(name), Family: encoding.FamilyID, Qualifier: qualifier}
	for {
		rows, err := t.st.Get(ctx, "tsdb-uid", encoding.FamilyID, [][]byte{[]byte(name)})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			for _, cell := range row.Cells {
				if bytes.Equal(cell.Qualifier, qualifier) {
					return cell.Value, nil
				}
			}
		}
		n, err := t.st.Increment(ctx, "tsdb-uid",
			stores.CellKey{Row: []byte{0}, Family: encoding.FamilyID, Qualifier: qualifier}, 1)
		if err != nil {
			return nil, err
		}
		id := binary.BigEndian.AppendUint64(nil, uint64(n))[5:]
		back := stores.CellKey{Row: id, Family: encoding.FamilyName, Qualifier: qualifier}
		if free, err := t.st.CompareAndPut(ctx, "tsdb-uid", back, nil, []byte(name)); err != nil {
			return nil, err
		} else if !free {
			continue
		}
		if won, err := t.st.CompareAndPut(ctx, "tsdb-uid", forward, nil, id); err != nil {
			return nil, err
		} else if won {
			return id, nil
		}
	}
}

// newTSD returns a TSD on a machine of its own.
func (k *cluster) newTSD() (*tsd, error) {
	st, err := k.connect("TSD", networktest.NewHost(&k.w.network), hbase.ProofExact)
	return &tsd{k.w, st}, err
}
