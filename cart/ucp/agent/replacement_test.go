package agent_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/ucp/agent"
	"commerce/deploy/assert"
)

// Whatever the cart holds, a plan makes it hold what the elements ask for: an element keeps the line that it names, or the
// first one of its product and plan that is left, of which only the quantity changes.
func TestReplacement_PlanMakesWhatItsElementsAskFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := cart.Cart{ID: "C", Version: 7, Mark: "M", Lines: drawLines(t)}
		r := agent.Replacement{Elements: drawElements(t, before)}
		steps := r.Plan(before)
		after := carriedOut(t, steps, r, before)

		wanted, held, elements := map[string]int64{}, map[string]int64{}, map[string]int{}
		for _, e := range r.Elements {
			wanted[itemOf(e)] += e.Quantity
			elements[itemOf(e)]++
		}
		for _, l := range after.Lines {
			held[l.ID.Item()] += l.Quantity
		}
		if diff := cmp.Diff(wanted, held); diff != "" {
			t.Fatalf("-asked for +held\n%s", diff)
		}
		lines, kept := map[string]int{}, map[string]int{}
		for _, l := range before.Lines {
			lines[l.ID.Item()]++
			if !after.Has(l.ID) {
				continue
			}
			kept[l.ID.Item()]++
			now := *after.Line(l.ID)
			if now.Quantity = l.Quantity; !cmp.Equal(l, now) {
				t.Fatalf("line %+v has become %+v", l, now)
			}
		}
		named := map[cart.LineID]bool{}
		for i, e := range r.Elements {
			line, names := nameOf(e, before)
			if names && !named[line] && line != cart.LineID(itemOf(e)) && after.Line(line).Quantity != e.Quantity {
				t.Fatalf("element %d names line %s, which has %d", i, line, after.Line(line).Quantity)
			}
			named[line] = true
		}
		for item, n := range lines {
			if kept[item] != min(n, elements[item]) {
				t.Fatalf("%d of %d lines of %s are kept for %d elements", kept[item], n, item, elements[item])
			}
		}
		if firstNotKept(r, before, after) {
			t.Fatalf("a later line than the first is kept: %+v", after.Lines)
		}
		same := agent.Replacement{}
		for _, l := range after.Lines {
			same.Elements = append(same.Elements, agent.Element{Line: l.ID, Product: l.ID.Product(), Plan: l.ID.Plan(), Quantity: l.Quantity})
		}
		same.Elements = rapid.Permutation(same.Elements).Draw(t, "order")
		if again := same.Plan(after); len(again) > 0 {
			t.Fatalf("what the cart holds needs %+v", again)
		}
	})
}

// firstNotKept reports whether a line goes although an element without a name could have kept it instead of a later one.
func firstNotKept(r agent.Replacement, before, after cart.Cart) bool {
	if slices.ContainsFunc(r.Elements, func(e agent.Element) bool { return e.Line != "" }) {
		return false
	}
	gone := map[string]bool{}
	for _, l := range before.Lines {
		if !after.Has(l.ID) {
			gone[l.ID.Item()] = true
		} else if gone[l.ID.Item()] {
			return true
		}
	}
	return false
}

// carriedOut makes the steps, and fails if they are not in order: removals, then lower quantities, higher ones, additions.
func carriedOut(t *rapid.T, steps []agent.Step, r agent.Replacement, c cart.Cart) cart.Cart {
	c.Lines = slices.Clone(c.Lines)
	last := ""
	for _, s := range steps {
		at := slices.IndexFunc(c.Lines, func(l cart.Line) bool { return l.ID == s.Line })
		kind := "3 higher"
		switch {
		case s.Line == "":
			kind = "4 added"
			e := r.Elements[s.Element]
			id := cart.NewLineID(e.Product, e.Plan, nil)
			if at = slices.IndexFunc(c.Lines, func(l cart.Line) bool { return l.ID == id }); at < 0 {
				at, c.Lines = len(c.Lines), append(c.Lines, cart.Line{ID: id})
			}
			c.Lines[at].Quantity += s.Quantity
		case at < 0:
			t.Fatalf("step %+v is for no line", s)
		case s.Quantity == 0:
			kind = "1 removed"
			c.Lines = slices.Delete(c.Lines, at, at+1)
		default:
			if s.Quantity == c.Lines[at].Quantity {
				t.Fatalf("step %+v changes nothing", s)
			}
			if s.Quantity < c.Lines[at].Quantity {
				kind = "2 lower"
			}
			c.Lines[at].Quantity = s.Quantity
		}
		if kind < last || (s.Element < 0) != (kind == "1 removed") {
			t.Fatalf("%s comes after %s in %+v", kind, last, steps)
		}
		last = kind
	}
	return c
}

func itemOf(e agent.Element) string { return string(cart.NewLineID(e.Product, e.Plan, nil)) }

// nameOf returns the line of its product and plan that an element names.
func nameOf(e agent.Element, c cart.Cart) (cart.LineID, bool) {
	return e.Line, c.Has(e.Line) && e.Line.Item() == itemOf(e)
}

// drawLines draws lines of few products: with a plan, and with fields, which agents do not see.
func drawLines(t *rapid.T) []cart.Line {
	var lines []cart.Line
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 17), 0, 8, rapid.ID).Draw(t, "lines") {
		fields := []cart.FieldValue{{Name: "f", Value: string(rune('a' + n%3))}}[:min(n%3, 1)]
		lines = append(lines, cart.Line{
			ID: cart.NewLineID(int64(1+n/6), int64(n/3%2), fields), Quantity: rapid.Int64Range(1, 4).Draw(t, "quantity"),
			AddedPrice: 5, Fields: fields, Notice: "n",
		})
	}
	return lines
}

func drawElements(t *rapid.T, c cart.Cart) []agent.Element {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) agent.Element {
		e := agent.Element{
			Product: rapid.Int64Range(1, 4).Draw(t, "product"), Plan: rapid.Int64Range(0, 1).Draw(t, "plan"),
			Quantity: rapid.Int64Range(1, 4).Draw(t, "quantity"),
		}
		if len(c.Lines) > 0 && rapid.Bool().Draw(t, "named") {
			line := rapid.SampledFrom(c.Lines).Draw(t, "line").ID
			e.Line = line
			if rapid.IntRange(0, 4).Draw(t, "of another item") > 0 {
				e.Product, e.Plan = line.Product(), line.Plan()
			}
		}
		return e
	}), 0, 8).Draw(t, "elements")
}

func TestSeen_TellsWhatWouldBeUndone(t *testing.T) {
	t.Parallel()
	c := cart.Cart{ID: "C", Version: 7, Mark: "M", Lines: []cart.Line{{ID: "1", Quantity: 1}}}
	older, oldest, lost, later := c, c, c, c
	older.Version, oldest.Version, lost.Mark, later.Version = 6, 5, "L", 8
	by := func(since, last cart.Cart) string { return since.Moment() + "|" + last.Moment() }
	own := by(older, c) // by nobody else since older
	for name, row := range map[string]struct {
		on      cart.Cart
		moments []string
		agent   string
		want    bool
	}{
		"this version":                              {on: c, moments: []string{c.Moment()}, want: true},
		"this version, by another's change":         {on: c, moments: []string{c.Moment()}, agent: by(oldest, older), want: true},
		"an older version":                          {on: c, moments: []string{older.Moment()}},
		"an older version, before another's change": {on: c, moments: []string{oldest.Moment()}, agent: own},
		"an older version, all since are its own":   {on: c, moments: []string{older.Moment(), older.Moment()}, agent: own, want: true},
		"one of two is before another's change":     {on: c, moments: []string{older.Moment(), oldest.Moment()}, agent: own},
		"an older version, then another's change":   {on: c, moments: []string{oldest.Moment()}, agent: by(oldest, older)},
		"a later one, which a failover has lost":    {on: c, moments: []string{later.Moment()}},
		"this number, made again":                   {on: c, moments: []string{lost.Moment()}, agent: by(older, lost)},
		"none, after its own change":                {on: c, agent: own, want: true},
		"none, after its own of an older release":   {on: c, agent: c.Moment(), want: true},
		"none, after another's":                     {on: c, agent: by(older, older)},
		"none, after a failover lost its own":       {on: c, agent: by(older, lost)},
		"none, and none before":                     {on: c},
		"none, of a canceled cart":                  {on: c, agent: "-"},
		"none, of one never used":                   {want: true},
		"of one never used":                         {moments: []string{cart.Cart{}.Moment()}, want: true},
		"of one never used, as another was":         {moments: []string{c.Moment()}},
	} {
		assert.Equal(t, agent.Seen(&cart.Cell{Cart: row.on, Agent: row.agent}, row.moments), row.want, "%s", name)
	}
}

func TestParseItem_ReadsAProductAndItsPlan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.Element{"42": {Product: 42}, "42.p41": {Product: 42, Plan: 41}} {
		product, plan, ok := agent.ParseItem(text)
		assert.That(t, ok && product == want.Product && plan == want.Plan, "%s is %d and %d, %v", text, product, plan, ok)
		assert.Equal(t, cart.LineID(text+".fAAAAAAAAAAAAAAAA").Item(), text, "the item of a line with fields")
	}
	for _, text := range []string{"", "0", "-1", "1.0", "42.p", "42.p0", "42.fAAAAAAAAAAAAAAAA", " 42", "42 ", "١", "42.p41.p41"} {
		_, _, ok := agent.ParseItem(text)
		assert.That(t, !ok, "%q is taken for an item", text)
	}
}
