package torture

import (
	"fmt"
	"testing"

	"commerce/deploy/assert"
)

// tally is how carts differ from the purchases that they should hold.
type tally struct {
	lost  []*purchase // acknowledged, and in no cart
	twice int64       // purchases that are once in each of two carts
	more  int64       // purchases that count more often
	wrong string      // everything else that is wrong, and what counts more often; "" for nothing
}

func tallyOf(bought []*purchase, held ...map[string]int64) (t tally) {
	for _, p := range bought {
		var times, most int64
		for _, h := range held {
			n := p.in(h)
			times, most = times+n, max(most, n)
			h[p.item] -= n * p.quantity
		}
		switch {
		case times == 1, times == 0 && !p.made:
		case times == 0:
			t.lost = append(t.lost, p)
		case times == 2 && most == 1:
			t.twice++
		default:
			t.more++
			t.wrong += fmt.Sprintf("\ncounts %d times: %v", times, p)
		}
	}
	for _, h := range held {
		for item, left := range h {
			if left != 0 {
				t.wrong += fmt.Sprintf("\nline %s has %d more than was bought", item, left)
			}
		}
	}
	return t
}

// Shows that the comparison of carts with purchases can fail.
func TestTally_FindsWhatIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	one, three := &purchase{item: "1", quantity: 1, made: true}, &purchase{item: "1", quantity: 3, made: true}
	maybe, other := &purchase{item: "1", quantity: 9}, &purchase{item: "2", quantity: 1, made: true}
	type held = map[string]int64
	for name, test := range map[string]struct {
		held        []held
		lost        int
		twice, more int64
		wrong       bool
	}{
		"each once":                   {held: []held{{"1": 4, "2": 1}}},
		"an unknown one was made":     {held: []held{{"1": 13, "2": 1}}},
		"in the carts of both":        {held: []held{{"1": 3, "2": 1}, {"1": 1}}},
		"one is lost":                 {held: []held{{"1": 3, "2": 1}}, lost: 1},
		"a line is lost":              {held: []held{{"1": 4}}, lost: 1},
		"all are lost":                {held: []held{{}, {}}, lost: 3},
		"both have one":               {held: []held{{"1": 4, "2": 1}, {"2": 1}}, twice: 1},
		"both have an unknown one":    {held: []held{{"1": 13, "2": 1}, {"1": 9}}, twice: 1},
		"one counts twice":            {held: []held{{"1": 7, "2": 1}}, more: 1, wrong: true},
		"an unknown one counts twice": {held: []held{{"1": 22, "2": 1}}, more: 1, wrong: true},
		"a line counts three times":   {held: []held{{"1": 4, "2": 3}}, lost: 1, wrong: true},
		"nobody bought a line":        {held: []held{{"1": 4, "2": 1, "3": 1}}, wrong: true},
	} {
		found := tallyOf([]*purchase{one, three, maybe, other}, test.held...)
		assert.That(t, len(found.lost) == test.lost && found.twice == test.twice && found.more == test.more && (found.wrong != "") == test.wrong,
			"%s: %d lost, %d twice, %d more often, wrong: %q", name, len(found.lost), found.twice, found.more, found.wrong)
	}
}
