package wire

import (
	"encoding/json"

	"google.golang.org/grpc/metadata"
)

// Budget is what a gateway allows a part to read, and the query that the part belongs
// to. A server shares its slots fairly among queries.
type Budget struct {
	Query  string `json:"query,omitempty"`  // any text, the same for all parts of a query
	Points int64  `json:"points,omitempty"` // 0 is no bound, here and below
	Bytes  int64  `json:"bytes,omitempty"`
}

// Metadata returns the budget as key and value of a call's metadata.
func (b Budget) Metadata() (key, value string) {
	text, _ := json.Marshal(b) // a string and numbers
	return BudgetKey, string(text)
}

// ParseBudget reads the budget from a call's metadata. If it is missing or cannot be
// parsed there is no bound, because a budget changes no answer.
func ParseBudget(md metadata.MD) (b Budget) {
	if v := md.Get(BudgetKey); len(v) == 1 && json.Unmarshal([]byte(v[0]), &b) != nil {
		return Budget{}
	}
	return b
}
