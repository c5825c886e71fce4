package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/cart"
)

// oneLine is a call on the lines that one product may have.
type oneLine struct {
	method, path, body string
	rule               func(cart.Cart) (cart.Cart, string) // by package cart: the cart, and the code of a refusal
}

// seen is what a client learns of a call.
type seen struct {
	code  string // of a refusal
	lines string // with notices, of the cart that a success shows
}

func seenIn(a answer) seen {
	if a.Status != http.StatusOK {
		return seen{code: a.Body.Code}
	}
	var lines []string
	for _, item := range a.Body.Data.Items {
		notice := ""
		if item.Notice != nil {
			notice = *item.Notice
		}
		lines = append(lines, fmt.Sprintf("%s×%d %q", item.ID, item.Quantity, notice))
	}
	return seen{lines: fmt.Sprintf("%d: %s", a.Body.Data.Version, strings.Join(lines, ", "))}
}

func seenOf(c cart.Cart) seen {
	var lines []string
	for _, l := range c.Lines {
		lines = append(lines, fmt.Sprintf("%s×%d %q", l.ID, l.Quantity, l.Notice))
	}
	return seen{lines: fmt.Sprintf("%d: %s", c.Version, strings.Join(lines, ", "))}
}

var oneLineLimits = cart.Limits{Lines: 100, Quantity: 999, LineText: 4096, CartText: 65536}

// draw returns the n-th call of a client: it adds to one of three lines, or makes one of
// them another, or changes its quantity or notice.
func draw(t testing.TB, client, n int) oneLine {
	p := soldInSample(t, 5)
	email := func(i int) string { return string(rune('a'+i%3)) + "@example.com" }
	own := []cart.FieldValue{{Name: "Account email", Value: email(client + n)}}
	item := cart.NewLineID(5, 0, own)
	if n%2 == 0 && client%2 == 0 {
		addition := cart.Addition{ProductID: 5, Quantity: 1, Fields: map[string]string{"0": own[0].Value}}
		line, refusal := cart.Resolve(addition, p, oneLineLimits)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return oneLine{"POST", "/cart/add", fmt.Sprintf(`{"product_id":5,"fields":{"0":%q}}`, own[0].Value), func(c cart.Cart) (cart.Cart, string) {
			changed, refusal := c.Add(line, oneLineLimits)
			return changed, codeOf(refusal)
		}}
	}
	var e cart.Edit
	parts := map[string]any{}
	if (client+n)%3 > 0 {
		to := email(client + 2*n + 1)
		e.Fields, parts["fields"] = map[string]string{"0": to}, map[string]string{"0": to}
	}
	if (client+n)%3 != 1 {
		notice := fmt.Sprintf("n%d.%d", client, n)
		e.Notice, parts["notice"] = &notice, notice
	}
	if client%5 == 0 {
		quantity := int64(1 + (client+n)%7)
		e.Quantity, parts["quantity"] = &quantity, quantity
	}
	body, _ := json.Marshal(parts)
	return oneLine{"PATCH", "/cart/items/" + string(item), string(body), func(c cart.Cart) (cart.Cart, string) {
		line := c.Line(item)
		if line == nil {
			return c, "item_not_found"
		}
		edited, refused := e.Resolve(*line, p, oneLineLimits)
		if refused != nil {
			return c, string(refused.Code)
		}
		changed, _, refusal := c.Edit(item, edited, oneLineLimits)
		return changed, codeOf(refusal)
	}}
}

func codeOf(r *cart.Refusal) string {
	if r == nil {
		return ""
	}
	return string(r.Code)
}

// made is one call that was made, with the times at which it began and ended.
type made struct {
	oneLine
	answer       answer
	begins, ends time.Duration
}

func (m made) String() string {
	return fmt.Sprintf("%v to %v: %s %s %s → %v", m.begins, m.ends, m.method, m.path, m.body, seenIn(m.answer))
}

// explain finds an order of the calls in which each takes effect at one moment between its
// beginning and its end, by the rules of package cart, and returns the first call that no
// order explains. A call that is answered 503 changed nothing. Each success shows the
// cart's version, which gives the order of changes. What changed nothing must fit one of
// the versions that were current while it ran.
func explain(history []made) (unexplained *made) {
	states := []cart.Cart{{}} // by version
	var changes, others []made
	slices.SortFunc(history, func(a, b made) int {
		return cmp.Or(cmp.Compare(a.answer.Body.Data.Version, b.answer.Body.Data.Version), cmp.Compare(a.ends, b.ends))
	})
	for _, m := range history {
		after, code := m.rule(states[len(states)-1])
		if m.answer.Status != http.StatusOK || code != "" || after.Version != int64(len(states)) || seenOf(after) != seenIn(m.answer) {
			others = append(others, m)
			continue
		}
		if len(changes) > 0 && slices.MaxFunc(changes, byBegin).begins > m.ends {
			return &m
		}
		states, changes = append(states, after), append(changes, m)
	}
	slices.SortFunc(others, func(a, b made) int { return cmp.Compare(a.ends, b.ends) })
	earliest := make([]int, len(others)) // version at which each took effect
	for i, m := range others {
		first, last := 0, len(states)-1
		for n, change := range changes {
			if change.ends < m.begins {
				first = max(first, n+1)
			}
			if change.begins > m.ends {
				last = min(last, n)
			}
		}
		for j, other := range others[:i] {
			if other.ends < m.begins {
				first = max(first, earliest[j])
			}
		}
		for first <= last && !m.fits(states[first]) {
			first++
		}
		if first > last {
			return &m
		}
		earliest[i] = first
	}
	return nil
}

func byBegin(a, b made) int { return cmp.Compare(a.begins, b.begins) }

// fits reports whether the call is answered like this in a cart that it does not change.
func (m made) fits(c cart.Cart) bool {
	got := seenIn(m.answer)
	if got.code == "unavailable" {
		return true
	}
	after, code := m.rule(c)
	if code != "" {
		return got == seen{code: code}
	}
	return after.Version == c.Version && got == seenOf(after)
}

// 50 clients edit and add to one product's lines. Their answers are those of some order
// in which each call takes effect at one moment while it runs.
func TestEdit_RacesOnOneLineAreLinearizable(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		start := time.Now()
		var mu sync.Mutex
		var history []made
		at(50, func(client int) {
			own := s.with(t, c)
			for n := range 4 {
				m := made{oneLine: draw(t, client, n), begins: time.Since(start)}
				m.answer = own.send(m.method, m.path, m.body)
				m.ends = time.Since(start)
				mu.Lock()
				history = append(history, m)
				mu.Unlock()
			}
		})
		if m := explain(history); m != nil {
			slices.SortFunc(history, byBegin)
			for _, m := range history {
				t.Log(m)
			}
			t.Errorf("no order of the calls explains %v", m)
		}
		edits := 0
		for _, m := range history {
			if m.method == "PATCH" && m.answer.Status == http.StatusOK {
				edits++
			}
		}
		if edits == 0 {
			t.Error("no edit was made")
		}
	})
}

// The check of histories can fail.
func TestExplain_FindsWhatNoOrderExplains(t *testing.T) {
	t.Parallel()
	add := func(begins, ends time.Duration, version, quantity int64) made {
		m := made{oneLine: draw(t, 0, 0), begins: begins, ends: ends, answer: answer{Status: http.StatusOK}}
		line, _ := m.rule(cart.Cart{})
		m.answer.Body.Data = cartBody{Version: version, Items: []itemBody{{ID: string(line.Lines[0].ID), Quantity: quantity}}}
		return m
	}
	notFound := made{
		oneLine: oneLine{rule: func(c cart.Cart) (cart.Cart, string) {
			if len(c.Lines) == 0 {
				return c, "item_not_found"
			}
			return c, ""
		}},
		answer: answer{Status: http.StatusNotFound, Body: body{Code: "item_not_found"}},
	}
	during, after := notFound, notFound
	during.begins, during.ends, after.begins, after.ends = 1, 3, 3, 4
	for name, test := range map[string]struct {
		history []made
		found   bool
	}{
		"one after the other":              {[]made{add(1, 2, 1, 1), add(3, 4, 2, 2)}, false},
		"at once":                          {[]made{add(1, 4, 2, 2), add(2, 3, 1, 1)}, false},
		"the later call took effect first": {[]made{add(1, 2, 2, 2), add(3, 4, 1, 1)}, true},
		"an add was lost":                  {[]made{add(1, 2, 1, 1), add(3, 4, 2, 1)}, true},
		"not found while it was added":     {[]made{add(1, 2, 1, 1), during}, false},
		"not found after it was added":     {[]made{add(1, 2, 1, 1), after}, true},
	} {
		if got := explain(test.history); (got != nil) != test.found {
			t.Errorf("%s: %v", name, got)
		}
	}
}
