package server

// What the tests of problems need.
var (
	Statuses  = statuses
	ProblemOf = problemOf

	ErrNotFound         = errNotFound
	ErrMethodNotAllowed = errMethodNotAllowed
	ErrRateLimited      = errRateLimited
	ErrUnavailable      = errUnavailable
	ErrInternal         = errInternal
)
