//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"downpour/encoding"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// autopsy says what there is where a point should be, for the first one that is lost or old: all versions and markers
// that HBase still has of the hour's rows, the regions that hold them, and what the TSDs answer.
func (l *life) autopsy(lost string) {
	if l.examined.Swap(true) {
		return
	}
	var id pointID
	if _, err := fmt.Sscanf(lost, "{%s %s %d}", &id.metric, &id.host, &id.at); err != nil {
		l.Logf("%s: %v", lost, err)
		return
	}
	base := id.at - id.at%encoding.RowSeconds
	keys := store.KeyRange{Start: rowPrefix(id.metric, base), Stop: rowPrefix(id.metric, base+encoding.RowSeconds)}
	text := fmt.Sprintf("at %s: offset %d s of rows %x to %x\n",
		time.Now().Format(time.StampMilli), id.at-base, keys.Start, keys.Stop)

	rows, _, err := l.store.Versions(l.ctx, l.tables.Data, encoding.FamilyData, keys, 100)
	for _, r := range rows {
		text += fmt.Sprintf("row %x\n", r.Key)
		for _, v := range r.Versions {
			text += fmt.Sprintf("  kind %d %x at %s",
				v.Kind, v.Qualifier[:min(len(v.Qualifier), 12)], time.UnixMilli(v.Timestamp).Format(time.StampMilli))
			if hasOffset(v.Qualifier, id.at-base) {
				text += fmt.Sprintf(" holds the point, %d bytes of qualifiers", len(v.Qualifier))
			}
			text += "\n"
		}
	}
	regions, regionsErr := hbase(l.T).Admin.Regions(l.ctx, l.tables.Data)
	for _, r := range regions {
		if bytes.HasPrefix(r.Start, keys.Start[:3]) {
			text += fmt.Sprintf("region %s from %x at %s\n", r.EncodedName, r.Start, r.Server)
		}
	}
	text += fmt.Sprintf("OpenTSDB at %s and, which compacts, at %s; gateways at %s and %s\n",
		l.writing.URL, l.compacting.URL, l.timestamps.URL, l.exact.URL)
	for _, tsd := range []string{l.writing.URL, l.compacting.URL} {
		ctx, cancel := context.WithTimeout(l.ctx, 20*time.Second)
		a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=none:%s",
			tsd, base, base+encoding.RowSeconds-1, id.metric))
		cancel()
		text += fmt.Sprintf("%s: error %v, status %d, has the point: %v, %.300s\n",
			tsd, err, a.Status, strings.Contains(string(a.Body), fmt.Sprintf("%q:", fmt.Sprint(id.at))), a.Body)
	}
	l.Logf("%s: %v %v\n%s", lost, err, regionsErr, text)
}

// hasOffset says whether a qualifier of points has one at a second.
func hasOffset(qualifier []byte, second int64) bool {
	if len(qualifier)%2 != 0 {
		return false
	}
	return slices.ContainsFunc(slices.Collect(slices.Chunk(qualifier, 2)), func(q []byte) bool {
		return int64(binary.BigEndian.Uint16(q)>>4) == second
	})
}
