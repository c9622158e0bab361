// Package activity keeps what a gateway has done lately, for its operator: which queries took
// longest and read most within the last hour, the points of each of the last seconds by their
// source, why points were refused, and how fast counts such as those of UIDs grow.
//
//	queries   the last hour, by minutes: of each the slowest and the heaviest
//	puts      the last five minutes, by seconds
//	refusals  since the start: by way and reason, the newest error of each
//	growth    the last day, by ten minutes
//
// Each of them is bounded, whatever clients send. None has a clock: the caller says when
// something happened.
package activity
