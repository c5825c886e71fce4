package server

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/wire"
)

// legacyArea adapts routes whose handlers write their own answers.
func legacyArea(routes map[string]func(*gin.Context) error) wire.Area {
	var area wire.Area
	for _, pattern := range slices.Sorted(maps.Keys(routes)) {
		method, path, _ := strings.Cut(pattern, " ")
		handle := routes[pattern]
		area.Routes = append(area.Routes, wire.Route{Method: method, Path: path, Handle: func(c *gin.Context) (wire.Answer, error) {
			return legacyAnswer(handle(c))
		}})
	}
	return area
}

// legacyAnswer turns a *cart.Error into a problem.Error and the answer beside it.
func legacyAnswer(err error) (wire.Answer, error) {
	refused, ok := errors.AsType[*cart.Error](err)
	if !ok {
		return wire.Answer{}, err
	}
	answer := wire.Answer{Language: refused.Language()}
	if data := refused.Data(); data != nil {
		answer.Data = func(w *wire.Writer) { w.Raw(data) }
	}
	text := func(say func(locale.Locale) string) locale.Sentence {
		return locale.Text{locale.En: say(locale.En), locale.Ar: say(locale.Ar)}.With()
	}
	known := &problem.Error{
		Code:   problem.Code(refused.Code()),
		Faults: []problem.Fault{{Sentence: text(refused.Message)}},
		Cause:  refused.Unwrap(),
	}
	members := refused.Faults(locale.En)
	for _, member := range slices.Sorted(maps.Keys(members)) {
		for i := range members[member] {
			known.Faults = append(known.Faults, problem.Fault{Member: member, Sentence: text(func(l locale.Locale) string {
				return refused.Faults(l)[member][i]
			})})
		}
	}
	return answer, known
}
