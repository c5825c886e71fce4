package subscriptionshttp

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/subscriptions"
)

// Parameter is a parameter of a query, which is read into a T.
type Parameter[T any] struct {
	Name    string
	Read    func(into *T, value string) bool // false for an invalid value
	Invalid locale.Sentence                  // for an invalid value
}

// Parsed returns a parameter that is parsed into a field.
func Parsed[T, V any](name string, field func(*T) *V, parse func(string) (V, bool), invalid locale.Sentence) Parameter[T] {
	read := func(t *T, value string) (ok bool) {
		*field(t), ok = parse(value)
		return ok
	}
	return Parameter[T]{name, read, invalid}
}

// Number returns a parameter that is a number from 1 to limit.
func Number[T any](name string, field func(*T) *int, limit int) Parameter[T] {
	return Parsed(name, field, subscriptions.WholeNumber(limit), subscriptions.WantsNumber(name, limit))
}

// refusal returns the sentence for an invalid value. One that would be valid with a + for each space may have been
// sent with it: in a query, a + means a space.
func (p *Parameter[T]) refusal(into *T, value string) locale.Sentence {
	if plus := strings.ReplaceAll(value, " ", "+"); plus != value && p.Read(into, plus) {
		return textPlus.With(p.Name)
	}
	return p.Invalid
}

// names are parameters in a sentence.
type names []string

func (n names) In(l locale.Locale) string {
	comma, and := ", ", " and "
	if l == locale.Ar {
		comma, and = " و", " و"
	}
	last := len(n) - 1
	return strings.Join(n[:last], comma) + and + n[last]
}

// wholeQuery stands for the query itself where no parameter can be named.
const wholeQuery = "query"

// ReadQuery reads a raw query. It returns a fault for each parameter that is repeated, empty,
// invalid or not among the accepted ones, so that none is silently ignored. The text unknown names those, if there are any.
func ReadQuery[T any](query string, into *T, accepted []Parameter[T], empty, unknown locale.Text) []problem.Fault {
	values, err := url.ParseQuery(query)
	if err != nil {
		return []problem.Fault{Fault(wholeQuery, textUnreadable)}
	}
	var faults []problem.Fault
	for _, p := range accepted {
		given, present := values[p.Name]
		delete(values, p.Name)
		switch {
		case !present:
		case len(given) > 1:
			faults = append(faults, Fault(p.Name, textRepeated))
		case given[0] == "":
			faults = append(faults, Fault(p.Name, empty))
		case !p.Read(into, given[0]):
			faults = append(faults, problem.Fault{Member: p.Name, Sentence: p.refusal(into, given[0])})
		}
	}
	const maxNames, maxBytes = 10, 64 // bound how much of a query the response repeats
	var known []any
	if len(accepted) > 0 {
		var all names
		for _, p := range accepted {
			all = append(all, p.Name)
		}
		known = append(known, all)
	}
	others := slices.Sorted(maps.Keys(values))
	for _, name := range others[:min(len(others), maxNames)] {
		name = strings.ToValidUTF8(name[:min(len(name), maxBytes)], "\uFFFD")
		faults = append(faults, Fault(cmp.Or(name, wholeQuery), unknown, known...))
	}
	return faults
}

// Fault returns the fault of a parameter.
func Fault(parameter string, text locale.Text, args ...any) problem.Fault {
	return problem.Fault{Member: parameter, Sentence: text.With(args...)}
}

// Refused returns the error for faults of a query, nil if there are none.
func Refused(faults []problem.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &problem.Error{Code: problem.InvalidParameter, Faults: faults}
}
