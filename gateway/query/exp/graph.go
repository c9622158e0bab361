package exp

import "downpour/gateway/query"

// inOrder returns the expressions by their index, each after those that it uses. The error names
// one that uses itself, directly or indirectly.
// Source: QueryExecutor, its graph of expressions.
func (r *Request) inOrder() ([]int, error) {
	uses := make([][]int, len(r.Expressions))
	for i := range r.Expressions {
		e := &r.Expressions[i]
		for _, name := range e.parsed.Variables {
			j := r.expression(name)
			switch {
			case j < 0:
				continue // a metric uses nothing
			case j == i:
				return nil, query.RunFault("Self referencing expression found: %s", name)
			case reaches(uses, j, i, map[int]bool{}):
				return nil, query.RunFault("Circular reference found: %s", *e.ID)
			}
			uses[i] = append(uses[i], j)
		}
	}

	var order []int
	done := make([]bool, len(uses))
	var add func(i int)
	add = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, j := range uses[i] {
			add(j)
		}
		order = append(order, i)
	}
	for i := range uses {
		add(i)
	}
	return order, nil
}

// reaches reports whether from uses to, by way of others or not.
func reaches(uses [][]int, from, to int, seen map[int]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, next := range uses[from] {
		if reaches(uses, next, to, seen) {
			return true
		}
	}
	return false
}
