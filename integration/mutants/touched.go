package main

import "slices"

// touched returns the faults whose source file or test file is among the files.
func touched(faults []fault, files []string) (out []fault) {
	for _, f := range faults {
		if slices.Contains(files, f.file) || slices.Contains(files, f.testFile) {
			out = append(out, f)
		}
	}
	return out
}
