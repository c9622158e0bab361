package expression

import "fmt"

// node is a part of an expression. Its String is an expression of the same tree, with
// parentheses around every operation.
type node interface{ fmt.Stringer }

// constant is a number, as written unless it was computed.
type constant struct {
	text  string
	value float64
	kind  kind
}

// variable is an index into Expression.Variables.
type variable struct {
	name  string
	index int
}

// unary is -x, !x or ~x.
type unary struct {
	operator string
	x        node
}

// binary is an operation on two values.
type binary struct {
	operator    string
	left, right node
}

// choice is condition ? yes : no. In condition ?: no, yes is nil.
type choice struct{ condition, yes, no node }

// String returns the number as written.
func (c *constant) String() string { return c.text }

// String returns the name.
func (v *variable) String() string { return v.name }

// String returns the operation in parentheses.
func (u *unary) String() string { return "(" + u.operator + u.x.String() + ")" }

// String returns the operation in parentheses.
func (b *binary) String() string {
	return "(" + b.left.String() + " " + b.operator + " " + b.right.String() + ")"
}

// String returns the choice in parentheses.
func (c *choice) String() string {
	if c.yes == nil {
		return "(" + c.condition.String() + " ?: " + c.no.String() + ")"
	}
	return "(" + c.condition.String() + " ? " + c.yes.String() + " : " + c.no.String() + ")"
}
