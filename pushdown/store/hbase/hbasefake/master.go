package hbasefake

import (
	"slices"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// fullName is "namespace:table", or the table alone in the default namespace.
func fullName(n *pb.TableName) string {
	if ns := string(n.GetNamespace()); ns != "default" && ns != "" {
		return ns + ":" + string(n.GetQualifier())
	}
	return string(n.GetQualifier())
}

// createTable creates a table immediately, so that the procedure is finished when a client queries
// its state. A request with a known nonce is not executed again.
func (s *server) createTable(m *pb.CreateTableRequest) (proto.Message, []byte, error) {
	name := fullName(m.TableSchema.TableName)
	if s.c.tables[name] != nil && !(m.Nonce != nil && s.c.nonces[m.GetNonce()]) {
		return nil, nil, throw(tableExists, "%s", name)
	}
	if m.Nonce != nil {
		s.c.nonces[m.GetNonce()] = true
	}

	for _, f := range m.TableSchema.ColumnFamilies {
		named := func(a *pb.BytesBytesPair) bool { return string(a.First) == "VERSIONS" }
		if s.c.version.before(2, 0) && !slices.ContainsFunc(f.Attributes, named) {
			return nil, nil, throw("java.io.IOException", "Cannot parse null string")
		}
		f.Attributes = slices.DeleteFunc(f.Attributes, func(a *pb.BytesBytesPair) bool {
			return slices.Contains(s.c.opts.IgnoreAttributes, string(a.First))
		})
	}

	// A repeated request finds its table.
	if s.c.tables[name] == nil {
		s.c.create(name, m.TableSchema, m.SplitKeys)
	}
	return &pb.CreateTableResponse{ProcId: proto.Uint64(1)}, nil, nil
}

// descriptors returns the descriptions of tables.
func (s *server) descriptors(m *pb.GetTableDescriptorsRequest) (proto.Message, []byte, error) {
	response := &pb.GetTableDescriptorsResponse{}
	for _, n := range m.TableNames {
		t := s.c.tables[fullName(n)]
		if t == nil {
			return nil, nil, throw(noTable, "%s", fullName(n))
		}
		response.TableSchema = append(response.TableSchema, t.schema)
	}
	return response, nil, nil
}
