package ingest

import (
	"maps"
	"slices"
)

// Sentences returns the names of the constraints that have a sentence, sorted.
func Sentences() []string { return slices.Sorted(maps.Keys(sentences)) }
