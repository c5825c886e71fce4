package server

// What the tests of problems need.
var (
	Statuses  = statuses
	ProblemOf = problemOf

	ErrNotFound    = errNotFound
	ErrRateLimited = errRateLimited
	ErrUnavailable = errUnavailable
)
