package cart

import "time"

// List is the rule of a list: its changes in order, each of which sees what those before it have left. A refused change
// leaves nothing. With each, those that are not refused are made; otherwise all or none. The Effect has that of each
// change, also if the list is refused, which it is by the first that is.
func List(each bool, rules []Rule) Rule {
	return func(c *Cell, limits Limits, now time.Time) Effect {
		cell, all := *c, Effect{Ops: make([]Effect, len(rules))}
		for i, rule := range rules {
			effect := rule(&cell, limits, now)
			if effect.Needs != nil {
				return effect
			}
			all.Ops[i] = effect
			if !effect.Refused() {
				cell.Cart, all.Altered = effect.Cart, all.Altered || effect.Altered
			}
		}
		if i := all.firstRefused(); i >= 0 && !each {
			return Effect{Refusal: all.Ops[i].Refusal, Problem: all.Ops[i].Problem, Ops: all.Ops}
		}
		all.Cart = cell.Cart
		return all
	}
}

func (s *Effect) firstRefused() int {
	for i := range s.Ops {
		if s.Ops[i].Refused() {
			return i
		}
	}
	return -1
}
