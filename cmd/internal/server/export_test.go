package server

import (
	"net/http"
	"slices"
)

// What the tests of problems need.
var (
	ProblemOf = problemOf

	ErrNotFound    = errNotFound
	ErrRateLimited = errRateLimited
	ErrUnavailable = errUnavailable
)

// AssembleWithout is Assemble without a package beside the core.
func AssembleWithout(p Parts, pkg string) (http.Handler, error) {
	return assemble(p, slices.DeleteFunc(beside(), func(a addition) bool { return a.pkg == pkg }))
}

// PackagesBeside returns the names of the packages beside the core.
func PackagesBeside() (names []string) {
	for _, each := range beside() {
		names = append(names, each.pkg)
	}
	return names
}
