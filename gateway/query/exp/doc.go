// Package exp is /api/query/exp without its server: a request names metrics, and
// expressions over them and over each other, and the answer has a table of each. It
// reads the request, makes the sub-queries of /api/query that it needs, and computes
// the tables from the groups that the query engine returns.
//
//	json.go, request.go, validate.go  the body: fields, checks, OpenTSDB's messages
//	query.go                          its metrics as sub-queries of /api/query
//	graph.go                          which expression needs which
//	join.go                           which series of several variables belong together
//	steps.go                          the times of a table, and a series' values at them
//	evaluate.go                       expressions and outputs as columns
//	bounds.go                         the memory and time that computing may take
//	hashorder.go                      the order of variables, which in OpenTSDB is a hash's
//	echo.go                           the request as the answer repeats it
//
// Columns are as long as the times of their table. They are computed column by column, series by
// series, not point by point. A series has points outside of the query's time too, as far as rows
// were read; only the rows of expressions are trimmed.
//
// Source: QueryExecutor, ExpressionIterator, UnionIterator, IntersectionIterator,
// TimeSyncedIterator; net.opentsdb.query.pojo.
package exp
