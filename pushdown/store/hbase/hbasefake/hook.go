package hbasefake

import (
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// faultLocked asks the hook what goes wrong with a call. Calls to hbase:meta are not counted, and nothing goes wrong
// with them.
func (s *server) faultLocked(method string, call *call) Fault {
	table := s.tableLocked(call)
	if table == metaName {
		return Fault{}
	}

	n := s.c.calls[method]
	s.c.calls[method]++
	if s.c.hook == nil {
		return Fault{} // without a hook the call is not decoded
	}
	key, conditional := s.keyLocked(call)
	return s.c.hook(Call{
		Server: s.index,
		Method: method,
		N:      n,
		Table:  table,
		Cells:  countCells(call.cells),
		Row:    firstRow(call.cells),
		Filter: hasFilter(call),
		Key:    key,
		If:     conditional,
	})
}

// keyLocked returns the first row that a call names, "" if it names none, and whether it changes rows on conditions.
func (s *server) keyLocked(call *call) (key string, conditional bool) {
	switch call.header.GetMethodName() {
	case "Scan":
		var m pb.ScanRequest
		_ = proto.Unmarshal(call.param, &m)
		if sc := s.c.scanners[m.GetScannerId()]; sc != nil {
			return sc.began, false
		}
		return string(m.GetScan().GetStartRow()), false
	case "Get":
		var m pb.GetRequest
		_ = proto.Unmarshal(call.param, &m)
		return string(m.GetGet().GetRow()), false
	case "Mutate":
		var m pb.MutateRequest
		_ = proto.Unmarshal(call.param, &m)
		return string(m.GetMutation().GetRow()), false
	case "Multi":
		var m pb.MultiRequest
		_ = proto.Unmarshal(call.param, &m)
		for _, r := range m.GetRegionAction() {
			for _, a := range r.GetAction() {
				// gohbase does not know the field of the condition.
				return string(a.GetMutation().GetRow()) + string(a.GetGet().GetRow()),
					len(r.ProtoReflect().GetUnknown()) > 0
			}
		}
	}
	return "", false
}

// tableLocked returns the table of a Scan or Get call, "" for other methods.
// Probes, calls that close a scanner and calls to hbase:meta count as hbase:meta, so
// that no hook disturbs them.
func (s *server) tableLocked(call *call) string {
	var region []byte
	switch call.header.GetMethodName() {
	case "Scan":
		var m pb.ScanRequest
		if proto.Unmarshal(call.param, &m) != nil || m.GetCloseScanner() {
			return metaName
		}
		region = m.GetRegion().GetValue()
	case "Get":
		var m pb.GetRequest
		if proto.Unmarshal(call.param, &m) != nil {
			return metaName
		}
		region = m.GetRegion().GetValue()
	default:
		return ""
	}

	for name := range s.c.tables {
		for _, r := range s.c.tables[name].regions {
			if string(r.name) == string(region) {
				return name
			}
		}
	}

	// The probe names a region that no table has, see newProbe in package hbase.
	if string(region) == metaRegion || string(region) == "downpour,probe,1" {
		return metaName
	}
	return ""
}

// hasFilter reports whether a call opens a scanner with a filter.
func hasFilter(call *call) bool {
	var m pb.ScanRequest
	return call.header.GetMethodName() == "Scan" && proto.Unmarshal(call.param, &m) == nil &&
		m.GetScan().GetFilter() != nil
}
