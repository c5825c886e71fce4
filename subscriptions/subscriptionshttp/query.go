package subscriptionshttp

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// parameter is a parameter of a query that is read into a T.
type parameter[T any] struct {
	name string
	read func(into *T, value string) bool // false for an invalid value
	text locale.Text                      // for an invalid value
}

// wholeQuery stands for the query itself where no parameter can be named.
const wholeQuery = "query"

// readQuery reads a raw query. It returns a fault for each parameter that is repeated, empty,
// invalid or not among the accepted ones, so that none is silently ignored.
func readQuery[T any](query string, into *T, accepted []parameter[T], empty, unknown locale.Text) []problem.Fault {
	values, err := url.ParseQuery(query)
	if err != nil {
		return []problem.Fault{fault(wholeQuery, textUnreadable)}
	}
	var faults []problem.Fault
	for _, p := range accepted {
		given, present := values[p.name]
		delete(values, p.name)
		switch {
		case !present:
		case len(given) > 1:
			faults = append(faults, fault(p.name, textRepeated))
		case given[0] == "":
			faults = append(faults, fault(p.name, empty))
		case !p.read(into, given[0]):
			faults = append(faults, fault(p.name, p.text))
		}
	}
	return append(faults, unknownParameters(values, unknown)...)
}

// unknownParameters returns a fault for each parameter that is left. It bounds how much of a
// query the response repeats.
func unknownParameters(values url.Values, text locale.Text) []problem.Fault {
	const maxNames, maxBytes = 10, 64
	var faults []problem.Fault
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(faults) == maxNames {
			break
		}
		name = strings.ToValidUTF8(name[:min(len(name), maxBytes)], "\uFFFD")
		faults = append(faults, fault(cmp.Or(name, wholeQuery), text))
	}
	return faults
}

func fault(parameter string, text locale.Text) problem.Fault {
	return problem.Fault{Member: parameter, Sentence: text.With()}
}

// refused returns the error for faults of a query, nil if there are none.
func refused(faults []problem.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &problem.Error{Code: problem.InvalidParameter, Faults: faults}
}
