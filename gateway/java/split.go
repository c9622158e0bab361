package java

import "strings"

// Split splits a text at commas as String.split does: none begins a part at the end, so that "a," is one and "," none.
func Split(text string) []string {
	if text = strings.TrimRight(text, ","); text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
