package wire

import (
	"encoding/json"

	"google.golang.org/grpc/metadata"
)

// Budget is what a gateway lets a part read, and the query it belongs to, by
// which a server shares its slots out.
type Budget struct {
	Query  string `json:"query,omitempty"`  // any text, the same for all parts of a query
	Points int64  `json:"points,omitempty"` // 0 is no bound, here and below
	Bytes  int64  `json:"bytes,omitempty"`
}

// Metadata is the budget as key and value, to be sent with a call.
func (b Budget) Metadata() (key, value string) {
	text, _ := json.Marshal(b) // a string and numbers
	return BudgetKey, string(text)
}

// ParseBudget reads the budget of a call. What is missing or cannot be read is no
// bound: a budget changes no answer.
func ParseBudget(md metadata.MD) (b Budget) {
	if v := md.Get(BudgetKey); len(v) == 1 && json.Unmarshal([]byte(v[0]), &b) != nil {
		return Budget{}
	}
	return b
}
