// Package expression is the language of /api/query/exp: arithmetic, comparisons and
// logic over variables. It knows neither time nor series: a variable is a column of
// doubles, and so is the result.
//
//	a + b * 2          + - * / %, also div and mod
//	a > 10 && !(b < 3) == != < <= > >= && || !, also eq ne lt le gt ge and or not
//	a > b ? a : b      a ?: b takes b where a is 0 or NaN
//	a & 3              & | ^ ~, on the integer parts
//
// Constants are 7 (an integer), 7l and 7h (larger ones), 1.5 or 1.5f (32 bits wide, by
// their shortest text) and 1.5d. Integers among themselves compute as integers, so that
// a + 7 / 2 adds 3. Division and modulo by zero give 0. A comparison is 1 or 0 as a
// result and with a double or float as the other operand, so that (a > b) * a is a
// where it is above b; with an integer or another comparison it is an error, except for
// / and %, which give 0. A result that is an integer or a float of 32 bits is an error.
//
// OpenTSDB evaluates expressions by JEXL, a script language. Everything in it except operators
// (calls, constructors, statements, strings and members) is a syntax error here: a client could run
// code with it.
//
// Source: ExpressionIterator; JexlArithmetic and Interpreter (Apache Commons JEXL 2.1).
package expression
